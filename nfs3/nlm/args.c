/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "nfs3/nfs3_server.h"
#include "nfs3/nlm/nlm.h"

static void get_bytes(struct xdr_in *x, struct nlm_bytes *b)
{
	b->data = xdr_get_opaque(x, NLM_OPAQUE_MAX, &b->len);
}

/* nlm4_lock. A handle that is longer than this server's, or empty, matches no file. */
static void get_lock(struct xdr_in *x, struct nlm_lock_args *a)
{
	struct nlm_bytes fh;

	get_bytes(x, &a->caller);
	get_bytes(x, &fh);
	get_bytes(x, &a->oh);
	a->svid = (int32_t)xdr_get_u32(x);
	a->offset = xdr_get_u64(x);
	a->length = xdr_get_u64(x);
	if (x->err || fh.len > VFS_FH_MAX)
		return;
	a->fh.len = fh.len;
	memcpy(a->fh.data, fh.data, fh.len);
}

bool nlm_decode_test(struct xdr_in *x, void *args)
{
	struct nlm_lock_args *a = args;

	get_bytes(x, &a->cookie);
	a->exclusive = xdr_get_bool(x);
	get_lock(x, a);
	return !x->err;
}

bool nlm_decode_lock(struct xdr_in *x, void *args)
{
	struct nlm_lock_args *a = args;

	get_bytes(x, &a->cookie);
	a->block = xdr_get_bool(x);
	a->exclusive = xdr_get_bool(x);
	get_lock(x, a);
	a->reclaim = xdr_get_bool(x);
	a->state = xdr_get_u32(x);
	return !x->err;
}

bool nlm_decode_cancel(struct xdr_in *x, void *args)
{
	struct nlm_lock_args *a = args;

	get_bytes(x, &a->cookie);
	a->block = xdr_get_bool(x);
	a->exclusive = xdr_get_bool(x);
	get_lock(x, a);
	return !x->err;
}

bool nlm_decode_unlock(struct xdr_in *x, void *args)
{
	struct nlm_lock_args *a = args;

	get_bytes(x, &a->cookie);
	get_lock(x, a);
	return !x->err;
}

bool nlm_decode_free_all(struct xdr_in *x, void *args)
{
	get_bytes(x, args);
	xdr_get_u32(x);
	return !x->err;
}

bool nlm_skip_to_fh(struct xdr_in *x, uint32_t proc)
{
	/* Booleans between the cookie and the lock. */
	static const uint8_t bools[] = {
		[NLMPROC4_TEST] = 1,
		[NLMPROC4_LOCK] = 2,
		[NLMPROC4_CANCEL] = 2,
		[NLMPROC4_UNLOCK] = 0,
	};

	if (proc < NLMPROC4_TEST || proc > NLMPROC4_UNLOCK)
		return false;
	xdr_skip_opaque(x, NLM_OPAQUE_MAX);
	xdr_skip(x, 4u * bools[proc]);
	xdr_skip_opaque(x, NLM_OPAQUE_MAX); /* the caller's name */
	return !x->err;
}

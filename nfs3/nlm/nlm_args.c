/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "nfs3/nfs3_server.h"
#include "nfs3/nlm/nlm.h"

static void get_bytes(struct xdr_in *x, struct nlm_bytes *b)
{
	b->data = xdr_get_opaque(x, NLM_OPAQUE_MAX, &b->len);
}

/* A handle that is longer than this server's, or empty, matches no file. */
static void nlm_get_file(struct xdr_in *x, struct nlm_lock_args *a)
{
	struct nlm_bytes fh;

	get_bytes(x, &a->caller);
	get_bytes(x, &fh);
	get_bytes(x, &a->oh);
	if (x->err || fh.len > VFS_FH_MAX)
		return;
	a->fh.len = fh.len;
	memcpy(a->fh.data, fh.data, fh.len);
}

/* Offsets are signed, as in Linux's lockd. A range that ends beyond the largest offset has no end. */
static void get_old_range(struct xdr_in *x, struct nlm_lock_args *a)
{
	const uint32_t offset = xdr_get_u32(x), length = xdr_get_u32(x);

	a->offset = offset;
	a->length = (uint64_t)offset + length > (uint64_t)INT32_MAX + 1 ? 0 : length;
	a->beyond = offset > INT32_MAX;
}

/* nlm4_lock, or nlm_lock of the older versions. */
static void get_lock(struct xdr_in *x, struct nlm_lock_args *a, bool old)
{
	nlm_get_file(x, a);
	a->svid = (int32_t)xdr_get_u32(x);
	if (old) {
		get_old_range(x, a);
		return;
	}
	a->offset = xdr_get_u64(x);
	a->length = xdr_get_u64(x);
}

static bool get_test(struct xdr_in *x, struct nlm_lock_args *a, bool old)
{
	get_bytes(x, &a->cookie);
	a->exclusive = xdr_get_bool(x);
	get_lock(x, a, old);
	return !x->err;
}

static bool get_cancel(struct xdr_in *x, struct nlm_lock_args *a, bool old)
{
	get_bytes(x, &a->cookie);
	a->block = xdr_get_bool(x);
	a->exclusive = xdr_get_bool(x);
	get_lock(x, a, old);
	return !x->err;
}

static bool get_lock_args(struct xdr_in *x, struct nlm_lock_args *a, bool old)
{
	get_cancel(x, a, old);
	a->reclaim = xdr_get_bool(x);
	a->state = xdr_get_u32(x);
	return !x->err;
}

static bool get_unlock(struct xdr_in *x, struct nlm_lock_args *a, bool old)
{
	get_bytes(x, &a->cookie);
	get_lock(x, a, old);
	return !x->err;
}

bool nlm_decode_test(struct xdr_in *x, void *args)
{
	return get_test(x, args, false);
}

bool nlm_decode_lock(struct xdr_in *x, void *args)
{
	return get_lock_args(x, args, false);
}

bool nlm_decode_cancel(struct xdr_in *x, void *args)
{
	return get_cancel(x, args, false);
}

bool nlm_decode_unlock(struct xdr_in *x, void *args)
{
	return get_unlock(x, args, false);
}

bool nlm_decode_test_old(struct xdr_in *x, void *args)
{
	return get_test(x, args, true);
}

bool nlm_decode_lock_old(struct xdr_in *x, void *args)
{
	return get_lock_args(x, args, true);
}

bool nlm_decode_cancel_old(struct xdr_in *x, void *args)
{
	return get_cancel(x, args, true);
}

bool nlm_decode_unlock_old(struct xdr_in *x, void *args)
{
	return get_unlock(x, args, true);
}

/* A bit of fsh_mode and fsh_access is that of VFS_SHARE_*. */
bool nlm_decode_share(struct xdr_in *x, void *args)
{
	struct nlm_share_args *a = args;

	get_bytes(x, &a->lock.cookie);
	nlm_get_file(x, &a->lock);
	a->mode = xdr_get_u32(x);
	a->access = xdr_get_u32(x);
	a->lock.reclaim = xdr_get_bool(x);
	return !x->err && a->mode <= VFS_SHARE_BOTH && a->access <= VFS_SHARE_BOTH;
}

/* TEST_RES carries the conflicting lock behind its status, which nobody here needs: it is skipped. */
bool nlm_decode_res(struct xdr_in *x, void *args)
{
	struct nlm_res_args *a = args;

	get_bytes(x, &a->cookie);
	a->stat = xdr_get_u32(x);
	return !x->err;
}

bool nlm_decode_free_all(struct xdr_in *x, void *args)
{
	get_bytes(x, args);
	xdr_get_u32(x);
	return !x->err;
}

/* Procedure that has the same arguments and answers in its reply. */
static uint32_t without_message(uint32_t proc)
{
	if (proc >= NLMPROC4_TEST_MSG && proc <= NLMPROC4_UNLOCK_MSG)
		return proc - NLMPROC4_TEST_MSG + NLMPROC4_TEST;
	return proc == NLMPROC4_NM_LOCK ? NLMPROC4_LOCK : proc;
}

bool nlm_skip_to_fh(struct xdr_in *x, uint32_t proc)
{
	/* Booleans between the cookie and the lock, and 1. */
	static const uint8_t bools[NLMPROC4_COUNT] = {
		[NLMPROC4_TEST] = 2,   [NLMPROC4_LOCK] = 3,  [NLMPROC4_CANCEL] = 3,
		[NLMPROC4_UNLOCK] = 1, [NLMPROC4_SHARE] = 1, [NLMPROC4_UNSHARE] = 1,
	};
	const uint32_t form = proc < NLMPROC4_COUNT ? without_message(proc) : 0;

	if (bools[form] == 0)
		return false;
	xdr_skip_opaque(x, NLM_OPAQUE_MAX);
	xdr_skip(x, 4u * (bools[form] - 1u));
	xdr_skip_opaque(x, NLM_OPAQUE_MAX); /* the caller's name */
	return !x->err;
}

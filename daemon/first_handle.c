/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/first_handle.h"

#include "lib/checked.h"
#include "nfs3/nfs3_server.h"
#include "nfs3/proto.h"
#include "nfs4/proto.h"
#include "rpc/message.h"
#include "vfs/vfs.h"

#define OPS_BEFORE 3u		  /* operations before PUTFH */
#define SEQUENCE_ARGS (16u + 16u) /* session, and four words */
#define NAME_LONGEST 1024u

static void skip_opaque(struct xdr_in *x, uint32_t max)
{
	const uint32_t len = xdr_get_u32(x);

	if (len > max)
		x->err = true;
	else
		xdr_skip(x, (size_t)len + rn_xdr_pad(len));
}

static bool take_handle(struct xdr_in *x, uint32_t *export_id)
{
	const uint32_t len = xdr_get_u32(x);

	if (len < 8 || len > VFS_FH_MAX)
		return false;
	return vfs_handle_peek(xdr_get_u64(x), export_id) && !x->err;
}

/* Each procedure that has arguments begins with a handle. */
static bool in_nfs3(struct xdr_in *x, uint32_t *export_id)
{
	return take_handle(x, export_id);
}

static bool in_nfs4(struct xdr_in *x, uint32_t *export_id)
{
	skip_opaque(x, NAME_LONGEST); /* tag */
	xdr_skip(x, 4 + 4);	      /* minor version, number of operations */
	for (unsigned i = 0; i < OPS_BEFORE && !x->err; i++) {
		switch (xdr_get_u32(x)) {
		case OP_SEQUENCE:
			xdr_skip(x, SEQUENCE_ARGS);
			break;
		case OP_PUTFH:
			return take_handle(x, export_id);
		default:
			return false;
		}
	}
	return false;
}

/* Booleans between the cookie and the lock, of TEST, LOCK, CANCEL and UNLOCK (RFC 1813 appendix
 * II): the handle is behind the caller's name. */
static bool in_nlm(struct xdr_in *x, uint32_t proc, uint32_t *export_id)
{
	static const uint8_t bools[] = { [1] = 1, [2] = 2, [3] = 2, [4] = 0 };

	if (proc < 1 || proc > 4)
		return false;
	skip_opaque(x, NAME_LONGEST);
	xdr_skip(x, 4u * bools[proc]);
	skip_opaque(x, NAME_LONGEST);
	return take_handle(x, export_id);
}

bool first_handle_export(const struct rpc_request *req, uint32_t *export_id)
{
	uint32_t prog, vers, proc;
	struct xdr_in x;

	xdr_in_init(&x, req->seg, req->nseg, NULL);
	xdr_skip(&x, 4); /* xid */
	if (xdr_get_u32(&x) != RPC_CALL || xdr_get_u32(&x) != RPC_VERSION)
		return false;
	prog = xdr_get_u32(&x);
	vers = xdr_get_u32(&x);
	proc = xdr_get_u32(&x);
	for (int i = 0; i < 2 && !x.err; i++) { /* credential and verifier */
		xdr_skip(&x, 4);
		skip_opaque(&x, RPC_AUTH_BYTES_MAX);
	}
	if (x.err || proc == 0)
		return false;
	if (prog == NFS_PROGRAM && vers == NFS3_VERSION)
		return in_nfs3(&x, export_id);
	if (prog == NFS_PROGRAM && vers == NFS4_VERSION)
		return in_nfs4(&x, export_id);
	return prog == NLM_PROGRAM && in_nlm(&x, proc, export_id);
}

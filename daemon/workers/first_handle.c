/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/workers/admission.h"

#include "nfs2/nfs2_server.h"
#include "nfs3/nfs3_proto.h"
#include "nfs3/nfs3_server.h"
#include "nfs4/nfs4_proto.h"
#include "nfs4/nfs4_server.h"
#include "rpc/message.h"
#include "vfs/packed.h"
#include "vfs/vfs.h"

/* Moves x to the length of the call's first file handle. */
static bool skip_to_fh(struct xdr_in *x, const struct rpc_peek *call)
{
	if (call->proc == 0)
		return false;
	/* Arguments begin with a handle, whatever the procedure. */
	if ((call->prog == NFS_PROGRAM && call->vers == NFS3_VERSION) ||
	    call->prog == NFSACL_PROGRAM)
		return true;
	if (call->prog == NFS4_PROGRAM && call->vers == NFS4_VERSION)
		return nfs4_skip_to_fh(x);
	return call->prog == NLM_PROGRAM && nlm_skip_to_fh(x, call->proc);
}

/* NFSv2, and NFSACL beside it. */
static bool is_nfs2(const struct rpc_peek *call)
{
	return (call->prog == NFS_PROGRAM || call->prog == NFSACL_PROGRAM) &&
	       call->vers == NFS2_VERSION && call->proc != 0;
}

/* Moves x to the bytes of the handle. Those of NFSv2 come without a length, and *len is VFS_PACKED_FH. */
static bool first_handle_find(const struct rpc_request *req, struct xdr_in *x, uint32_t *len)
{
	struct rpc_peek call;

	xdr_in_init(x, req->seg, req->nseg, NULL);
	if (!rpc_peek_call(x, &call))
		return false;
	if (is_nfs2(&call)) {
		*len = VFS_PACKED_FH;
		return true;
	}
	if (!skip_to_fh(x, &call))
		return false;
	*len = xdr_get_u32(x);
	return *len >= 8 && *len <= VFS_FH_MAX;
}

bool first_handle(const struct rpc_request *req, struct vfs_fh *out)
{
	struct xdr_in x;

	/* Packed handles have another form. */
	if (!first_handle_find(req, &x, &out->len) || req->call.vers == NFS2_VERSION)
		return false;
	xdr_get_fixed(&x, out->data, out->len);
	return !x.err;
}

bool first_handle_export(const struct rpc_request *req, uint32_t *export_id)
{
	struct xdr_in x;
	uint32_t len;

	if (!first_handle_find(req, &x, &len))
		return false;
	return vfs_handle_peek(xdr_get_u64(&x), export_id) && !x.err;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* GETATTR, SETATTR and ACCESS (RFC 1813 sections 3.3.1, 3.3.2, 3.3.4). */
#include <errno.h>
#include <sys/stat.h>

#include "nfs3/access.h"
#include "nfs3/op.h"
#include "nfs3/nfs3_procs.h"

static enum rpc_run nfs3_getattr(struct rpc_request *req, void *args)
{
	struct nfs3_fh_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct vfs_attr attr;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open(op, &a->fh, NFS3_OPEN_MOUNT);
	if (rc == 0)
		rc = vfs_getattr(&op->ctx, op->node[0], &attr);
	if (nfs3_put_status(op, rc))
		nfs3_put_fattr(&req->out, &attr);
	return nfs3_op_end(op, rc);
}

static void nfs3_encode_setattr(struct nfs3_op *op, int rc)
{
	nfs3_put_status(op, rc);
	nfs3_put_wcc_of(op, 0);
}

struct setattr_args {
	struct vfs_fh fh;
	struct nfs3_sattr attr;
	bool guard;
	struct timespec guard_ctime;
};

static bool nfs3_decode_setattr(struct xdr_in *x, void *args)
{
	struct setattr_args *a = args;
	bool bad_guard = false;

	nfs3_get_fh(x, &a->fh);
	nfs3_get_sattr(x, &a->attr);
	a->guard = xdr_get_bool(x);
	if (a->guard)
		a->guard_ctime = nfs3_get_time(x, &bad_guard);
	if (bad_guard) /* no file has such a ctime, so it cannot match */
		a->guard_ctime.tv_nsec = -1;
	return !x->err;
}

static int nfs3_run_setattr(struct nfs3_op *op, struct setattr_args *a)
{
	int rc = nfs3_op_open(op, &a->fh, NFS3_OPEN_CHANGES);

	if (rc < 0)
		return rc;
	if (a->attr.bad)
		return -EINVAL;
	if (a->attr.set.set_size)
		rc = nfs3_op_check_shares(op, VFS_SHARE_WRITE);
	if (rc < 0)
		return rc;
	rc = nfs3_op_setattr(op, &a->attr.set, a->guard ? &a->guard_ctime : NULL);
	/* True for the size of an object that is no file and the mode of a symbolic link: RFC 1813
	 * has INVAL for both. */
	if (rc == -EISDIR || rc == -EOPNOTSUPP)
		return -EINVAL;
	return rc;
}

static enum rpc_run nfs3_setattr(struct rpc_request *req, void *args)
{
	struct setattr_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_run_setattr(op, a);
	op->sync.node[0] = op->node[0];
	op->sync.data_from = a->attr.set.set_size ? a->attr.set.size : VFS_SYNC_METADATA;
	return nfs3_op_settle(op, rc, nfs3_encode_setattr);
}

struct access_args {
	struct vfs_fh fh;
	uint32_t want;
};

static bool nfs3_decode_access(struct xdr_in *x, void *args)
{
	struct access_args *a = args;

	nfs3_get_fh(x, &a->fh);
	a->want = xdr_get_u32(x);
	return !x->err;
}

static enum rpc_run nfs3_run_access(struct rpc_request *req, void *args)
{
	struct access_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct vfs_attr attr;
	uint32_t granted = 0;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open(op, &a->fh, 0);
	if (rc == 0)
		rc = nfs3_access(op, a->want, &granted, &attr);
	nfs3_put_status(op, rc);
	if (rc != 0) {
		nfs3_put_attr_of(op, op->node[0]);
	} else {
		nfs3_put_post_op_attr(&req->out, &attr);
		xdr_put_u32(&req->out, granted);
	}
	return nfs3_op_end(op, rc);
}

const struct nfs3_proc nfs3_proc_getattr = {
	.rpc = {
		.name = "GETATTR",
		.decode = nfs3_decode_fh_args,
		.args_size = sizeof(struct nfs3_fh_args),
		.run = nfs3_getattr,
		.flags = RPC_PROMPT,
	},
	.errors = NFS3_ERRORS(0),
};

const struct nfs3_proc nfs3_proc_setattr = {
	.rpc = {
		.name = "SETATTR",
		.decode = nfs3_decode_setattr,
		.args_size = sizeof(struct setattr_args),
		.run = nfs3_setattr,
		.flags = RPC_NONIDEMPOTENT,
		.reply_size = 4 + NFS3_WCC_SIZE,
	},
	/* FBIG: not listed, for a size that no file can have. */
	.errors = NFS3_ERRORS(NFS3_E_PERM | NFS3_E_INVAL | NFS3_E_SPACE | NFS3_E_ROFS |
			      NFS3_E_NOT_SYNC | NFS3_E_FBIG),
};

const struct nfs3_proc nfs3_proc_access = {
	.rpc = {
		.name = "ACCESS",
		.decode = nfs3_decode_access,
		.args_size = sizeof(struct access_args),
		.run = nfs3_run_access,
		.flags = RPC_PROMPT,
	},
	.errors = NFS3_ERRORS(0),
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* GETATTR, SETATTR and STATFS (RFC 1094 sections 2.2.2, 2.2.3, 2.2.18). */
#include <errno.h>
#include <stdlib.h>

#include "nfs2/nfs2_args.h"
#include "nfs2/nfs2_procs.h"
#include "nfs2/result.h"

/* Seconds by which a client's clock may differ from ours when it means "now". */
#define NOW_WITHIN (30 * 60)

static enum rpc_run nfs2_getattr(struct rpc_request *req, void *args)
{
	struct nfs2_fh_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open_packed(op, &a->fh, NFS3_OPEN_MOUNT);
	rc = nfs2_put_attrstat(op, rc);
	return nfs3_op_end(op, rc);
}

struct setattr_args {
	struct vfs_packed_fh fh;
	struct nfs2_sattr attr;
};

static bool nfs2_decode_setattr(struct xdr_in *x, void *args)
{
	struct setattr_args *a = args;

	nfs2_get_fh(x, &a->fh);
	nfs2_get_sattr(x, &a->attr);
	return !x->err;
}

static void nfs2_encode_setattr(struct nfs3_op *op, int rc)
{
	nfs2_put_attrstat(op, rc);
}

/* True if both times are to be about now. NFSv2 has but one way to say "this time" and "the server's time",
 * which takes less permission. */
static bool means_now(const struct vfs_setattr *s)
{
	return s->set_atime == VFS_TIME_CLIENT && s->set_mtime == VFS_TIME_CLIENT &&
	       s->atime.tv_sec == s->mtime.tv_sec &&
	       llabs((long long)s->atime.tv_sec - (long long)time(NULL)) < NOW_WITHIN;
}

static int nfs2_run_setattr(struct nfs3_op *op, struct setattr_args *a)
{
	struct vfs_setattr *s = &a->attr.set;
	int rc = nfs3_op_open_packed(op, &a->fh, NFS3_OPEN_CHANGES);

	if (rc < 0)
		return rc;
	if (a->attr.bad)
		return -EINVAL;
	if (s->set_size)
		rc = nfs2_check_shares(op, VFS_SHARE_WRITE);
	if (rc < 0)
		return rc;
	rc = nfs3_op_setattr(op, s, NULL);
	if ((rc == -EPERM || rc == -EACCES) && means_now(s)) {
		s->set_atime = s->set_mtime = VFS_TIME_SERVER;
		rc = nfs3_op_setattr(op, s, NULL);
	}
	return rc;
}

static enum rpc_run nfs2_setattr(struct rpc_request *req, void *args)
{
	struct setattr_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs2_run_setattr(op, a);
	op->sync.node[0] = op->node[0];
	op->sync.data_from = a->attr.set.set_size ? a->attr.set.size : VFS_SYNC_METADATA;
	return nfs3_op_settle(op, rc, nfs2_encode_setattr);
}

/* Blocks are made larger until their number fits in 31 bits, as some clients take it for signed. */
static void put_statfs(struct xdr_out *x, const struct vfs_statfs *st)
{
	uint32_t block = st->block ? st->block : 4096;

	while (st->total_bytes / block > INT32_MAX && block < 1u << 31)
		block <<= 1;
	xdr_put_u32(x, NFS2_MAX_IO); /* tsize */
	xdr_put_u32(x, block);
	xdr_put_u32(x, (uint32_t)(st->total_bytes / block));
	xdr_put_u32(x, (uint32_t)(st->free_bytes / block));
	xdr_put_u32(x, (uint32_t)(st->avail_bytes / block));
}

static enum rpc_run proc_statfs(struct rpc_request *req, void *args)
{
	struct nfs2_fh_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct vfs_statfs st;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open_packed(op, &a->fh, NFS3_OPEN_MOUNT);
	if (rc == 0)
		rc = vfs_statfs(&op->ctx, op->node[0], &st);
	if (nfs2_put_status(op, rc))
		put_statfs(&req->out, &st);
	return nfs3_op_end(op, rc);
}

const struct rpc_proc nfs2_proc_getattr = {
	.name = "GETATTR",
	.decode = nfs2_decode_fh_args,
	.args_size = sizeof(struct nfs2_fh_args),
	.run = nfs2_getattr,
	.flags = RPC_PROMPT,
};

const struct rpc_proc nfs2_proc_setattr = {
	.name = "SETATTR",
	.decode = nfs2_decode_setattr,
	.args_size = sizeof(struct setattr_args),
	.run = nfs2_setattr,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = 4 + NFS2_FATTR_SIZE,
};

const struct rpc_proc nfs2_proc_statfs = {
	.name = "STATFS",
	.decode = nfs2_decode_fh_args,
	.args_size = sizeof(struct nfs2_fh_args),
	.run = proc_statfs,
};

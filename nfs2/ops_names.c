/* SPDX-License-Identifier: BSD-2-Clause */
/* REMOVE, RENAME, LINK and RMDIR (RFC 1094 sections 2.2.11 to 2.2.13, 2.2.16). */
#include "nfs2/nfs2_args.h"
#include "nfs2/nfs2_procs.h"
#include "nfs2/result.h"

static void nfs2_encode_names(struct nfs3_op *op, int rc)
{
	nfs2_put_status(op, rc);
}

typedef int remove_fn(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len,
		      struct vfs_dir_change *change);

static enum rpc_run nfs2_run_remove(struct rpc_request *req, const struct nfs2_dirop_args *a,
				    remove_fn *do_remove)
{
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open_packed(op, &a->dir, NFS3_OPEN_CHANGES);
	if (rc == 0)
		rc = nfs3_name_check(&a->name);
	if (rc == 0)
		rc = nfs3_op_remove(op, &a->name, do_remove, NULL);
	op->sync.node[0] = op->node[0];
	return nfs3_op_settle(op, rc, nfs2_encode_names);
}

static enum rpc_run nfs2_remove(struct rpc_request *req, void *args)
{
	return nfs2_run_remove(req, args, vfs_remove);
}

static enum rpc_run nfs2_rmdir(struct rpc_request *req, void *args)
{
	return nfs2_run_remove(req, args, vfs_rmdir);
}

struct rename_args {
	struct nfs2_dirop_args from, to;
};

static bool nfs2_decode_rename(struct xdr_in *x, void *args)
{
	struct rename_args *a = args;

	nfs2_get_dirop(x, &a->from);
	nfs2_get_dirop(x, &a->to);
	return !x->err;
}

/* node[0]: the source directory, node[1]: the target directory; two references if they are the same. */
static int nfs2_run_rename(struct nfs3_op *op, const struct rename_args *a)
{
	struct vfs_rename r = {
		.from = a->from.name.bytes,
		.from_len = a->from.name.len,
		.to = a->to.name.bytes,
		.to_len = a->to.name.len,
	};
	int rc = nfs3_op_open_packed(op, &a->from.dir, NFS3_OPEN_CHANGES);

	if (rc == 0)
		rc = nfs3_op_open_other_packed(op, &a->to.dir, 1);
	if (rc == 0)
		rc = nfs3_name_check(&a->from.name);
	if (rc == 0)
		rc = nfs3_name_check(&a->to.name);
	if (rc == 0)
		rc = nfs3_op_check_boundary(op, 0, &a->from.name);
	if (rc == 0)
		rc = nfs3_op_check_boundary(op, 1, &a->to.name);
	if (rc < 0)
		return rc;
	r.from_dir = op->node[0];
	r.to_dir = op->node[1];
	return nfs3_op_rename(op, &r);
}

static enum rpc_run nfs2_rename(struct rpc_request *req, void *args)
{
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs2_run_rename(op, args);
	op->sync.how = VFS_SYNC_ONE_STEP;
	op->sync.node[0] = op->node[0];
	if (op->node[1] != op->node[0])
		op->sync.node[1] = op->node[1];
	return nfs3_op_settle(op, rc, nfs2_encode_names);
}

struct link_args {
	struct vfs_packed_fh file;
	struct nfs2_dirop_args where;
};

static bool nfs2_decode_link(struct xdr_in *x, void *args)
{
	struct link_args *a = args;

	nfs2_get_fh(x, &a->file);
	nfs2_get_dirop(x, &a->where);
	return !x->err;
}

/* node[0]: the file, node[1]: the directory that gets the name. */
static int nfs2_run_link(struct nfs3_op *op, const struct link_args *a)
{
	int rc = nfs3_op_open_packed(op, &a->file, NFS3_OPEN_CHANGES);

	if (rc == 0)
		rc = nfs3_op_open_other_packed(op, &a->where.dir, 1);
	if (rc == 0)
		rc = nfs3_name_check(&a->where.name);
	if (rc < 0)
		return rc;
	return nfs3_op_link(op, &a->where.name, NULL);
}

static enum rpc_run nfs2_link(struct rpc_request *req, void *args)
{
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs2_run_link(op, args);
	op->sync.data_from = VFS_SYNC_METADATA;
	op->sync.how = VFS_SYNC_ONE_STEP;
	op->sync.node[0] = op->node[0];
	op->sync.node[1] = op->node[1];
	return nfs3_op_settle(op, rc, nfs2_encode_names);
}

const struct rpc_proc nfs2_proc_remove = {
	.name = "REMOVE",
	.decode = nfs2_decode_dirop,
	.args_size = sizeof(struct nfs2_dirop_args),
	.run = nfs2_remove,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = 4,
};

const struct rpc_proc nfs2_proc_rename = {
	.name = "RENAME",
	.decode = nfs2_decode_rename,
	.args_size = sizeof(struct rename_args),
	.run = nfs2_rename,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = 4,
};

const struct rpc_proc nfs2_proc_link = {
	.name = "LINK",
	.decode = nfs2_decode_link,
	.args_size = sizeof(struct link_args),
	.run = nfs2_link,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = 4,
};

const struct rpc_proc nfs2_proc_rmdir = {
	.name = "RMDIR",
	.decode = nfs2_decode_dirop,
	.args_size = sizeof(struct nfs2_dirop_args),
	.run = nfs2_rmdir,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = 4,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* REMOVE, RMDIR, RENAME and LINK (RFC 1813 sections 3.3.12 to 3.3.15). */
#include "nfs3/nfs3_procs.h"
#include "nfs3/op.h"

static void encode_removed(struct nfs3_op *op, int rc)
{
	nfs3_put_status(op, rc);
	nfs3_put_wcc_of(op, 0);
}

typedef int remove_fn(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len,
		      struct vfs_dir_change *change);

static enum rpc_run nfs3_run_remove(struct rpc_request *req, const struct nfs3_dirop_args *a,
				    remove_fn *do_remove)
{
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open(op, &a->dir, NFS3_OPEN_CHANGES);
	if (rc == 0)
		rc = nfs3_name_check(&a->name);
	if (rc == 0)
		rc = nfs3_op_remove(op, &a->name, do_remove, nfs3_op_change(op, 0));
	op->sync.node[0] = op->node[0];
	return nfs3_op_settle(op, rc, encode_removed);
}

enum rpc_run nfs3_remove(struct rpc_request *req, void *args)
{
	return nfs3_run_remove(req, args, vfs_remove);
}

enum rpc_run nfs3_rmdir(struct rpc_request *req, void *args)
{
	return nfs3_run_remove(req, args, vfs_rmdir);
}

const struct nfs3_proc nfs3_proc_remove = {
	.rpc = {
		.name = "REMOVE",
		.decode = nfs3_decode_dirop,
		.args_size = sizeof(struct nfs3_dirop_args),
		.run = nfs3_remove,
		.flags = RPC_NONIDEMPOTENT,
		.reply_size = 4 + NFS3_WCC_SIZE,
	},
	/* Not listed: PERM (sticky directories), ISDIR (a directory), INVAL ("."), NOTEMPTY (".."). */
	.errors = NFS3_ERRORS(NFS3_E_NOENT | NFS3_E_NOTDIR | NFS3_E_NAMETOOLONG | NFS3_E_ROFS |
			      NFS3_E_PERM | NFS3_E_ISDIR | NFS3_E_INVAL | NFS3_E_NOTEMPTY),
};

const struct nfs3_proc nfs3_proc_rmdir = {
	.rpc = {
		.name = "RMDIR",
		.decode = nfs3_decode_dirop,
		.args_size = sizeof(struct nfs3_dirop_args),
		.run = nfs3_rmdir,
		.flags = RPC_NONIDEMPOTENT,
		.reply_size = 4 + NFS3_WCC_SIZE,
	},
	/* PERM (sticky directories): not listed. */
	.errors = NFS3_ERRORS(NFS3_E_NOENT | NFS3_E_INVAL | NFS3_E_EXIST | NFS3_E_NOTDIR |
			      NFS3_E_NAMETOOLONG | NFS3_E_ROFS | NFS3_E_NOTEMPTY | NFS3_E_NOTSUPP |
			      NFS3_E_PERM),
};

/* RENAME and LINK (RFC 1813 sections 3.3.14, 3.3.15). */

static void encode_renamed(struct nfs3_op *op, int rc)
{
	nfs3_put_status(op, rc);
	nfs3_put_wcc_of(op, 0);
	nfs3_put_wcc_of(op, 1);
}

static bool nfs3_decode_rename(struct xdr_in *x, void *args)
{
	struct nfs3_rename_args *a = args;

	nfs3_get_dirop(x, &a->from);
	nfs3_get_dirop(x, &a->to);
	return !x->err;
}

/* node[0]: the source directory, node[1]: the target directory; two references if they are the
 * same. */
static int nfs3_run_rename(struct nfs3_op *op, const struct nfs3_rename_args *a)
{
	struct vfs_rename r = {
		.from = a->from.name.bytes,
		.from_len = a->from.name.len,
		.to = a->to.name.bytes,
		.to_len = a->to.name.len,
	};
	int rc = nfs3_op_open(op, &a->from.dir, NFS3_OPEN_CHANGES);

	if (rc == 0)
		rc = nfs3_op_open_other(op, &a->to.dir, 1);
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
	r.from_change = nfs3_op_change(op, 0);
	r.to_change = nfs3_op_change(op, 1);
	if (!r.to_change)
		r.from_change = NULL;
	return nfs3_op_rename(op, &r);
}

enum rpc_run nfs3_rename(struct rpc_request *req, void *args)
{
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_run_rename(op, args);
	op->sync.how = VFS_SYNC_ONE_STEP;
	op->sync.node[0] = op->node[0];
	if (op->node[1] != op->node[0])
		op->sync.node[1] = op->node[1];
	return nfs3_op_settle(op, rc, encode_renamed);
}

static void encode_linked(struct nfs3_op *op, int rc)
{
	nfs3_put_status(op, rc);
	nfs3_put_attr_of(op, op->node[0]);
	nfs3_put_wcc_of(op, 1);
}

static bool nfs3_decode_link(struct xdr_in *x, void *args)
{
	struct nfs3_link_args *a = args;

	nfs3_get_fh(x, &a->file);
	nfs3_get_dirop(x, &a->where);
	return !x->err;
}

/* node[0]: the file, node[1]: the directory that gets the name. */
static int nfs3_run_link(struct nfs3_op *op, const struct nfs3_link_args *a)
{
	int rc = nfs3_op_open(op, &a->file, NFS3_OPEN_CHANGES);

	if (rc == 0)
		rc = nfs3_op_open_other(op, &a->where.dir, 1);
	if (rc == 0)
		rc = nfs3_name_check(&a->where.name);
	if (rc < 0)
		return rc;
	return nfs3_op_link(op, &a->where.name, nfs3_op_change(op, 1));
}

enum rpc_run nfs3_link(struct rpc_request *req, void *args)
{
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_run_link(op, args);
	op->sync.data_from = VFS_SYNC_METADATA;
	op->sync.how = VFS_SYNC_ONE_STEP;
	op->sync.node[0] = op->node[0];
	op->sync.node[1] = op->node[1];
	return nfs3_op_settle(op, rc, encode_linked);
}

const struct nfs3_proc nfs3_proc_rename = {
	.rpc = {
		.name = "RENAME",
		.decode = nfs3_decode_rename,
		.args_size = sizeof(struct nfs3_rename_args),
		.run = nfs3_rename,
		.flags = RPC_NONIDEMPOTENT,
		.reply_size = 4 + 2 * NFS3_WCC_SIZE,
	},
	/* PERM (sticky directories): not listed. */
	.errors = NFS3_ERRORS(NFS3_E_NOENT | NFS3_E_EXIST | NFS3_E_XDEV | NFS3_E_NOTDIR |
			      NFS3_E_ISDIR | NFS3_E_INVAL | NFS3_E_SPACE | NFS3_E_ROFS |
			      NFS3_E_MLINK | NFS3_E_NAMETOOLONG | NFS3_E_NOTEMPTY |
			      NFS3_E_NOTSUPP | NFS3_E_PERM),
};

const struct nfs3_proc nfs3_proc_link = {
	.rpc = {
		.name = "LINK",
		.decode = nfs3_decode_link,
		.args_size = sizeof(struct nfs3_link_args),
		.run = nfs3_link,
		.flags = RPC_NONIDEMPOTENT,
		.reply_size = 4 + NFS3_WCC_SIZE + NFS3_POST_OP_ATTR_SIZE,
	},
	/* Not listed: PERM (directories, protected links), NOENT (the directory was removed), ISDIR. */
	.errors = NFS3_ERRORS(NFS3_E_EXIST | NFS3_E_XDEV | NFS3_E_NOTDIR | NFS3_E_INVAL |
			      NFS3_E_SPACE | NFS3_E_ROFS | NFS3_E_MLINK | NFS3_E_NAMETOOLONG |
			      NFS3_E_NOTSUPP | NFS3_E_PERM | NFS3_E_NOENT | NFS3_E_ISDIR),
};

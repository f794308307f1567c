/* SPDX-License-Identifier: BSD-2-Clause */
/* REMOVE and RMDIR (RFC 1813 sections 3.3.12, 3.3.13). */
#include "nfs3/op.h"
#include "nfs3/nfs3_procs.h"

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

static enum rpc_run nfs3_remove(struct rpc_request *req, void *args)
{
	return nfs3_run_remove(req, args, vfs_remove);
}

static enum rpc_run nfs3_rmdir(struct rpc_request *req, void *args)
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

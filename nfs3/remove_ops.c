/* SPDX-License-Identifier: BSD-2-Clause */
/* REMOVE and RMDIR (RFC 1813 sections 3.3.12, 3.3.13). */
#include "nfs3/op.h"
#include "nfs3/procs.h"

static void encode_removed(struct nfs3_op *op, int rc)
{
	nfs3_put_status(op, rc);
	nfs3_put_wcc_of(op, 0);
}

typedef int remove_fn(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len);

static enum rpc_run run_remove(struct rpc_request *req, const struct nfs3_dirop_args *a,
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
		rc = do_remove(&op->ctx, op->node[0], a->name.bytes, a->name.len);
	op->sync.node[0] = op->node[0];
	return nfs3_op_settle(op, rc, encode_removed);
}

enum rpc_run nfs3_remove(struct rpc_request *req, void *args)
{
	return run_remove(req, args, vfs_remove);
}

enum rpc_run nfs3_rmdir(struct rpc_request *req, void *args)
{
	return run_remove(req, args, vfs_rmdir);
}

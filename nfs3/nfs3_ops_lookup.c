/* SPDX-License-Identifier: BSD-2-Clause */
/* LOOKUP and READLINK (RFC 1813 sections 3.3.3, 3.3.5). */
#include <errno.h>

#include "nfs3/op.h"
#include "nfs3/nfs3_procs.h"

static enum rpc_run nfs3_lookup(struct rpc_request *req, void *args)
{
	struct nfs3_dirop_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open(op, &a->dir, 0);
	if (rc == 0)
		rc = nfs3_name_check(&a->name);
	if (rc == 0) {
		rc = vfs_lookup(&op->ctx, op->node[0], a->name.bytes, a->name.len, &op->node[1],
				&op->attr);
		if (rc < 0)
			op->node[1] = NULL;
		else
			rc = nfs3_op_cross(op, &a->name);
	}
	if (nfs3_put_status(op, rc)) {
		const struct vfs_fh *fh = vfs_node_fh(op->node[1]);

		xdr_put_opaque(&req->out, fh->data, fh->len);
		nfs3_put_post_op_attr(&req->out, &op->attr);
	}
	nfs3_put_attr_of(op, op->node[0]);
	return nfs3_op_end(op, rc);
}

/* A bulk item, since the text goes by a Write chunk if the client offered one (RFC 8267). */
static enum rpc_run nfs3_readlink(struct rpc_request *req, void *args)
{
	struct nfs3_fh_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct rn_payload *text = NULL;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open(op, &a->fh, 0);
	if (rc == 0) {
		text = rn_payload_get_for(req->server->pool, VFS_PATH_MAX,
					  rpc_request_account(req));
		rc = text ? vfs_readlink(&op->ctx, op->node[0], (char *)text->data, VFS_PATH_MAX)
			  : -ENOMEM;
	}
	nfs3_put_status(op, rc < 0 ? rc : 0);
	nfs3_put_attr_of(op, op->node[0]);
	if (rc > 0)
		xdr_put_bulk(&req->out, text, 0, (uint32_t)rc);
	else
		rn_payload_put(text);
	if (rc == 0)
		xdr_put_bulk(&req->out, NULL, 0, 0);
	return nfs3_op_end(op, rc < 0 ? rc : 0);
}

const struct nfs3_proc nfs3_proc_lookup = {
	.rpc = {
		.name = "LOOKUP",
		.decode = nfs3_decode_dirop,
		.args_size = sizeof(struct nfs3_dirop_args),
		.run = nfs3_lookup,
		.flags = RPC_PROMPT,
	},
	.errors = NFS3_ERRORS(NFS3_E_NOENT | NFS3_E_NOTDIR | NFS3_E_NAMETOOLONG),
};

const struct nfs3_proc nfs3_proc_readlink = {
	.rpc = {
		.name = "READLINK",
		.decode = nfs3_decode_fh_args,
		.args_size = sizeof(struct nfs3_fh_args),
		.run = nfs3_readlink,
	},
	.errors = NFS3_ERRORS(NFS3_E_INVAL | NFS3_E_NOTSUPP),
};

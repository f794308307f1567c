/* SPDX-License-Identifier: BSD-2-Clause */
/* LOOKUP and READLINK (RFC 1094 sections 2.2.5, 2.2.6). */
#include <errno.h>

#include "nfs2/nfs2_args.h"
#include "nfs2/nfs2_procs.h"
#include "nfs2/result.h"

static enum rpc_run nfs2_lookup(struct rpc_request *req, void *args)
{
	struct nfs2_dirop_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open_packed(op, &a->dir, 0);
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
	nfs2_put_diropres(op, rc);
	return nfs3_op_end(op, rc);
}

/* The longest target that NFSv2 can name is a path of 1024 bytes. Reads one byte more, to see that it is longer. */
static int read_target(struct nfs3_op *op, struct rn_payload **text)
{
	struct rpc_request *req = op->req;
	int len;

	*text = rn_payload_get_for(req->server->pool, NFS2_PATH_MAX + 1, rpc_request_account(req));
	if (!*text)
		return -ENOMEM;
	len = vfs_readlink(&op->ctx, op->node[0], (char *)(*text)->data, NFS2_PATH_MAX + 1);
	return len > (int)NFS2_PATH_MAX ? -ENAMETOOLONG : len;
}

/* A bulk item, since the text goes by a Write chunk if the client offered one (RFC 8267 section 4). */
static enum rpc_run nfs2_readlink(struct rpc_request *req, void *args)
{
	struct nfs2_fh_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct rn_payload *text = NULL;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open_packed(op, &a->fh, 0);
	if (rc == 0)
		rc = read_target(op, &text);
	nfs2_put_status(op, rc < 0 ? rc : 0);
	if (rc > 0)
		xdr_put_bulk(&req->out, text, 0, (uint32_t)rc);
	else
		rn_payload_put(text);
	if (rc == 0)
		xdr_put_bulk(&req->out, NULL, 0, 0);
	return nfs3_op_end(op, rc < 0 ? rc : 0);
}

const struct rpc_proc nfs2_proc_lookup = {
	.name = "LOOKUP",
	.decode = nfs2_decode_dirop,
	.args_size = sizeof(struct nfs2_dirop_args),
	.run = nfs2_lookup,
	.flags = RPC_PROMPT,
};

const struct rpc_proc nfs2_proc_readlink = {
	.name = "READLINK",
	.decode = nfs2_decode_fh_args,
	.args_size = sizeof(struct nfs2_fh_args),
	.run = nfs2_readlink,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GETACL, SETACL and ACCESS of NFSACL version 2. Its GETATTR is NFSv2's. A result that is no success has a status
 * only. No item is eligible for a chunk of its own (RFC 8267 section 5.2).
 */
#include <errno.h>

#include "nfs2/nfs2_args.h"
#include "nfs3/acl/acl_steps.h"
#include "nfs3/op.h"

#define ATTRSTAT_SIZE (4u + NFS2_FATTR_SIZE)

/* NFSv2 has no words for two failures of ACLs. The kernel's server sends those of NFSv3. True: NFS2_OK. */
static bool nfs2_put_acl_status(struct nfs3_op *op, int rc)
{
	if (rc == -EINVAL || rc == -EOPNOTSUPP) {
		xdr_put_u32(&op->req->out, rc == -EINVAL ? NFS2ERR_INVAL : NFS2ERR_NOTSUPP);
		return false;
	}
	return nfs2_put_status(op, rc);
}

/* Arguments of GETACL, whose word is a mask, and of ACCESS. */
struct word_args {
	struct vfs_packed_fh fh;
	uint32_t word;
};

static bool decode_word(struct xdr_in *x, void *args)
{
	struct word_args *a = args;

	nfs2_get_fh(x, &a->fh);
	a->word = xdr_get_u32(x);
	return !x->err;
}

/* Puts a whole successful result, or returns -errno with nothing put. */
static int nfs2_run_getacl(struct nfs3_op *op, const struct word_args *a)
{
	struct nfsacl_found found;
	int rc = nfs3_op_open_packed(op, &a->fh, 0);

	if (rc == 0)
		rc = nfsacl_find(op, a->word, ATTRSTAT_SIZE, &found);
	if (rc < 0)
		return rc;
	nfs2_put_acl_status(op, 0);
	nfs2_put_fattr(&op->req->out, &op->attr);
	nfsacl_put_found(op, &found);
	return 0;
}

static enum rpc_run nfs2_getacl(struct rpc_request *req, void *args)
{
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs2_run_getacl(op, args);
	if (rc < 0)
		nfs2_put_acl_status(op, rc);
	return nfs3_op_end(op, rc);
}

struct setacl_args {
	struct vfs_packed_fh fh;
	struct nfsacl_change change;
};

static bool nfs2_decode_setacl(struct xdr_in *x, void *args)
{
	struct setacl_args *a = args;

	nfs2_get_fh(x, &a->fh);
	nfsacl_get_change(x, &a->change);
	return !x->err;
}

static void nfs2_encode_setacl(struct nfs3_op *op, int rc)
{
	if (rc == 0)
		rc = vfs_getattr(&op->ctx, op->node[0], &op->attr);
	if (nfs2_put_acl_status(op, rc))
		nfs2_put_fattr(&op->req->out, &op->attr);
}

static enum rpc_run nfs2_setacl(struct rpc_request *req, void *args)
{
	struct setacl_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open_packed(op, &a->fh, NFS3_OPEN_CHANGES);
	if (rc == 0)
		rc = nfsacl_set(op, &a->change);
	return nfsacl_settle(op, rc, nfs2_encode_setacl);
}

static enum rpc_run nfs2_access(struct rpc_request *req, void *args)
{
	struct word_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	uint32_t granted = 0;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open_packed(op, &a->fh, 0);
	if (rc == 0)
		rc = nfs3_access(op, a->word, &granted, &op->attr);
	if (nfs2_put_acl_status(op, rc)) {
		nfs2_put_fattr(&req->out, &op->attr);
		xdr_put_u32(&req->out, granted);
	}
	return nfs3_op_end(op, rc);
}

const struct rpc_proc nfsacl2_proc_getacl = {
	.name = "GETACL",
	.decode = decode_word,
	.args_size = sizeof(struct word_args),
	.run = nfs2_getacl,
};

const struct rpc_proc nfsacl2_proc_setacl = {
	.name = "SETACL",
	.decode = nfs2_decode_setacl,
	.args_size = sizeof(struct setacl_args),
	.run = nfs2_setacl,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = ATTRSTAT_SIZE,
};

const struct rpc_proc nfsacl2_proc_access = {
	.name = "ACCESS",
	.decode = decode_word,
	.args_size = sizeof(struct word_args),
	.run = nfs2_access,
	.flags = RPC_PROMPT,
};

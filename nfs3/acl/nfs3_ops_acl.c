/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GETACL and SETACL of NFSACL version 3. No item is eligible for a chunk of its own (RFC 8267 section 5.2).
 */
#include "nfs3/acl/acl_steps.h"
#include "nfs3/nfs3_procs.h"

#define GETACL_HEAD_SIZE (4u + NFS3_POST_OP_ATTR_SIZE)

struct getacl_args {
	struct vfs_fh fh;
	uint32_t mask;
};

static bool decode_getacl(struct xdr_in *x, void *args)
{
	struct getacl_args *a = args;

	nfs3_get_fh(x, &a->fh);
	a->mask = xdr_get_u32(x);
	return !x->err;
}

/* Puts a whole successful result, or returns -errno with nothing put. */
static int nfs3_run_getacl(struct nfs3_op *op, const struct getacl_args *a)
{
	struct nfsacl_found found;
	int rc = nfs3_op_open(op, &a->fh, 0);

	if (rc == 0)
		rc = nfsacl_find(op, a->mask, GETACL_HEAD_SIZE, &found);
	if (rc < 0)
		return rc;
	nfs3_put_status(op, 0);
	nfs3_put_post_op_attr(&op->req->out, &op->attr);
	nfsacl_put_found(op, &found);
	return 0;
}

static enum rpc_run nfs3_getacl(struct rpc_request *req, void *args)
{
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_run_getacl(op, args);
	if (rc < 0) {
		nfs3_put_status(op, rc);
		nfs3_put_attr_of(op, op->node[0]);
	}
	return nfs3_op_end(op, rc);
}

struct setacl_args {
	struct vfs_fh fh;
	struct nfsacl_change change;
};

static bool nfs3_decode_setacl(struct xdr_in *x, void *args)
{
	struct setacl_args *a = args;

	nfs3_get_fh(x, &a->fh);
	nfsacl_get_change(x, &a->change);
	return !x->err;
}

static void nfs3_encode_setacl(struct nfs3_op *op, int rc)
{
	nfs3_put_status(op, rc);
	nfs3_put_attr_of(op, op->node[0]);
}

static enum rpc_run nfs3_setacl(struct rpc_request *req, void *args)
{
	struct setacl_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open(op, &a->fh, NFS3_OPEN_CHANGES);
	if (rc == 0)
		rc = nfsacl_set(op, &a->change);
	return nfsacl_settle(op, rc, nfs3_encode_setacl);
}

/* NOTSUPP: the export says no_acl. */
const struct nfs3_proc nfsacl_proc_getacl = {
	.rpc = {
		.name = "GETACL",
		.decode = decode_getacl,
		.args_size = sizeof(struct getacl_args),
		.run = nfs3_getacl,
	},
	.errors = NFS3_ERRORS(NFS3_E_INVAL | NFS3_E_NOTSUPP),
};

/* INVAL: the kernel refuses the ACL. */
const struct nfs3_proc nfsacl_proc_setacl = {
	.rpc = {
		.name = "SETACL",
		.decode = nfs3_decode_setacl,
		.args_size = sizeof(struct setacl_args),
		.run = nfs3_setacl,
		.flags = RPC_NONIDEMPOTENT,
		.reply_size = 4 + NFS3_POST_OP_ATTR_SIZE,
	},
	.errors = NFS3_ERRORS(NFS3_E_PERM | NFS3_E_INVAL | NFS3_E_SPACE | NFS3_E_ROFS | NFS3_E_NOTSUPP),
};

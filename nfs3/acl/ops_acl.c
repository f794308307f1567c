/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GETACL and SETACL of NFSACL version 3. Results and errors are those of the kernel's server, but
 * that SETACL leaves an ACL alone that the call does not name. No item is eligible for a chunk of
 * its own (RFC 8267 section 5.2).
 */
#include <errno.h>
#include <sys/stat.h>

#include "lib/util.h"
#include "nfs3/acl/acl_wire.h"
#include "nfs3/op.h"
#include "nfs3/procs.h"

/* exports(5) no_acl. */
static int check_shown(const struct nfs3_op *op)
{
	return op->ctx.access.flags & VFS_NO_ACL ? -EOPNOTSUPP : 0;
}

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

/* An object that can have no ACL has the one of its permission bits. */
static int get_acls(struct nfs3_op *op, struct vfs_acl_room *room, struct vfs_acls *acls)
{
	int rc = vfs_getattr(&op->ctx, op->node[0], &op->attr);

	if (rc < 0)
		return rc;
	rc = vfs_acl_get(op->node[0], op->attr.mode, room, acls);
	if (rc != -EOPNOTSUPP)
		return rc;
	vfs_acl_from_mode(op->attr.mode, room, acls);
	return 0;
}

/* Puts a whole successful result, or returns -errno with nothing put. */
static int put_acls(struct nfs3_op *op, uint32_t mask, const struct vfs_acls *acls)
{
	static const struct vfs_acl none = { 0 };
	struct rpc_request *req = op->req;
	const struct nfsacl_shown access = {
		.acl = mask & (NA_ACL | NA_ACLCNT) ? &acls->access : &none,
		.uid = op->attr.uid,
		.gid = op->attr.gid,
		.with_entries = mask & NA_ACL,
	};
	const struct nfsacl_shown inherited = {
		.acl = mask & (NA_DFACL | NA_DFACLCNT) ? &acls->inherited : &none,
		.uid = op->attr.uid,
		.gid = op->attr.gid,
		.flag = NA_ACL_DEFAULT,
		.with_entries = mask & NA_DFACL,
	};
	const size_t size =
		4 + NFS3_POST_OP_ATTR_SIZE + 4 + nfsacl_size(&access) + nfsacl_size(&inherited);

	if (xdr_out_pos(&req->out) + size > req->reply_max)
		return -NFS3_ETOOLONG;
	if (rpc_reply_grow(req, size) < 0)
		return -ENOMEM;
	nfs3_put_status(op, 0);
	nfs3_put_post_op_attr(&req->out, &op->attr);
	xdr_put_u32(&req->out, mask);
	nfsacl_put(&req->out, &access);
	nfsacl_put(&req->out, &inherited);
	return 0;
}

static int run_getacl(struct nfs3_op *op, const struct getacl_args *a)
{
	struct vfs_acl_room room;
	struct vfs_acls acls;
	int rc = nfs3_op_open(op, &a->fh, 0);

	if (rc == 0)
		rc = check_shown(op);
	if (rc == 0 && (a->mask & ~NA_MASK))
		rc = -EINVAL;
	if (rc == 0)
		rc = get_acls(op, &room, &acls);
	return rc == 0 ? put_acls(op, a->mask, &acls) : rc;
}

static enum rpc_run proc_getacl(struct rpc_request *req, void *args)
{
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = run_getacl(op, args);
	if (rc < 0) {
		nfs3_put_status(op, rc);
		nfs3_put_attr_of(op, op->node[0]);
	}
	return nfs3_op_end(op, rc);
}

struct setacl_args {
	struct vfs_fh fh;
	uint32_t mask;
	struct xdr_in lists; /* stands at the lists, which have been checked */
};

/* The lists stay in the message: the arena has no room for the longest. */
static bool decode_setacl(struct xdr_in *x, void *args)
{
	struct setacl_args *a = args;

	nfs3_get_fh(x, &a->fh);
	a->mask = xdr_get_u32(x);
	a->lists = *x;
	if (a->mask & ~NA_MASK)
		x->err = true;
	nfsacl_skip(x, a->mask & NA_ACL);
	nfsacl_skip(x, a->mask & NA_DFACL);
	return !x->err;
}

static int run_setacl(struct nfs3_op *op, const struct setacl_args *a)
{
	struct xdr_in lists = a->lists;
	struct vfs_acl_room room;
	struct vfs_acls acls = {
		.keep_access = !(a->mask & NA_ACL),
		.keep_inherited = !(a->mask & NA_DFACL),
	};
	const struct vfs_setattr set = { .acls = &acls };
	int rc = nfs3_op_open(op, &a->fh, NFS3_OPEN_CHANGES);

	if (rc == 0)
		rc = check_shown(op);
	if (rc < 0)
		return rc;
	if (vfs_node_type(op->node[0]) == S_IFLNK || !vfs_acl_supported(&op->ctx, op->node[0]))
		return -EOPNOTSUPP;
	nfsacl_get(&lists, room.access, &acls.access);
	nfsacl_get(&lists, room.inherited, &acls.inherited);
	return vfs_setattr(&op->ctx, op->node[0], &set, NULL);
}

static void encode_setacl(struct nfs3_op *op, int rc)
{
	nfs3_put_status(op, rc);
	nfs3_put_attr_of(op, op->node[0]);
}

static enum rpc_run proc_setacl(struct rpc_request *req, void *args)
{
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = run_setacl(op, args);
	op->sync.node[0] = op->node[0];
	op->sync.data_from = VFS_SYNC_METADATA;
	return nfs3_op_settle(op, rc, encode_setacl);
}

/* NOTSUPP: the export says no_acl. */
const struct nfs3_proc nfsacl_proc_getacl = {
	.rpc = {
		.name = "GETACL",
		.decode = decode_getacl,
		.args_size = sizeof(struct getacl_args),
		.run = proc_getacl,
	},
	.errors = NFS3_ERRORS(NFS3_E_INVAL | NFS3_E_NOTSUPP),
};

/* INVAL: the kernel refuses the ACL. */
const struct nfs3_proc nfsacl_proc_setacl = {
	.rpc = {
		.name = "SETACL",
		.decode = decode_setacl,
		.args_size = sizeof(struct setacl_args),
		.run = proc_setacl,
		.flags = RPC_NONIDEMPOTENT,
		.reply_size = 4 + NFS3_POST_OP_ATTR_SIZE,
	},
	.errors = NFS3_ERRORS(NFS3_E_PERM | NFS3_E_INVAL | NFS3_E_SPACE | NFS3_E_ROFS | NFS3_E_NOTSUPP),
};

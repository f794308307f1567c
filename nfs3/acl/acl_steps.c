/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs3/acl/acl_steps.h"

#include <errno.h>
#include <sys/stat.h>

#include "lib/util.h"

/* exports(5) no_acl. */
static int check_shown(const struct nfs3_op *op)
{
	return op->ctx.access.flags & VFS_NO_ACL ? -EOPNOTSUPP : 0;
}

/* An object that can have no ACL has the one of its permission bits. */
static int nfsacl_get_acls(struct nfs3_op *op, struct vfs_acl_room *room, struct vfs_acls *acls)
{
	int rc = vfs_getattr(&op->ctx, op->node[0], &op->attr);

	if (rc < 0)
		return rc;
	rc = vfs_acl_get(op->node[0], op->attr.mode, room, acls);
	if (rc != -EOPNOTSUPP)
		return rc;
	*acls = (struct vfs_acls){ 0 };
	vfs_acl_from_mode(op->attr.mode, room->access, &acls->access);
	return 0;
}

static struct nfsacl_shown shown(const struct nfs3_op *op, const struct vfs_acl *acl)
{
	return (struct nfsacl_shown){ .acl = acl, .uid = op->attr.uid, .gid = op->attr.gid };
}

/* Makes room for the result. */
static int nfsacl_make_room(struct rpc_request *req, size_t head_size, const struct nfsacl_found *f)
{
	const size_t size = head_size + 4 + nfsacl_size(&f->access) + nfsacl_size(&f->inherited);

	if (xdr_out_pos(&req->out) + size > req->reply_max)
		return -NFS3_ETOOLONG;
	return rpc_reply_grow(req, size) < 0 ? -ENOMEM : 0;
}

int nfsacl_find(struct nfs3_op *op, uint32_t mask, size_t head_size, struct nfsacl_found *out)
{
	static const struct vfs_acl none = { 0 };
	const struct vfs_acls *acls = &out->acls;
	int rc = check_shown(op);

	if (rc == 0 && (mask & ~NA_MASK))
		rc = -EINVAL;
	if (rc == 0)
		rc = nfsacl_get_acls(op, &out->room, &out->acls);
	if (rc < 0)
		return rc;
	out->mask = mask;
	out->access = shown(op, mask & (NA_ACL | NA_ACLCNT) ? &acls->access : &none);
	out->access.with_entries = mask & NA_ACL;
	out->inherited = shown(op, mask & (NA_DFACL | NA_DFACLCNT) ? &acls->inherited : &none);
	out->inherited.with_entries = mask & NA_DFACL;
	out->inherited.flag = NA_ACL_DEFAULT;
	return nfsacl_make_room(op->req, head_size, out);
}

void nfsacl_put_found(struct nfs3_op *op, const struct nfsacl_found *f)
{
	struct xdr_out *x = &op->req->out;

	xdr_put_u32(x, f->mask);
	nfsacl_put(x, &f->access);
	nfsacl_put(x, &f->inherited);
}

void nfsacl_get_change(struct xdr_in *x, struct nfsacl_change *c)
{
	c->mask = xdr_get_u32(x);
	c->lists = *x;
	if (c->mask & ~NA_MASK)
		x->err = true;
	nfsacl_skip(x, c->mask & NA_ACL);
	nfsacl_skip(x, c->mask & NA_DFACL);
}

int nfsacl_set(struct nfs3_op *op, const struct nfsacl_change *c)
{
	struct xdr_in lists = c->lists;
	struct vfs_acl_room room;
	struct vfs_acls acls = {
		.keep_access = !(c->mask & NA_ACL),
		.keep_inherited = !(c->mask & NA_DFACL),
	};
	const struct vfs_setattr set = { .acls = &acls };
	int rc = check_shown(op);

	if (rc < 0)
		return rc;
	if (vfs_node_type(op->node[0]) == S_IFLNK || !vfs_acl_supported(&op->ctx, op->node[0]))
		return -EOPNOTSUPP;
	nfsacl_get(&lists, room.access, &acls.access);
	nfsacl_get(&lists, room.inherited, &acls.inherited);
	return nfs3_op_setattr(op, &set, NULL);
}

enum rpc_run nfsacl_settle(struct nfs3_op *op, int rc, void (*encode)(struct nfs3_op *op, int rc))
{
	op->sync.node[0] = op->node[0];
	op->sync.data_from = VFS_SYNC_METADATA;
	return nfs3_op_settle(op, rc, encode);
}

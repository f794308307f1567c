/* SPDX-License-Identifier: BSD-2-Clause */
/* CREATE (RFC 1094 section 2.2.10): node[0] is the directory, node[1] the new object. */
#include <errno.h>
#include <sys/stat.h>

#include "nfs2/nfs2_args.h"

static bool nfs2_decode_create(struct xdr_in *x, void *args)
{
	struct nfs3_mkdir_args *a = args;

	nfs2_get_dirop(x, &a->where);
	nfs2_get_sattr(x, &a->attr);
	return !x->err;
}

/*
 * NFSv2 has no MKNOD. By a convention of Sun's, CREATE makes what the type in the mode says: the size is the
 * number of a device, and a character device without one is a FIFO.
 */
static int nfs2_make_special(struct nfs3_op *op, struct nfs3_mkdir_args *a)
{
	struct vfs_setattr *s = &a->attr.set;
	const uint32_t dev = (uint32_t)s->size;
	struct vfs_mknod what = { .type = a->attr.type };
	struct nfs3_making making = { .special = &what };

	if (what.type == S_IFCHR && !s->set_size)
		what.type = S_IFIFO;
	if (what.type == S_IFCHR || what.type == S_IFBLK) {
		if (!s->set_size)
			return -EINVAL;
		what.major = (dev & 0xfff00) >> 8;
		what.minor = (dev & 0xff) | (dev >> 12 & 0xfff00);
	} else if (what.type != S_IFIFO && what.type != S_IFSOCK) {
		return -EINVAL;
	}
	s->set_size = false;
	making.make = nfs3_vfs_make_of(op, &a->where.name, s);
	return nfs3_op_make(op, &making);
}

/* A CREATE without a type may ask whether an existing device or FIFO may be written, as IRIX does before it opens
 * one. */
static int find_special(struct nfs3_op *op, const struct nfs3_name *name)
{
	unsigned granted = 0;
	int rc = vfs_lookup(&op->ctx, op->node[0], name->bytes, name->len, &op->node[1], &op->attr);
	uint32_t type;

	if (rc < 0) {
		op->node[1] = NULL;
		return rc;
	}
	rc = nfs3_op_cross(op, name);
	if (rc < 0)
		return rc;
	type = vfs_node_type(op->node[1]);
	if (type == S_IFCHR || type == S_IFBLK || type == S_IFIFO)
		rc = vfs_access(&op->ctx, op->node[1], VFS_MAY_WRITE, &granted, NULL);
	else
		rc = type == S_IFDIR ? -EISDIR : -EEXIST;
	if (rc == 0 && !(granted & VFS_MAY_WRITE))
		rc = -EACCES;
	if (rc < 0) {
		vfs_node_put(op->node[1]);
		op->node[1] = NULL;
	}
	return rc;
}

static int nfs2_make_file(struct nfs3_op *op, struct nfs3_mkdir_args *a, bool *is_new)
{
	const struct nfs3_name *name = &a->where.name;
	struct vfs_create cr = {
		.how = VFS_UNCHECKED, .sa = &a->attr.set, .may = VFS_MAY_WRITE, .attr = &op->attr
	};
	int rc = nfs3_op_create(op, name, &cr);

	*is_new = cr.made;
	if ((rc == -EEXIST || rc == -EISDIR) && a->attr.type == 0)
		return find_special(op, name);
	return rc;
}

static enum rpc_run nfs2_create(struct rpc_request *req, void *args)
{
	struct nfs3_mkdir_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	bool is_new = true;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_create_open_dir(op, &a->where, &a->attr);
	if (rc == 0)
		rc = a->attr.type == 0 || a->attr.type == S_IFREG ? nfs2_make_file(op, a, &is_new)
								  : nfs2_make_special(op, a);
	return nfs3_create_finish(op, &a->attr, is_new ? VFS_SYNC_MADE : VFS_SYNC_EACH, rc);
}

const struct rpc_proc nfs2_proc_create = {
	.name = "CREATE",
	.decode = nfs2_decode_create,
	.args_size = sizeof(struct nfs3_mkdir_args),
	.run = nfs2_create,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = NFS2_DIROPRES_SIZE,
	.dialect = &nfs2_dialect,
};

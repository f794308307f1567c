/* SPDX-License-Identifier: BSD-2-Clause */
/* CREATE, SYMLINK and MKDIR (RFC 1094 sections 2.2.10, 2.2.14, 2.2.15): node[0] is the directory, node[1] the
 * new object. */
#include <errno.h>
#include <sys/stat.h>

#include "nfs/bulk.h"
#include "nfs2/nfs2_args.h"

/* Longest SYMLINK text that is decoded. Longer than any target may be, so that the answer is NAMETOOLONG. */
#define SYMLINK_TEXT_MAX 65536u

static int nfs2_create_open_dir(struct nfs3_op *op, const struct nfs2_dirop_args *where,
				const struct nfs2_sattr *attr)
{
	int rc = nfs3_op_open_packed(op, &where->dir, NFS3_OPEN_CHANGES);

	if (rc == 0)
		rc = nfs3_name_check(&where->name);
	if (rc == 0 && attr->bad)
		rc = -EINVAL;
	return rc;
}

/* rc is the result of the vfs call, which sets node[1] on success only. */
static enum rpc_run nfs2_create_finish(struct nfs3_op *op, enum vfs_sync_how how, int rc,
				       void (*encode)(struct nfs3_op *op, int rc))
{
	if (rc < 0)
		op->node[1] = NULL;
	if (rc == 0 && !op->node[1] && encode == nfs2_put_diropres)
		rc = -ESTALE; /* made, and gone (struct vfs_make): the result needs a handle */
	op->sync.node[0] = op->node[0];
	op->sync.node[1] = op->node[1];
	op->sync.how = how;
	return nfs3_op_settle(op, rc, encode);
}

static struct vfs_make nfs2_vfs_make_of(struct nfs3_op *op, const struct nfs3_name *name,
					const struct vfs_setattr *sa)
{
	return (struct vfs_make){ .dir = op->node[0],
				  .name = name->bytes,
				  .len = name->len,
				  .sa = sa,
				  .attr = &op->attr };
}

struct create_args {
	struct nfs2_dirop_args where;
	struct nfs2_sattr attr;
};

static bool nfs2_decode_create(struct xdr_in *x, void *args)
{
	struct create_args *a = args;

	nfs2_get_dirop(x, &a->where);
	nfs2_get_sattr(x, &a->attr);
	return !x->err;
}

/*
 * NFSv2 has no MKNOD. By a convention of Sun's, CREATE makes what the type in the mode says: the size is the
 * number of a device, and a character device without one is a FIFO.
 */
static int nfs2_make_special(struct nfs3_op *op, struct create_args *a)
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
	making.make = nfs2_vfs_make_of(op, &a->where.name, s);
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

static int nfs2_make_file(struct nfs3_op *op, struct create_args *a, bool *is_new)
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
	struct create_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	bool is_new = true;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs2_create_open_dir(op, &a->where, &a->attr);
	if (rc == 0)
		rc = a->attr.type == 0 || a->attr.type == S_IFREG ? nfs2_make_file(op, a, &is_new)
								  : nfs2_make_special(op, a);
	return nfs2_create_finish(op, is_new ? VFS_SYNC_MADE : VFS_SYNC_EACH, rc,
				  nfs2_put_diropres);
}

static enum rpc_run nfs2_mkdir(struct rpc_request *req, void *args)
{
	struct create_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct nfs3_making making = { .target = NULL };
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs2_create_open_dir(op, &a->where, &a->attr);
	a->attr.set.set_size = false;
	making.make = nfs2_vfs_make_of(op, &a->where.name, &a->attr.set);
	if (rc == 0)
		rc = nfs3_op_make(op, &making);
	return nfs2_create_finish(op, VFS_SYNC_MADE, rc, nfs2_put_diropres);
}

struct symlink_args {
	struct nfs2_dirop_args where;
	struct xdr_bulk target;
	struct nfs2_sattr attr;
};

static bool nfs2_decode_symlink(struct xdr_in *x, void *args)
{
	struct symlink_args *a = args;

	nfs2_get_dirop(x, &a->where);
	xdr_get_bulk(x, SYMLINK_TEXT_MAX, &a->target);
	nfs2_get_sattr(x, &a->attr);
	return !x->err;
}

static int make_symlink(struct nfs3_op *op, struct symlink_args *a)
{
	struct nfs3_making making = { .target = NULL };
	char *target;
	int rc = nfs2_create_open_dir(op, &a->where, &a->attr);

	if (rc < 0)
		return rc;
	if (a->target.len == 0)
		return -ENOENT;
	if (a->target.len > NFS2_PATH_MAX)
		return -ENAMETOOLONG;
	rc = nfs_bulk_to_path(&op->req->arena, &a->target, &target);
	/* A symbolic link has neither a mode nor a size that could be set. */
	a->attr.set.set_mode = false;
	a->attr.set.set_size = false;
	if (rc < 0)
		return rc;
	making.make = nfs2_vfs_make_of(op, &a->where.name, &a->attr.set);
	making.target = target;
	return nfs3_op_make(op, &making);
}

static void nfs2_encode_symlink(struct nfs3_op *op, int rc)
{
	nfs2_put_status(op, rc);
}

static enum rpc_run nfs2_symlink(struct rpc_request *req, void *args)
{
	struct nfs3_op *op = nfs3_op_begin(req);

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	return nfs2_create_finish(op, VFS_SYNC_MADE, make_symlink(op, args), nfs2_encode_symlink);
}

#define DIROPRES_SIZE (4u + NFS2_FH_SIZE + NFS2_FATTR_SIZE)

const struct rpc_proc nfs2_proc_create = {
	.name = "CREATE",
	.decode = nfs2_decode_create,
	.args_size = sizeof(struct create_args),
	.run = nfs2_create,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = DIROPRES_SIZE,
};

const struct rpc_proc nfs2_proc_mkdir = {
	.name = "MKDIR",
	.decode = nfs2_decode_create,
	.args_size = sizeof(struct create_args),
	.run = nfs2_mkdir,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = DIROPRES_SIZE,
};

const struct rpc_proc nfs2_proc_symlink = {
	.name = "SYMLINK",
	.decode = nfs2_decode_symlink,
	.args_size = sizeof(struct symlink_args),
	.run = nfs2_symlink,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = 4,
};

/* REMOVE, RENAME, LINK and RMDIR (RFC 1094 sections 2.2.11 to 2.2.13, 2.2.16). */

static void nfs2_encode_names(struct nfs3_op *op, int rc)
{
	nfs2_put_status(op, rc);
}

typedef int remove_fn(struct vfs_ctx *ctx, struct vfs_node *dir, const char *name, uint32_t len,
		      struct vfs_dir_change *change);

static enum rpc_run nfs2_run_remove(struct rpc_request *req, const struct nfs2_dirop_args *a,
				    remove_fn *do_remove)
{
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_op_open_packed(op, &a->dir, NFS3_OPEN_CHANGES);
	if (rc == 0)
		rc = nfs3_name_check(&a->name);
	if (rc == 0)
		rc = nfs3_op_remove(op, &a->name, do_remove, NULL);
	op->sync.node[0] = op->node[0];
	return nfs3_op_settle(op, rc, nfs2_encode_names);
}

static enum rpc_run nfs2_remove(struct rpc_request *req, void *args)
{
	return nfs2_run_remove(req, args, vfs_remove);
}

static enum rpc_run nfs2_rmdir(struct rpc_request *req, void *args)
{
	return nfs2_run_remove(req, args, vfs_rmdir);
}

struct rename_args {
	struct nfs2_dirop_args from, to;
};

static bool nfs2_decode_rename(struct xdr_in *x, void *args)
{
	struct rename_args *a = args;

	nfs2_get_dirop(x, &a->from);
	nfs2_get_dirop(x, &a->to);
	return !x->err;
}

/* node[0]: the source directory, node[1]: the target directory; two references if they are the same. */
static int nfs2_run_rename(struct nfs3_op *op, const struct rename_args *a)
{
	struct vfs_rename r = {
		.from = a->from.name.bytes,
		.from_len = a->from.name.len,
		.to = a->to.name.bytes,
		.to_len = a->to.name.len,
	};
	int rc = nfs3_op_open_packed(op, &a->from.dir, NFS3_OPEN_CHANGES);

	if (rc == 0)
		rc = nfs3_op_open_other_packed(op, &a->to.dir, 1);
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
	return nfs3_op_rename(op, &r);
}

static enum rpc_run nfs2_rename(struct rpc_request *req, void *args)
{
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs2_run_rename(op, args);
	op->sync.how = VFS_SYNC_ONE_STEP;
	op->sync.node[0] = op->node[0];
	if (op->node[1] != op->node[0])
		op->sync.node[1] = op->node[1];
	return nfs3_op_settle(op, rc, nfs2_encode_names);
}

struct link_args {
	struct vfs_packed_fh file;
	struct nfs2_dirop_args where;
};

static bool nfs2_decode_link(struct xdr_in *x, void *args)
{
	struct link_args *a = args;

	nfs2_get_fh(x, &a->file);
	nfs2_get_dirop(x, &a->where);
	return !x->err;
}

/* node[0]: the file, node[1]: the directory that gets the name. */
static int nfs2_run_link(struct nfs3_op *op, const struct link_args *a)
{
	int rc = nfs3_op_open_packed(op, &a->file, NFS3_OPEN_CHANGES);

	if (rc == 0)
		rc = nfs3_op_open_other_packed(op, &a->where.dir, 1);
	if (rc == 0)
		rc = nfs3_name_check(&a->where.name);
	if (rc < 0)
		return rc;
	return nfs3_op_link(op, &a->where.name, NULL);
}

static enum rpc_run nfs2_link(struct rpc_request *req, void *args)
{
	struct nfs3_op *op = nfs3_op_begin(req);
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs2_run_link(op, args);
	op->sync.data_from = VFS_SYNC_METADATA;
	op->sync.how = VFS_SYNC_ONE_STEP;
	op->sync.node[0] = op->node[0];
	op->sync.node[1] = op->node[1];
	return nfs3_op_settle(op, rc, nfs2_encode_names);
}

const struct rpc_proc nfs2_proc_remove = {
	.name = "REMOVE",
	.decode = nfs2_decode_dirop,
	.args_size = sizeof(struct nfs2_dirop_args),
	.run = nfs2_remove,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = 4,
};

const struct rpc_proc nfs2_proc_rename = {
	.name = "RENAME",
	.decode = nfs2_decode_rename,
	.args_size = sizeof(struct rename_args),
	.run = nfs2_rename,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = 4,
};

const struct rpc_proc nfs2_proc_link = {
	.name = "LINK",
	.decode = nfs2_decode_link,
	.args_size = sizeof(struct link_args),
	.run = nfs2_link,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = 4,
};

const struct rpc_proc nfs2_proc_rmdir = {
	.name = "RMDIR",
	.decode = nfs2_decode_dirop,
	.args_size = sizeof(struct nfs2_dirop_args),
	.run = nfs2_rmdir,
	.flags = RPC_NONIDEMPOTENT,
	.reply_size = 4,
};

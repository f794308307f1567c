/* SPDX-License-Identifier: BSD-2-Clause */
/* CREATE, MKDIR, SYMLINK and MKNOD (RFC 1813 sections 3.3.8 to 3.3.11): node[0] is the directory,
 * node[1] the new object. */
#include <errno.h>
#include <sys/stat.h>

#include "nfs/bulk.h"
#include "nfs3/op.h"
#include "nfs3/nfs3_procs.h"

static void encode_made(struct nfs3_op *op, int rc)
{
	struct xdr_out *x = &op->req->out;

	if (op->dialect) {
		op->dialect->put_found(op, rc);
		return;
	}
	if (nfs3_put_status(op, rc)) {
		/* Without a node: made, and gone (struct vfs_make). */
		nfs3_put_post_op_fh(x, op->node[1] ? vfs_node_fh(op->node[1]) : NULL);
		nfs3_put_post_op_attr(x, op->node[1] ? &op->attr : NULL);
	}
	nfs3_put_wcc_of(op, 0);
}

int nfs3_create_open_dir(struct nfs3_op *op, const struct nfs3_dirop_args *where,
			 const struct nfs3_sattr *attr)
{
	int rc = nfs3_op_open(op, &where->dir, NFS3_OPEN_CHANGES);

	if (rc == 0)
		rc = nfs3_name_check(&where->name);
	if (rc == 0 && attr->bad)
		rc = -EINVAL;
	return rc;
}

static enum rpc_run nfs3_create_settle(struct nfs3_op *op, const struct nfs3_sattr *attr,
				       enum vfs_sync_how how, int rc,
				       void (*encode)(struct nfs3_op *op, int rc))
{
	if (rc < 0)
		op->node[1] = NULL;
	op->sync.node[0] = op->node[0];
	op->sync.node[1] = op->node[1];
	op->sync.how = how;
	op->sync.with_entry = !vfs_set_after_making(&attr->set);
	return nfs3_op_settle(op, rc, encode);
}

enum rpc_run nfs3_create_finish(struct nfs3_op *op, const struct nfs3_sattr *attr,
				enum vfs_sync_how how, int rc)
{
	return nfs3_create_settle(op, attr, how, rc, encode_made);
}

struct create_args {
	struct nfs3_dirop_args where;
	uint32_t how; /* enum createmode3 */
	struct nfs3_sattr attr;
	uint8_t verf[8];
};

static bool nfs3_decode_create(struct xdr_in *x, void *args)
{
	struct create_args *a = args;

	nfs3_get_dirop(x, &a->where);
	a->how = xdr_get_u32(x);
	switch (a->how) {
	case NFS3_UNCHECKED:
	case NFS3_GUARDED:
		nfs3_get_sattr(x, &a->attr);
		break;
	case NFS3_EXCLUSIVE:
		xdr_get_fixed(x, a->verf, sizeof(a->verf));
		break;
	default:
		return false;
	}
	return !x->err;
}

static enum rpc_run nfs3_create(struct rpc_request *req, void *args)
{
	static const enum vfs_create_how how[] = {
		[NFS3_UNCHECKED] = VFS_UNCHECKED,
		[NFS3_GUARDED] = VFS_GUARDED,
		[NFS3_EXCLUSIVE] = VFS_EXCLUSIVE,
	};
	struct create_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	const struct nfs3_name *name = &a->where.name;
	struct vfs_create cr = {
		.how = how[a->how], .sa = &a->attr.set, .verf = a->verf, .may = VFS_MAY_WRITE
	};
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	cr.attr = &op->attr;
	cr.change = nfs3_op_change(op, 0);
	rc = nfs3_create_open_dir(op, &a->where, &a->attr);
	if (rc == 0)
		rc = nfs3_op_create(op, name, &cr);
	return nfs3_create_finish(op, &a->attr, cr.made ? VFS_SYNC_MADE : VFS_SYNC_EACH, rc);
}

/* The directory, name and attributes with which a call makes an object that is no regular file. */
struct vfs_make nfs3_vfs_make_of(struct nfs3_op *op, const struct nfs3_name *name,
				 const struct vfs_setattr *sa)
{
	return (struct vfs_make){ .dir = op->node[0],
				  .name = name->bytes,
				  .len = name->len,
				  .sa = sa,
				  .attr = &op->attr,
				  .change = nfs3_op_change(op, 0) };
}

static bool decode_mkdir(struct xdr_in *x, void *args)
{
	struct nfs3_mkdir_args *a = args;

	nfs3_get_dirop(x, &a->where);
	nfs3_get_sattr(x, &a->attr);
	return !x->err;
}

enum rpc_run nfs3_mkdir(struct rpc_request *req, void *args)
{
	struct nfs3_mkdir_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct nfs3_making making = { .target = NULL };
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_create_open_dir(op, &a->where, &a->attr);
	making.make = nfs3_vfs_make_of(op, &a->where.name, &a->attr.set);
	if (rc == 0)
		rc = nfs3_op_make(op, &making);
	return nfs3_create_finish(op, &a->attr, VFS_SYNC_MADE, rc);
}

static bool nfs3_decode_symlink(struct xdr_in *x, void *args)
{
	struct nfs3_symlink_args *a = args;

	nfs3_get_dirop(x, &a->where);
	nfs3_get_sattr(x, &a->attr);
	xdr_get_bulk(x, NFS3_SYMLINK_TEXT_MAX, &a->target);
	return !x->err;
}

/* -ENOENT for an empty target, as symlink(2) has it. */
static int nfs3_symlink_target(struct nfs3_op *op, const struct xdr_bulk *text, char **target)
{
	if (text->len == 0)
		return -ENOENT;
	if (op->dialect && text->len > op->dialect->path_max)
		return -ENAMETOOLONG;
	return nfs_bulk_to_path(&op->req->arena, text, target);
}

/* A status is all of NFSv2's result. */
static void encode_symlink(struct nfs3_op *op, int rc)
{
	if (op->dialect)
		nfs3_put_status(op, rc);
	else
		encode_made(op, rc);
}

enum rpc_run nfs3_symlink(struct rpc_request *req, void *args)
{
	struct nfs3_symlink_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct nfs3_making making = { .target = NULL };
	char *target = NULL;
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_create_open_dir(op, &a->where, &a->attr);
	if (rc == 0)
		rc = nfs3_symlink_target(op, &a->target, &target);
	making.make = nfs3_vfs_make_of(op, &a->where.name, &a->attr.set);
	making.target = target;
	if (rc == 0)
		rc = nfs3_op_make(op, &making);
	return nfs3_create_settle(op, &a->attr, VFS_SYNC_MADE, rc, encode_symlink);
}

static int mknod_type(uint32_t type, uint32_t *mode)
{
	switch (type) {
	case NF3CHR:
		*mode = S_IFCHR;
		return 0;
	case NF3BLK:
		*mode = S_IFBLK;
		return 0;
	case NF3SOCK:
		*mode = S_IFSOCK;
		return 0;
	case NF3FIFO:
		*mode = S_IFIFO;
		return 0;
	default:
		return -NFS3_EBADTYPE;
	}
}

struct mknod_args {
	struct nfs3_dirop_args where;
	uint32_t type; /* any value; only devices have numbers, and some types no attributes */
	struct nfs3_sattr attr;
	uint32_t major, minor;
};

static bool decode_mknod(struct xdr_in *x, void *args)
{
	struct mknod_args *a = args;

	nfs3_get_dirop(x, &a->where);
	a->type = xdr_get_u32(x);
	switch (a->type) {
	case NF3CHR:
	case NF3BLK:
		nfs3_get_sattr(x, &a->attr);
		a->major = xdr_get_u32(x);
		a->minor = xdr_get_u32(x);
		break;
	case NF3SOCK:
	case NF3FIFO:
		nfs3_get_sattr(x, &a->attr);
		break;
	}
	return !x->err;
}

static enum rpc_run proc_mknod(struct rpc_request *req, void *args)
{
	struct mknod_args *a = args;
	struct nfs3_op *op = nfs3_op_begin(req);
	struct vfs_mknod what = { .major = a->major, .minor = a->minor };
	struct nfs3_making making = { .special = &what };
	int rc;

	if (!op)
		return RPC_RUN_SYSTEM_ERR;
	rc = nfs3_create_open_dir(op, &a->where, &a->attr);
	if (rc == 0)
		rc = mknod_type(a->type, &what.type);
	making.make = nfs3_vfs_make_of(op, &a->where.name, &a->attr.set);
	if (rc == 0)
		rc = nfs3_op_make(op, &making);
	return nfs3_create_finish(op, &a->attr, VFS_SYNC_MADE, rc);
}

/* Results of the four, and what their ERRORS sections list alike. Not listed: PERM (an immutable
 * directory), INVAL (values that no file can have), NOENT (the directory was removed, and still has
 * a handle), MLINK (a directory full of directories). */
#define MADE_SIZE (4 + NFS3_WCC_SIZE + NFS3_POST_OP_FH_SIZE + NFS3_POST_OP_ATTR_SIZE)
#define MADE_ERRORS                                                                                \
	(NFS3_E_EXIST | NFS3_E_NOTDIR | NFS3_E_SPACE | NFS3_E_ROFS | NFS3_E_NAMETOOLONG |          \
	 NFS3_E_NOTSUPP | NFS3_E_PERM | NFS3_E_INVAL | NFS3_E_NOENT | NFS3_E_MLINK)

const struct nfs3_proc nfs3_proc_create = {
	.rpc = {
		.name = "CREATE",
		.decode = nfs3_decode_create,
		.args_size = sizeof(struct create_args),
		.run = nfs3_create,
		.flags = RPC_NONIDEMPOTENT,
		.reply_size = MADE_SIZE,
	},
	/* ISDIR (UNCHECKED on a directory) and FBIG: not listed. */
	.errors = NFS3_ERRORS(MADE_ERRORS | NFS3_E_ISDIR | NFS3_E_FBIG),
};

const struct nfs3_proc nfs3_proc_mkdir = {
	.rpc = {
		.name = "MKDIR",
		.decode = decode_mkdir,
		.args_size = sizeof(struct nfs3_mkdir_args),
		.run = nfs3_mkdir,
		.flags = RPC_NONIDEMPOTENT,
		.reply_size = MADE_SIZE,
	},
	.errors = NFS3_ERRORS(MADE_ERRORS),
};

const struct nfs3_proc nfs3_proc_symlink = {
	.rpc = {
		.name = "SYMLINK",
		.decode = nfs3_decode_symlink,
		.args_size = sizeof(struct nfs3_symlink_args),
		.run = nfs3_symlink,
		.flags = RPC_NONIDEMPOTENT,
		.reply_size = MADE_SIZE,
	},
	.errors = NFS3_ERRORS(MADE_ERRORS),
};

const struct nfs3_proc nfs3_proc_mknod = {
	.rpc = {
		.name = "MKNOD",
		.decode = decode_mknod,
		.args_size = sizeof(struct mknod_args),
		.run = proc_mknod,
		.flags = RPC_NONIDEMPOTENT,
		.reply_size = MADE_SIZE,
	},
	.errors = NFS3_ERRORS(MADE_ERRORS | NFS3_E_BADTYPE),
};

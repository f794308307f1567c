/* SPDX-License-Identifier: BSD-2-Clause */
/* CREATE, REMOVE, RENAME and LINK: the operations that change names of a directory, besides OPEN. */
#include <errno.h>
#include <sys/stat.h>

#include "nfs/bulk.h"
#include "nfs4/attr/nfs4_attr.h"
#include "nfs4/compound.h"
#include "nfs4/names/nfs4_name.h"
#include "nfs4/nfs4_private.h"
#include "vfs/file_state.h"

/* CREATE (RFC 7530 section 16.4, RFC 8881 section 18.4): all types except regular files. */

struct create_args {
	uint32_t type; /* nfs_ftype4, or any other number */
	struct xdr_bulk text;
	char *target; /* the same, NUL-terminated */
	uint32_t dev_major, dev_minor;
	struct nfs4_name name;
	struct nfs4_sattr attrs;
	/* Used while the operation runs: a reference of each. */
	struct vfs_node *dir, *made;
	struct vfs_dir_change change;
};

static void nfs4_decode_create(struct nfs4_compound *c, void *args)
{
	struct create_args *a = args;

	a->type = xdr_get_u32(c->in);
	if (a->type == NF4LNK) {
		/* A text that is too long is not malformed */
		xdr_get_bulk(c->in, UINT32_MAX, &a->text);
	} else if (a->type == NF4BLK || a->type == NF4CHR) {
		a->dev_major = xdr_get_u32(c->in);
		a->dev_minor = xdr_get_u32(c->in);
	}
	nfs4_get_name(c->in, &a->name);
	nfs4_get_sattr(c, &a->attrs);
}

static struct vfs_make nfs4_create_vfs_make(struct create_args *a)
{
	return (struct vfs_make){ .dir = a->dir,
				  .name = a->name.bytes,
				  .len = a->name.len,
				  .sa = &a->attrs.set,
				  .change = &a->change };
}

static int nfs4_create_make_link(struct nfs4_compound *c, struct create_args *a)
{
	const struct vfs_make m = nfs4_create_vfs_make(a);

	return vfs_symlink(&c->current.ctx, &m, a->target, &a->made);
}

static int nfs4_create_make_special(struct nfs4_compound *c, struct create_args *a, uint32_t type)
{
	const struct vfs_make m = nfs4_create_vfs_make(a);
	const struct vfs_mknod what = { .type = type,
					.major = a->dev_major,
					.minor = a->dev_minor };

	return vfs_mknod(&c->current.ctx, &m, &what, &a->made);
}

static int nfs4_create_make(struct nfs4_compound *c, struct create_args *a)
{
	const struct vfs_make m = nfs4_create_vfs_make(a);

	switch (a->type) {
	case NF4DIR:
		return vfs_mkdir(&c->current.ctx, &m, &a->made);
	case NF4LNK:
		return nfs4_create_make_link(c, a);
	case NF4BLK:
		return nfs4_create_make_special(c, a, S_IFBLK);
	case NF4CHR:
		return nfs4_create_make_special(c, a, S_IFCHR);
	case NF4SOCK:
		return nfs4_create_make_special(c, a, S_IFSOCK);
	default:
		return nfs4_create_make_special(c, a, S_IFIFO);
	}
}

static bool can_be_created(uint32_t type)
{
	return type == NF4DIR || type == NF4LNK || type == NF4BLK || type == NF4CHR ||
	       type == NF4SOCK || type == NF4FIFO;
}

static int nfs4_create_end(struct nfs4_compound *c, int rc)
{
	struct create_args *a = c->args;

	if (rc == 0) {
		nfs4_put_cinfo(c->out, &a->change);
		nfs4_put_bitmap(c->out, &a->attrs.given);
		nfs4_object_move(&c->current, a->made);
	} else {
		vfs_node_put(a->made);
	}
	vfs_node_put(a->dir);
	return nfs4_status(c->minor, rc);
}

static enum nfs4_sattr_use nfs4_create_sattr_use(uint32_t type)
{
	switch (type) {
	case NF4DIR:
		return NFS4_SATTR_MKDIR;
	case NF4LNK:
		return NFS4_SATTR_SYMLINK;
	default:
		return NFS4_SATTR_CREATE;
	}
}

static int nfs4_create_check(struct nfs4_compound *c, struct create_args *a)
{
	int status = nfs4_need(c, &c->current, NFS4_NEED_DIR);

	if (status == NFS4_OK && !can_be_created(a->type))
		status = NFS4ERR_BADTYPE;
	if (status == NFS4_OK)
		status = nfs4_name_check(&a->name);
	if (status == NFS4_OK)
		status = nfs4_need(c, &c->current, NFS4_NEED_WRITABLE);
	return status == NFS4_OK ? nfs4_sattr_check(c, &a->attrs, nfs4_create_sattr_use(a->type))
				 : status;
}

static int run_create(struct nfs4_compound *c, void *args)
{
	struct create_args *a = args;
	int status = nfs4_create_check(c, a);
	int rc;

	if (status != NFS4_OK)
		return status;
	a->dir = c->current.node;
	vfs_node_ref(a->dir);
	rc = a->type == NF4LNK ? nfs_bulk_to_path(&c->req->arena, &a->text, &a->target) : 0;
	if (rc == 0)
		do
			rc = nfs4_create_make(c, a);
		while (nfs4_await(c, rc));
	if (rc < 0)
		a->made = NULL;
	struct vfs_sync sync = { .node = { a->dir, a->made },
				 .how = VFS_SYNC_MADE,
				 .with_entry = !vfs_set_after_making(&a->attrs.set) };
	return nfs4_create_end(c, nfs4_settle(c, &sync, rc));
}

const struct nfs4_op nfs4_op_create = {
	.name = "CREATE",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES | NFS4_OP_SETS_FH,
	.reply_max = NFS4_CINFO_SIZE + NFS4_BITMAP_SIZE,
	.errors = NFS4_ERRORS_BY_MINOR(NFS4_E_OBJECT | NFS4_E_IO | (NFS4_E_NAME & ~NFS4_E_NOENT) |
					       NFS4_E_PERM | NFS4_E_EXIST | NFS4_E_NOSPC |
					       NFS4_E_ROFS,
				       0, NFS4_E_MLINK),
	.args_size = sizeof(struct create_args),
	.decode = nfs4_decode_create,
	.run = run_create,
};

/* REMOVE (RFC 7530 section 16.26, RFC 8881 section 18.25): files and directories alike. */

#define RACES 8 /* tries while others exchange what has the name */

struct remove_args {
	struct nfs4_name name;
	struct vfs_dir_change change; /* of the directory */
};

static void decode_remove(struct nfs4_compound *c, void *args)
{
	struct remove_args *a = args;

	nfs4_get_name(c->in, &a->name);
}

static int nfs4_remove_end(struct nfs4_compound *c, int rc)
{
	const struct remove_args *a = c->args;

	if (rc == 0)
		nfs4_put_cinfo(c->out, &a->change);
	return nfs4_status(c->minor, rc);
}

/* A file or a directory. Others may put the one in the place of the other between the two system calls. */
static int remove_any(struct nfs4_object *dir, struct remove_args *a)
{
	int rc = -ENOTDIR;

	for (unsigned i = 0; i < RACES && rc == -ENOTDIR; i++) {
		rc = vfs_remove(&dir->ctx, dir->node, a->name.bytes, a->name.len, &a->change);
		if (rc == -EISDIR)
			rc = vfs_rmdir(&dir->ctx, dir->node, a->name.bytes, a->name.len,
				       &a->change);
	}
	return rc;
}

static int nfs4_run_remove(struct nfs4_compound *c, void *args)
{
	struct remove_args *a = args;
	struct nfs4_object *dir = &c->current;
	int status = nfs4_need(c, dir, NFS4_NEED_DIR);
	struct vfs_conflict cf;
	int rc;

	if (status == NFS4_OK)
		status = nfs4_name_check(&a->name);
	if (status == NFS4_OK)
		status = nfs4_need(c, dir, NFS4_NEED_WRITABLE);
	if (status != NFS4_OK)
		return status;
	rc = nfs4_name_check_boundary(c, dir->node, &a->name);
	if (rc == 0)
		do {
			nfs4_take_begin(&dir->ctx, &cf);
			rc = remove_any(dir, a);
		} while (nfs4_take_again(c, &dir->ctx, rc, &status));
	if (status != NFS4_OK)
		return status;
	struct vfs_sync sync = { .node = { dir->node } };
	return nfs4_remove_end(c, nfs4_settle(c, &sync, rc));
}

const struct nfs4_op nfs4_op_remove = {
	.name = "REMOVE",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES,
	.reply_max = NFS4_CINFO_SIZE,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_NAME | NFS4_E_ROFS |
			      NFS4_E_NOTEMPTY | NFS4_E_FILE_OPEN),
	.args_size = sizeof(struct remove_args),
	.decode = decode_remove,
	.run = nfs4_run_remove,
};

/* RENAME and LINK (RFC 7530 sections 16.27, 16.9; RFC 8881 sections 18.26, 18.9). */

/* The saved filehandle and the current directory must be of one export, which must be writable. */
static int nfs4_rename_check_pair(const struct nfs4_compound *c)
{
	const struct nfs4_object *from = &c->saved, *to = &c->current;

	if (from->kind != to->kind)
		return NFS4ERR_XDEV;
	if (from->kind == NFS4_FILE && from->ctx.exp != to->ctx.exp)
		return NFS4ERR_XDEV;
	return nfs4_need(c, to, NFS4_NEED_WRITABLE);
}

struct rename_args {
	struct nfs4_name from, to;
	struct vfs_dir_change from_change, to_change;
};

static void nfs4_decode_rename(struct nfs4_compound *c, void *args)
{
	struct rename_args *a = args;

	nfs4_get_name(c->in, &a->from);
	nfs4_get_name(c->in, &a->to);
}

/* Translates the error if the target exists: its type may differ, or it is a directory that is not
 * empty. */
static int rename_status(const struct nfs4_compound *c, int rc)
{
	if (rc == -EISDIR || rc == -ENOTDIR || rc == -ENOTEMPTY)
		return NFS4ERR_EXIST;
	return nfs4_status(c->minor, rc);
}

static int renamed(struct nfs4_compound *c, int rc)
{
	const struct rename_args *a = c->args;

	if (rc < 0)
		return rename_status(c, rc);
	nfs4_put_cinfo(c->out, &a->from_change);
	nfs4_put_cinfo(c->out, &a->to_change);
	return NFS4_OK;
}

static int check_rename(const struct nfs4_compound *c, const struct rename_args *a)
{
	int status = nfs4_need(c, &c->current, NFS4_NEED_DIR);

	if (status == NFS4_OK)
		status = nfs4_need(c, &c->saved, NFS4_NEED_DIR);
	if (status == NFS4_OK)
		status = nfs4_name_check(&a->from);
	if (status == NFS4_OK)
		status = nfs4_name_check(&a->to);
	return status == NFS4_OK ? nfs4_rename_check_pair(c) : status;
}

static int nfs4_run_rename(struct nfs4_compound *c, void *args)
{
	struct rename_args *a = args;
	struct vfs_node *from = c->saved.node, *to = c->current.node;
	const struct vfs_rename r = {
		.from_dir = from,
		.to_dir = to,
		.from = a->from.bytes,
		.from_len = a->from.len,
		.to = a->to.bytes,
		.to_len = a->to.len,
		.from_change = &a->from_change,
		.to_change = &a->to_change,
	};
	int status = check_rename(c, a);
	struct vfs_conflict cf;
	int rc;

	if (status != NFS4_OK)
		return status;
	rc = nfs4_name_check_boundary(c, from, &a->from);
	if (rc == 0)
		rc = nfs4_name_check_boundary(c, to, &a->to);
	if (rc == 0)
		do {
			nfs4_take_begin(&c->current.ctx, &cf);
			rc = vfs_rename(&c->current.ctx, &r);
		} while (nfs4_take_again(c, &c->current.ctx, rc, &status));
	if (status != NFS4_OK)
		return status;
	struct vfs_sync sync = { .node = { from, to != from ? to : NULL },
				 .how = VFS_SYNC_ONE_STEP };
	return renamed(c, nfs4_settle(c, &sync, rc));
}

struct link_args {
	struct nfs4_name name;
	struct vfs_dir_change change; /* of the directory */
};

static void nfs4_decode_link(struct nfs4_compound *c, void *args)
{
	struct link_args *a = args;

	nfs4_get_name(c->in, &a->name);
}

static int linked(struct nfs4_compound *c, int rc)
{
	const struct link_args *a = c->args;

	if (rc == 0)
		nfs4_put_cinfo(c->out, &a->change);
	return nfs4_status(c->minor, rc);
}

static int nfs4_link_check(const struct nfs4_compound *c, const struct link_args *a)
{
	int status = nfs4_need(c, &c->current, NFS4_NEED_DIR);

	if (status == NFS4_OK && c->saved.type == S_IFDIR)
		status = NFS4ERR_ISDIR;
	if (status == NFS4_OK)
		status = nfs4_name_check(&a->name);
	return status == NFS4_OK ? nfs4_rename_check_pair(c) : status;
}

static int nfs4_run_link(struct nfs4_compound *c, void *args)
{
	struct link_args *a = args;
	struct nfs4_object *dir = &c->current;
	struct vfs_node *file = c->saved.node;
	int status = nfs4_link_check(c, a);
	int rc;

	if (status != NFS4_OK)
		return status;
	do
		rc = vfs_link(&dir->ctx, file, dir->node, a->name.bytes, a->name.len, &a->change);
	while (nfs4_await(c, rc));
	struct vfs_sync sync = { .node = { dir->node, file },
				 .data_from = VFS_SYNC_METADATA,
				 .how = VFS_SYNC_ONE_STEP };
	return linked(c, nfs4_settle(c, &sync, rc));
}

const struct nfs4_op nfs4_op_link = {
	.name = "LINK",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH | NFS4_NEEDS_SAVED_FH,
	.flags = NFS4_OP_CHANGES,
	.reply_max = NFS4_CINFO_SIZE,
	.errors = NFS4_ERRORS_BY_MINOR(NFS4_E_OBJECT | NFS4_E_IO | (NFS4_E_NAME & ~NFS4_E_NOENT) |
					       NFS4_E_EXIST | NFS4_E_XDEV | NFS4_E_ISDIR |
					       NFS4_E_NOSPC | NFS4_E_ROFS | NFS4_E_MLINK |
					       NFS4_E_NOTSUPP | NFS4_E_FILE_OPEN,
				       NFS4_E_NOENT, 0),
	.args_size = sizeof(struct link_args),
	.decode = nfs4_decode_link,
	.run = nfs4_run_link,
};

const struct nfs4_op nfs4_op_rename = {
	.name = "RENAME",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH | NFS4_NEEDS_SAVED_FH,
	.flags = NFS4_OP_CHANGES,
	.reply_max = 2 * NFS4_CINFO_SIZE,
	.errors = NFS4_ERRORS_BY_MINOR(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_NAME | NFS4_E_EXIST |
					       NFS4_E_XDEV | NFS4_E_NOSPC | NFS4_E_ROFS |
					       NFS4_E_NOTEMPTY | NFS4_E_FILE_OPEN,
				       0, NFS4_E_MLINK),
	.args_size = sizeof(struct rename_args),
	.decode = nfs4_decode_rename,
	.run = nfs4_run_rename,
};

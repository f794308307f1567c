/* SPDX-License-Identifier: BSD-2-Clause */
/* RENAME and LINK (RFC 7530 sections 16.27, 16.9; RFC 8881 sections 18.26, 18.9). */
#include <errno.h>
#include <sys/stat.h>

#include "nfs4/compound.h"
#include "nfs4/names/cinfo.h"
#include "nfs4/names/nfs4_name.h"
#include "nfs4/nfs4_private.h"

/* The saved filehandle and the current directory must be of one export, which must be writable. */
static int nfs4_rename_check_pair(const struct nfs4_compound *c)
{
	const struct nfs4_place *from = &c->saved, *to = &c->current;

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

struct renaming {
	struct vfs_ctx *ctx;
	const struct vfs_rename *names;
};

static int nfs4_rename_names(void *arg)
{
	const struct renaming *r = arg;

	return vfs_rename(r->ctx, r->names);
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
	int rc;

	if (status != NFS4_OK)
		return status;
	rc = nfs4_name_check_boundary(c, from, &a->from);
	if (rc == 0)
		rc = nfs4_name_check_boundary(c, to, &a->to);
	if (rc == 0)
		status = nfs4_take_name(c, &c->current.ctx, nfs4_rename_names,
					&(struct renaming){ &c->current.ctx, &r }, &rc);
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
	struct nfs4_place *dir = &c->current;
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

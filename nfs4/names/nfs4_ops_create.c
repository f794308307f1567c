/* SPDX-License-Identifier: BSD-2-Clause */
/* CREATE (RFC 7530 section 16.4, RFC 8881 section 18.4): all types except regular files. */
#include <errno.h>
#include <sys/stat.h>

#include "nfs/bulk.h"
#include "nfs4/attr/nfs4_attr.h"
#include "nfs4/compound.h"
#include "nfs4/names/cinfo.h"
#include "nfs4/names/nfs4_name.h"

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
		nfs4_place_move(&c->current, a->made);
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

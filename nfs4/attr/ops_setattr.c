/* SPDX-License-Identifier: BSD-2-Clause */
/* SETATTR (RFC 7530 section 16.32, RFC 8881 section 18.30). Permissions are checked before anything
 * is changed, so the result lists all of the attributes, or none. */
#include <errno.h>

#include "nfs4/attr/nfs4_attr.h"
#include "nfs4/compound.h"
#include "nfs4/state/stateid_check.h"

struct setattr_args {
	struct nfs4_stateid sid;
	struct nfs4_sattr attrs;
};

static void nfs4_decode_setattr(struct nfs4_compound *c, void *args)
{
	struct setattr_args *a = args;

	nfs4_get_stateid(c->in, &a->sid);
	nfs4_get_sattr(c, &a->attrs);
}

/* On failure the loop puts an empty bitmap. */
static int after_sync(struct nfs4_compound *c, int rc)
{
	const struct setattr_args *a = c->args;

	if (rc == 0)
		nfs4_put_bitmap(c->out, &a->attrs.given);
	return nfs4_status(c->minor, rc);
}

/* mode_set_masked: keeps the bits outside of the mask. */
static int mask_mode(struct nfs4_place *p, struct nfs4_sattr *sa)
{
	struct vfs_attr now;
	int rc;

	if (!nfs4_bitmap_has(&sa->given, FATTR4_MODE_SET_MASKED))
		return 0;
	rc = vfs_getattr(&p->ctx, p->node, &now);
	if (rc == 0) {
		sa->set.mode = (now.mode & ~sa->mode_mask & NFS4_MODE_BITS) |
			       (sa->set.mode & sa->mode_mask);
		sa->set.set_mode = true;
	}
	return rc;
}

/* Only regular files have a size that can be set. RFC 8881 has one status for all other types. */
static int nfs4_setattr_check_type(const struct nfs4_compound *c)
{
	int status = nfs4_need(c, &c->current, NFS4_NEED_REG);

	if (c->minor > 0 && (status == NFS4ERR_ISDIR || status == NFS4ERR_SYMLINK))
		return NFS4ERR_WRONG_TYPE;
	return status;
}

static int nfs4_setattr_check(struct nfs4_compound *c, struct setattr_args *a)
{
	int status = nfs4_need(c, &c->current, NFS4_NEED_FILE | NFS4_NEED_WRITABLE);

	if (status == NFS4_OK && a->attrs.set.set_size)
		status = nfs4_setattr_check_type(c);
	return status == NFS4_OK ? nfs4_sattr_check(c, &a->attrs, NFS4_SATTR_SETATTR) : status;
}

static int nfs4_setattr_apply(struct nfs4_compound *c, struct setattr_args *a)
{
	struct nfs4_place *p = &c->current;
	int rc = mask_mode(p, &a->attrs);

	return rc == 0 ? vfs_setattr(&p->ctx, p->node, &a->attrs.set, NULL) : rc;
}

static int nfs4_run_setattr(struct nfs4_compound *c, void *args)
{
	struct setattr_args *a = args;
	struct nfs4_io_right right = { 0 };
	int status = nfs4_setattr_check(c, a);
	int rc;

	if (status == NFS4_OK && a->attrs.set.set_size)
		status = nfs4_io_begin(c, &a->sid, NFS4_IO_WRITE, &right);
	if (status != NFS4_OK)
		return status;
	a->attrs.set.opened = right.opened;
	do
		rc = nfs4_setattr_apply(c, a);
	while (nfs4_await(c, rc));
	nfs4_io_end(&right);
	if (rc == 0 && nfs4_bitmap_empty(&a->attrs.given))
		return after_sync(c, 0); /* no change to make durable */
	struct vfs_sync sync = { .node = { c->current.node },
				 .data_from = a->attrs.set.set_size ? a->attrs.set.size
								    : VFS_SYNC_METADATA };
	return after_sync(c, nfs4_settle(c, &sync, rc));
}

const struct nfs4_op nfs4_op_setattr = {
	.name = "SETATTR",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES | NFS4_OP_FAILS_WITH_BITMAP,
	.reply_max = NFS4_BITMAP_SIZE,
	.errors = NFS4_ERRORS_BY_MINOR(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_LOCKED | NFS4_E_PERM |
					       NFS4_E_INVAL | NFS4_E_FBIG | NFS4_E_NOSPC |
					       NFS4_E_ROFS,
				       NFS4_E_ISDIR, 0),
	.args_size = sizeof(struct setattr_args),
	.decode = nfs4_decode_setattr,
	.run = nfs4_run_setattr,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* REMOVE (RFC 7530 section 16.26, RFC 8881 section 18.25): files and directories alike. */
#include <errno.h>

#include "nfs4/compound.h"
#include "nfs4/names/cinfo.h"
#include "nfs4/names/nfs4_name.h"

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

struct removal {
	struct remove_args *args;
	struct nfs4_place *dir;
};

/* A file or a directory. Others may put the one in the place of the other between the two system calls. */
static int remove_any(void *arg)
{
	const struct removal *r = arg;
	struct remove_args *a = r->args;
	struct nfs4_place *dir = r->dir;
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
	struct nfs4_place *dir = &c->current;
	int status = nfs4_need(c, dir, NFS4_NEED_DIR);
	int rc;

	if (status == NFS4_OK)
		status = nfs4_name_check(&a->name);
	if (status == NFS4_OK)
		status = nfs4_need(c, dir, NFS4_NEED_WRITABLE);
	if (status != NFS4_OK)
		return status;
	rc = nfs4_name_check_boundary(c, dir->node, &a->name);
	if (rc == 0)
		status = nfs4_take_name(c, &dir->ctx, remove_any, &(struct removal){ a, dir }, &rc);
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

/* SPDX-License-Identifier: BSD-2-Clause */
/* REMOVE (RFC 7530 section 16.26, RFC 8881 section 18.25): files and directories alike. */
#include <errno.h>

#include "nfs4/names/cinfo.h"
#include "nfs4/names/ops.h"

void nfs4_decode_remove(struct nfs4_compound *c, void *args)
{
	struct nfs4_remove_args *a = args;

	nfs4_get_name(c->in, &a->name);
}

static int removed(struct nfs4_compound *c, int rc)
{
	const struct nfs4_remove_args *a = c->args;
	struct nfs4_place *dir = &c->current;

	if (rc == 0)
		nfs4_put_cinfo(c->out, a->change, nfs4_change_of(&dir->ctx, dir->node));
	return nfs4_status(c->minor, rc);
}

int nfs4_remove(struct nfs4_compound *c, void *args)
{
	struct nfs4_remove_args *a = args;
	struct nfs4_place *dir = &c->current;
	int status = nfs4_need(c, dir, NFS4_NEED_DIR);
	int rc;

	if (status == NFS4_OK)
		status = nfs4_name_check(&a->name);
	if (status == NFS4_OK)
		status = nfs4_need(c, dir, NFS4_NEED_WRITABLE);
	if (status != NFS4_OK)
		return status;
	a->change = nfs4_change_of(&dir->ctx, dir->node);
	rc = vfs_remove(&dir->ctx, dir->node, a->name.bytes, a->name.len);
	if (rc == -EISDIR)
		rc = vfs_rmdir(&dir->ctx, dir->node, a->name.bytes, a->name.len);
	c->sync = (struct vfs_sync){ .node = { dir->node } };
	return nfs4_settle(c, rc, removed);
}

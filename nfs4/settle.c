/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes an operation's changes durable before its reply goes. */
#include "nfs4/compound.h"

static void settled(struct vfs_sync *s)
{
	struct nfs4_compound *c = s->arg;

	nfs4_compound_resume(c, c->after_sync(c, s->result < 0 ? s->result : 0));
}

int nfs4_settle(struct nfs4_compound *c, int rc, int (*after)(struct nfs4_compound *c, int rc))
{
	if (rc < 0 || (c->current.ctx.access.flags & VFS_ASYNC))
		return after(c, rc);
	c->after_sync = after;
	c->sync.ctx = &c->current.ctx;
	c->sync.done = settled;
	c->sync.arg = c;
	vfs_sync(&c->sync);
	return NFS4_PENDING;
}

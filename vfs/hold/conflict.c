/* SPDX-License-Identifier: BSD-2-Clause */
/* Holders that are in the way of others. */
#include "vfs/file_state.h"

void vfs_conflict_put(struct vfs_conflict *c)
{
	if (c->holder)
		c->holder->ops->put(c->holder);
	c->holder = NULL;
}

enum vfs_yield vfs_conflict_yield(struct vfs_conflict *c)
{
	struct vfs_holder *h = c->holder;
	enum vfs_yield yield = h && h->ops->yield ? h->ops->yield(h) : VFS_HOLDS;

	if (yield != VFS_HOLDS)
		vfs_conflict_put(c);
	return yield;
}

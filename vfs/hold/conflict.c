/* SPDX-License-Identifier: BSD-2-Clause */
/* Holders that are in the way of others. */
#include "vfs/file_state.h"

void vfs_conflict_put(struct vfs_conflict *c)
{
	if (c->holder)
		c->holder->ops->put(c->holder);
	c->holder = NULL;
}

bool vfs_holder_is_yielding(const struct vfs_holder *h)
{
	return h && atomic_load_explicit(&h->yielding, memory_order_relaxed);
}

enum vfs_yield vfs_conflict_yield(struct vfs_conflict *c)
{
	struct vfs_holder *h = c->holder;
	enum vfs_yield yield = h && h->ops->yield ? h->ops->yield(h) : VFS_HOLDS;

	if (yield == VFS_YIELDING && !atomic_exchange(&h->yielding, true))
		yield = VFS_BEGUN;
	if (yield != VFS_HOLDS)
		vfs_conflict_put(c);
	return yield;
}

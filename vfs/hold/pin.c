/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one descriptor of a file that clients have open or locked: it keeps the inode when the last
 * link goes, and carries the mirror of its locks. As long as the file's node is in the cache, the
 * node's descriptor keeps the inode, and the file inherits it when the node goes. They are counted
 * in the cache's budget, which must remain one for nodes: precautions may have a quarter of it,
 * what is needed half. An open file without a link is worth more than the budget: it gets a
 * descriptor as long as the process has any.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "vfs/base/instance.h"
#include "vfs/hold/file.h"
#include "vfs/node/cache.h"

#define PART_PRECAUTION 4u

bool vfs_file_may_hold(struct vfs *vfs, unsigned part)
{
	return atomic_load_explicit(&vfs->files->held, memory_order_relaxed) <
	       vfs->cfg.max_fds / part;
}

int vfs_file_hold(struct vfs_file *f, enum vfs_held held, int fd)
{
	int before = f->fd;

	if (before < 0 && fd >= 0)
		atomic_fetch_add(&f->vfs->files->held, 1);
	else if (before >= 0 && fd < 0)
		atomic_fetch_sub(&f->vfs->files->held, 1);
	f->fd = fd;
	f->held = held;
	return before;
}

int vfs_file_release(struct vfs_file *f)
{
	/* After the last lock an open file keeps it: there will be other locks, and it pins. */
	if (f->fd < 0 || f->nshares > 0 || f->ranges.count > 0)
		return -1;
	return vfs_file_hold(f, VFS_HELD_NONE, -1);
}

/* Gives an open file a descriptor unless it has one; false: nobody has it open. */
static bool pin(struct vfs_file *f, struct vfs_node *n, bool *pinned)
{
	int fd = vfs_fd_dup(f->vfs, n->path_fd);
	bool open;

	pthread_mutex_lock(&f->lock);
	open = f->nshares > 0;
	if (open && fd >= 0 && f->fd < 0) {
		vfs_file_hold(f, VFS_HELD_PIN, fd);
		fd = -1;
	}
	*pinned = f->fd >= 0;
	pthread_mutex_unlock(&f->lock);
	vfs_fd_close(f->vfs, fd);
	return open;
}

bool vfs_file_will_inherit(struct vfs *vfs)
{
	return vfs_file_may_hold(vfs, PART_PRECAUTION);
}

bool vfs_file_inherit(struct vfs_node *n)
{
	struct vfs_file *f = NULL;
	bool taken = false;

	if (n->type == S_IFREG && vfs_file_any_open(n->vfs) && vfs_file_will_inherit(n->vfs))
		f = vfs_file_find(n);
	if (!f)
		return false;
	pthread_mutex_lock(&f->lock);
	if (f->nshares > 0 && f->fd < 0) {
		vfs_file_hold(f, VFS_HELD_PIN, n->path_fd);
		taken = true;
	}
	pthread_mutex_unlock(&f->lock);
	vfs_file_put(f);
	return taken;
}

bool vfs_file_keep(struct vfs_node *n)
{
	struct vfs_file *f = vfs_file_find(n);
	bool open, pinned;

	if (!f)
		return false;
	open = pin(f, n, &pinned);
	if (open)
		atomic_store_explicit(&n->unlinked, true, memory_order_relaxed);
	vfs_file_put(f);
	return open;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/hold/unlinked.h"

#include <sys/stat.h>

#include "vfs/base/instance.h"
#include "vfs/hold/file_fd.h"
#include "vfs/hold/file_table.h"

/* Gives a file that clients hold something of a descriptor unless it has one; false: nobody does. */
static bool pin(struct vfs_file *f, struct vfs_node *n)
{
	int fd = vfs_fd_dup(f->vfs, n->path_fd);
	bool kept;

	pthread_mutex_lock(&f->lock);
	kept = vfs_file_is_kept(f);
	if (kept && fd >= 0 && f->fd < 0) {
		vfs_file_hold(f, VFS_HELD_PIN, fd);
		fd = -1;
	}
	pthread_mutex_unlock(&f->lock);
	vfs_fd_close(f->vfs, fd);
	return kept;
}

bool vfs_unlinked_link_lost(struct vfs_node *n)
{
	struct vfs_file *f = vfs_file_find(n);
	enum vfs_link_state linked = VFS_LINKED;
	bool kept;

	if (!f)
		return false;
	kept = pin(f, n);
	if (kept)
		atomic_compare_exchange_strong(&n->link, &linked, VFS_UNLINKED_OPEN);
	vfs_file_put(f);
	return kept;
}

static bool may_inherit(struct vfs *vfs)
{
	return vfs_file_may_hold(vfs, VFS_PART_PRECAUTION);
}

bool vfs_unlinked_leave_fd(struct vfs_node *n)
{
	struct vfs_file *f = NULL;
	bool taken = false;

	if ((n->type == S_IFREG || n->type == S_IFDIR) && vfs_file_any_kept(n->vfs) &&
	    may_inherit(n->vfs))
		f = vfs_file_find(n);
	if (!f)
		return false;
	pthread_mutex_lock(&f->lock);
	if (vfs_file_is_kept(f) && f->fd < 0) {
		vfs_file_hold(f, VFS_HELD_PIN, n->path_fd);
		taken = true;
	}
	pthread_mutex_unlock(&f->lock);
	vfs_file_put(f);
	return taken;
}

enum vfs_link_state vfs_unlinked_found(struct vfs *vfs, uint64_t dev, const struct vfs_fh *fh,
				       uint32_t nlink)
{
	if (nlink > 0)
		return VFS_LINKED;
	return vfs_file_keeps_inode(vfs, dev, fh) ? VFS_UNLINKED_OPEN : VFS_GONE;
}

bool vfs_unlinked_needs_node(struct vfs *vfs, uint64_t dev, const struct vfs_fh *fh)
{
	return vfs_file_keeps_inode(vfs, dev, fh);
}

void vfs_unlinked_share_made(struct vfs_node *n)
{
	struct statx sx;

	/* The file inherits the node's descriptor in time; where it could not, this pins. */
	if (!may_inherit(n->vfs))
		vfs_node_stat(n, &sx);
}

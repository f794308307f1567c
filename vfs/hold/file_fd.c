/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/hold/file_fd.h"

#include "vfs/base/instance.h"

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
	if (f->fd < 0 || vfs_file_is_kept(f) || f->ranges.count > 0)
		return -1;
	return vfs_file_hold(f, VFS_HELD_NONE, -1);
}

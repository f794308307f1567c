/* SPDX-License-Identifier: BSD-2-Clause */
/* The result of statx for a name of a directory: which inode it names, and its attributes. */
#ifndef RN_VFS_SHOWN_H
#define RN_VFS_SHOWN_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>

#include "vfs/mount_table.h"

struct vfs_handle;
struct vfs_node;

struct vfs_shown {
	int64_t clock; /* the time before, in nanoseconds: for the change attribute */
	struct statx sx;
};

/* The thread has the caller's identity, as the caller may not search the directory. */
static inline int vfs_statx_name(int dirfd, const char *name, struct statx *sx)
{
	return vfs_statx_mount(dirfd, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT,
			       STATX_BASIC_STATS | STATX_BTIME, sx);
}

/* The handle of the inode that statx has shown of a name of dir: from the cache of handles, else by
 * a system call for the name below fd. -RN_ECHANGED: it cannot be told, or a mount lies over the name. */
int vfs_shown_handle(const struct vfs_node *dir, int fd, const char *name,
		     const struct vfs_shown *shown, struct vfs_handle *h);

#endif

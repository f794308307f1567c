/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/fs/local.h"

#include <linux/magic.h>
#include <sys/vfs.h>

bool vfs_fs_is_local(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return false;
	switch ((unsigned long)fs.f_type) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case F2FS_SUPER_MAGIC:
	case TMPFS_MAGIC:
		return true;
	default:
		return false;
	}
}

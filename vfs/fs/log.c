/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/fs/log.h"

#include <linux/magic.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

/* Not in the header files of Debian 12: asks whether there is a journal to checkpoint (-ENODEV:
 * none), without doing so. */
#define EXT4_CHECKPOINT _IOW('f', 43, uint32_t)
#define EXT4_CHECKPOINT_DRY_RUN 4u

static bool has_journal(int fd)
{
	uint32_t flags = EXT4_CHECKPOINT_DRY_RUN;

	return ioctl(fd, EXT4_CHECKPOINT, &flags) == 0;
}

bool vfs_has_one_log(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return false;
	switch ((unsigned long)fs.f_type) {
	case EXT4_SUPER_MAGIC:
		return has_journal(fd);
	case XFS_SUPER_MAGIC:
		return true;
	default:
		return false;
	}
}

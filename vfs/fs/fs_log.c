/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/fs/fs_log.h"

#include <endian.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Not in the header files of Debian 12: asks whether there is a journal to checkpoint (-ENODEV:
 * none), without doing so. */
#define EXT4_CHECKPOINT _IOW('f', 43, uint32_t)
#define EXT4_CHECKPOINT_DRY_RUN 4u

static bool has_journal(int fd)
{
	uint32_t flags = EXT4_CHECKPOINT_DRY_RUN;

	return ioctl(fd, EXT4_CHECKPOINT, &flags) == 0;
}

/* Offsets in ext4's superblock, little-endian, and the bit of the feature fast_commit. */
#define EXT4_SUPERBLOCK 1024
#define EXT4_COMPAT 0x5c
#define EXT4_FAST_COMMIT 0x400u

/* Reads the superblock of the device: nothing else shows the feature. */
static bool may_commit_fast(int fd)
{
	char path[64];
	uint32_t compat = 0;
	struct stat st;
	ssize_t n;
	int dev;

	if (fstat(fd, &st) != 0)
		return true;
	snprintf(path, sizeof(path), "/dev/block/%u:%u", major(st.st_dev), minor(st.st_dev));
	dev = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (dev < 0)
		return true;
	n = pread(dev, &compat, sizeof(compat), EXT4_SUPERBLOCK + EXT4_COMPAT);
	close(dev);
	return n != sizeof(compat) || (le32toh(compat) & EXT4_FAST_COMMIT);
}

bool vfs_keeps_linked(int fd)
{
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return false;
	switch ((unsigned long)fs.f_type) {
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case TMPFS_MAGIC:
		return true;
	case EXT4_SUPER_MAGIC:
		return !may_commit_fast(fd);
	default:
		return false;
	}
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

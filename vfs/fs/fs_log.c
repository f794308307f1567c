/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/fs/fs_log.h"

#include <endian.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
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

/* The name that the kernel gives to a block device, for hosts without the links that udev makes. */
static bool ext4_device_path(dev_t dev, char *path, size_t size)
{
	static const char key[] = "DEVNAME=";
	char line[128];
	bool found = false;
	FILE *f;

	snprintf(path, size, "/sys/dev/block/%u:%u/uevent", major(dev), minor(dev));
	f = fopen(path, "re");
	while (f && !found && fgets(line, sizeof(line), f)) {
		found = strncmp(line, key, sizeof(key) - 1) == 0;
		line[strcspn(line, "\n")] = '\0';
	}
	if (f)
		fclose(f);
	if (found)
		snprintf(path, size, "/dev/%s", line + sizeof(key) - 1);
	return found;
}

static int ext4_device_open(dev_t dev)
{
	char path[128];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/dev/block/%u:%u", major(dev), minor(dev));
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && ext4_device_path(dev, path, sizeof(path)))
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && (fstat(fd, &st) != 0 || st.st_rdev != dev)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Reads the superblock of the device: nothing else shows the feature. */
static bool may_commit_fast(int fd)
{
	uint32_t compat = 0;
	struct stat st;
	ssize_t n;
	int dev;

	if (fstat(fd, &st) != 0)
		return true;
	dev = ext4_device_open(st.st_dev);
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

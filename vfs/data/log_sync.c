/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbolic links, FIFOs, sockets and devices cannot be opened for fsync(2), and of a file or
 * directory there may be no descriptor left when its change is to be made durable. The export's
 * root is always open, and each file system has a way from there that leaves files' data alone:
 *
 *	ext4, XFS	One log, written in order: an fsync of an inode that was changed later takes
 *			all earlier changes along. A file without a name (O_TMPFILE) is such an
 *inode. An fsync of the directory above is not enough: XFS, and ext4 with fast commits, write the
 *log as far as that directory has changed.
 *	btrfs		Commits the transaction: an fsync logs one inode only.
 *	tmpfs, ramfs	Nothing to be done.
 *	others		syncfs(2), which writes the data of all files.
 */
#include "vfs/data/log_sync.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "vfs/base/fd_budget.h"
#include "vfs/export/mounts.h"
#include "vfs/worker/acting.h"

/* Not in the header files of Debian 12: asks whether there is a journal to checkpoint (-ENODEV:
 * none), without doing so. */
#define EXT4_CHECKPOINT _IOW('f', 43, uint32_t)
#define EXT4_CHECKPOINT_DRY_RUN 4u

static int sync_all(int fd)
{
	return syncfs(fd) == 0 ? 0 : -errno;
}

static bool has_journal(int fd)
{
	uint32_t flags = EXT4_CHECKPOINT_DRY_RUN;

	return ioctl(fd, EXT4_CHECKPOINT, &flags) == 0;
}

/* The transaction that is under way, data of files that are written without it excepted. */
static int commit_btrfs(int fd)
{
	uint64_t transaction = 0;

	if (ioctl(fd, BTRFS_IOC_START_SYNC, &transaction) != 0)
		return -errno;
	return ioctl(fd, BTRFS_IOC_WAIT_SYNC, &transaction) == 0 ? 0 : -errno;
}

/* -1: the file system takes none now (full, too old, or a file is exported). */
static int last_in_log(struct vfs_ctx *ctx, int dir)
{
	int fd = -1;

	if (vfs_act_as_root(ctx) == 0)
		fd = vfs_fd_openat(ctx->vfs, dir, ".", O_TMPFILE | O_RDWR, 0);
	return fd < 0 ? -1 : fd;
}

int vfs_log_sync(struct vfs_ctx *ctx, const struct vfs_mount *mnt, bool data, int *fd)
{
	struct statfs fs;
	int rc;

	*fd = -1;
	if (data || fstatfs(mnt->fd, &fs) != 0)
		return sync_all(mnt->fd);
	switch ((unsigned long)fs.f_type) {
	case TMPFS_MAGIC:
	case RAMFS_MAGIC:
		return 0;
	case BTRFS_SUPER_MAGIC:
		rc = commit_btrfs(mnt->fd);
		return rc == -ENOTTY || rc == -EINVAL ? sync_all(mnt->fd) : rc;
	case EXT4_SUPER_MAGIC:
		if (!has_journal(mnt->fd))
			break;
		/* fall through */
	case XFS_SUPER_MAGIC:
		*fd = last_in_log(ctx, mnt->fd);
		if (*fd >= 0)
			return 0;
	}
	return sync_all(mnt->fd);
}

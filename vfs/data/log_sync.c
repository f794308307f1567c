/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbolic links, FIFOs, sockets and devices cannot be opened for fsync(2), and of a file or
 * directory there may be no descriptor left when its change is to be made durable. The export's
 * root is always open, and each file system has a way from there that leaves files' data alone:
 *
 *	ext4, XFS	One log, written in order: an fsync of an inode that was changed later takes
 *			all earlier changes along. A file without a name (O_TMPFILE) is such an
 *			inode. An fsync of the directory above is not enough: XFS writes the log
 *			only as far as that directory has changed.
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

#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/worker/worker_state.h"

static int sync_all(int fd)
{
	return syncfs(fd) == 0 ? 0 : -errno;
}

/* The transaction that is under way, data of files that are written without it excepted. */
static int commit_btrfs(int fd)
{
	uint64_t transaction = 0;

	if (ioctl(fd, BTRFS_IOC_START_SYNC, &transaction) != 0)
		return -errno;
	return ioctl(fd, BTRFS_IOC_WAIT_SYNC, &transaction) == 0 ? 0 : -errno;
}

int vfs_log_last(struct vfs_ctx *ctx, const struct vfs_mount *mnt)
{
	int fd = -1;

	if (mnt->one_log && vfs_act_as_root(ctx) == 0)
		fd = vfs_fd_openat(ctx->vfs, mnt->fd, ".", O_TMPFILE | O_RDWR, 0);
	return fd < 0 ? -1 : fd;
}

int vfs_log_sync(struct vfs_ctx *ctx, const struct vfs_mount *mnt, bool data, int *fd)
{
	struct statfs fs;
	int rc;

	*fd = data ? -1 : vfs_log_last(ctx, mnt);
	if (*fd >= 0)
		return 0;
	if (data || fstatfs(mnt->fd, &fs) != 0)
		return sync_all(mnt->fd);
	switch ((unsigned long)fs.f_type) {
	case TMPFS_MAGIC:
	case RAMFS_MAGIC:
		return 0;
	case BTRFS_SUPER_MAGIC:
		rc = commit_btrfs(mnt->fd);
		return rc == -ENOTTY || rc == -EINVAL ? sync_all(mnt->fd) : rc;
	default:
		return sync_all(mnt->fd);
	}
}

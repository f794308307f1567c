/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vfs/export/mounts.h"
#include "vfs/fs/change.h"
#include "vfs/hold/file_change.h"
#include "vfs/meta/attr.h"
#include "vfs/node/node.h"

static struct timespec to_timespec(const struct statx_timestamp *t)
{
	return (struct timespec){ .tv_sec = t->tv_sec, .tv_nsec = t->tv_nsec };
}

static int64_t attr_statx_ns(const struct statx_timestamp *t)
{
	return t->tv_sec * INT64_C(1000000000) + t->tv_nsec;
}

/* A nanosecond less while the change that has set it may be under way: NFSv3's clients go by it. */
static struct timespec ctime_of(const struct statx *sx, bool unfinished)
{
	struct timespec t = to_timespec(&sx->stx_ctime);

	if (unfinished && t.tv_nsec-- == 0) {
		t.tv_nsec = 999999999;
		t.tv_sec--;
	}
	return t;
}

void vfs_attr_from_statx(const struct vfs_mount *mnt, const struct vfs_fh *fh,
			 const struct statx *sx, int64_t clock, struct vfs_attr *out)
{
	const struct vfs_look look = { .clock = clock,
				       .counted = atomic_load(&mnt->exp->nfs_only) };

	vfs_attr_from_look(mnt, fh, sx, &look, out);
}

void vfs_attr_from_look(const struct vfs_mount *mnt, const struct vfs_fh *fh,
			const struct statx *sx, const struct vfs_look *look, struct vfs_attr *out)
{
	struct vfs_look known = *look;

	if (S_ISREG(sx->stx_mode))
		known.unfinished =
			vfs_file_change_unfinished(mnt, fh, attr_statx_ns(&sx->stx_ctime));
	*out = (struct vfs_attr){
		.mode = sx->stx_mode,
		.nlink = sx->stx_nlink,
		.uid = sx->stx_uid,
		.gid = sx->stx_gid,
		.size = sx->stx_size,
		.used = sx->stx_blocks * 512,
		.rdev_major = sx->stx_rdev_major,
		.rdev_minor = sx->stx_rdev_minor,
		.fsid = vfs_mount_fsid(mnt, fh),
		.fileid = vfs_mount_fileid(mnt, fh, sx->stx_ino),
		.atime = to_timespec(&sx->stx_atime),
		.mtime = to_timespec(&sx->stx_mtime),
		.ctime = ctime_of(sx, known.unfinished),
		/* Linux gives its change cookie to no process; every change sets ctime. */
		.change = vfs_change_of(vfs_changes_of(mnt, sx->stx_mode), sx, &known),
		.blksize = sx->stx_blksize,
		.has_btime = sx->stx_mask & STATX_BTIME,
		.btime = to_timespec(&sx->stx_btime),
	};
}

int vfs_readlink(struct vfs_ctx *ctx, struct vfs_node *n, char *buf, uint32_t size)
{
	ssize_t len;

	(void)ctx;
	if (n->type != S_IFLNK)
		return -EINVAL;
	len = readlinkat(n->path_fd, "", buf, size);
	return len < 0 ? -errno : (int)len;
}

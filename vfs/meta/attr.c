/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/meta/attr.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/quota.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/util.h"
#include "vfs/deleg.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/change.h"
#include "vfs/hold/file_change.h"
#include "vfs/meta/dir_change.h"
#include "vfs/node/node.h"
#include "vfs/space.h"
#include "vfs/vfs_worker.h"

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

/* Attributes need no permission: whoever has the handle may see them. */
int vfs_getattr(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_attr *out)
{
	int64_t clock;
	struct statx sx;
	int rc;

	vfs_dir_keep_change(ctx, n);
	clock = vfs_change_clock(vfs_changes_of(n->mnt, n->type));
	rc = vfs_node_stat(n, &sx);
	if (rc != 0)
		return rc;
	vfs_attr_from_statx(n->mnt, &n->fh, &sx, clock, out);
	/* A holder takes what it is told with the return of its delegation for its own doing. So the value is another afterwards. */
	if (vfs_deleg_is_late(ctx, n))
		out->change--;
	return 0;
}

/*
* Limits of a file system, and how it keeps names and times. Linux tells a process the sizes;
 * the rest is known by the type of file system.
 */

#define LINKS_UNKNOWN 32000u /* what nearly every file system has at least */
#define SECOND 1000000000u
#define NTFS3_MAGIC 0x7366746e

struct fs_type {
	uint32_t magic;
	uint32_t link_max;
	uint64_t size_max;
	uint32_t time_ns; /* the least difference of two times */
	bool folds_case;
};

static const struct fs_type types[] = {
	/* 16 TiB of blocks of 4 KiB: size_max is found by the block size, and times may be whole
	 * seconds. */
	{ EXT4_SUPER_MAGIC, 65000, 0, 1, false },
	{ XFS_SUPER_MAGIC, INT32_MAX, INT64_MAX, 1, false },
	{ BTRFS_SUPER_MAGIC, 65535, INT64_MAX, 1, false },
	{ TMPFS_MAGIC, INT32_MAX, INT64_MAX, 1, false },
	{ MSDOS_SUPER_MAGIC, 1, UINT32_MAX, 2 * SECOND, true },
	{ EXFAT_SUPER_MAGIC, 1, INT64_MAX, SECOND / 100, true },
	{ NTFS3_MAGIC, 4000, INT64_MAX, 100, true },
	{ 0, LINKS_UNKNOWN, INT64_MAX, 1, false },
};

static const struct fs_type *statfs_type_of(const struct statfs *fs)
{
	const struct fs_type *t = types;

	while (t->magic && t->magic != (uint32_t)fs->f_type)
		t++;
	return t;
}

/* The number of a block has 32 bits. Files without extents, as ext3 had them, end earlier. */
static uint64_t size_max(const struct fs_type *t, const struct statfs *fs)
{
	return t->size_max ? t->size_max : (uint64_t)UINT32_MAX * (uint64_t)fs->f_bsize;
}

/* Inodes of 128 bytes, as ext3 had them, have no room for nanoseconds, nor for the time of birth.
 */
static uint32_t time_ns(const struct vfs_node *n, const struct fs_type *t)
{
	struct statx sx;

	if (t->magic != EXT4_SUPER_MAGIC ||
	    statx(n->path_fd, "", AT_EMPTY_PATH, STATX_BTIME, &sx) != 0)
		return t->time_ns;
	return sx.stx_mask & STATX_BTIME ? 1 : SECOND;
}

int vfs_statfs(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_statfs *out)
{
	const struct fs_type *t;
	struct statfs fs;
	uint64_t unit;

	rn_fiber_move(ctx->fiber);
	if (fstatfs(n->path_fd, &fs) != 0)
		return -errno;
	unit = (uint64_t)(fs.f_frsize ? fs.f_frsize : fs.f_bsize);
	t = statfs_type_of(&fs);
	*out = (struct vfs_statfs){
		.total_bytes = fs.f_blocks * unit,
		.free_bytes = fs.f_bfree * unit,
		.avail_bytes = fs.f_bavail * unit,
		.total_files = fs.f_files,
		.free_files = fs.f_ffree,
		.avail_files = fs.f_ffree,
		.name_max = fs.f_namelen < VFS_NAME_MAX ? (uint32_t)fs.f_namelen : VFS_NAME_MAX,
		.link_max = t->link_max,
		.size_max = size_max(t, &fs),
		.block = (uint32_t)fs.f_bsize,
		.time_ns = time_ns(n, t),
		.links = t->link_max > 1,
		.case_insensitive = t->folds_case,
	};
	return 0;
}

/* The beginning of struct xfs_fsop_geom, which comes with xfsprogs only. */
struct xfs_geometry {
	uint8_t sizes[92];
	uint32_t flags;
	uint8_t more[16];
};
#define XFS_GEOMETRY _IOR('X', 100, struct xfs_geometry)
#define XFS_FOLDS_CASE (1u << 12)

static bool flag_of_dir(int fd)
{
	int flags = 0; /* an int, whatever the macro says */

	return ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_CASEFOLD_FL);
}

/* The type of the file system, and for XFS how it was made. */
static bool type_folds_case(int fd)
{
	struct xfs_geometry geometry = { .flags = 0 };
	struct statfs fs;

	if (fstatfs(fd, &fs) != 0)
		return false;
	if (fs.f_type == XFS_SUPER_MAGIC)
		return ioctl(fd, XFS_GEOMETRY, &geometry) == 0 && (geometry.flags & XFS_FOLDS_CASE);
	return statfs_type_of(&fs)->folds_case;
}

bool vfs_dir_folds_case(int fd)
{
	return type_folds_case(fd) || flag_of_dir(fd);
}

bool vfs_folds_case(struct vfs_ctx *ctx, struct vfs_node *n)
{
	int fd;

	if (type_folds_case(n->mnt->fd) || flag_of_dir(n->mnt->fd))
		return true;
	fd = n->type == S_IFDIR ? vfs_node_fd(ctx, n, VFS_FD_READ) : -1;
	return fd >= 0 && flag_of_dir(fd);
}

#define BLOCK 1024u /* bytes: the unit of limits, whatever the file system's */

/* QCMD of sys/quota.h shifts a signed number out of its range. */
#define COMMAND(what, kind) ((unsigned)(what) << SUBCMDSHIFT | (kind))

static int quota_ctl(const struct vfs_node *n, unsigned what, uint32_t id, void *out)
{
#ifdef SYS_quotactl_fd
	return syscall(SYS_quotactl_fd, n->mnt->fd, what, id, out) == 0 ? 0 : -errno;
#else
	(void)n, (void)what, (void)id, (void)out;
	return -ENOSYS;
#endif
}

bool vfs_quota_supported(const struct vfs_node *n)
{
	struct dqinfo info;

	return quota_ctl(n, COMMAND(Q_GETINFO, USRQUOTA), 0, &info) == 0;
}

/* limit in blocks, 0: none. */
static uint64_t quota_bytes_left(uint64_t limit, uint64_t used, uint64_t otherwise)
{
	if (limit == 0 || limit > UINT64_MAX / BLOCK)
		return otherwise;
	limit *= BLOCK;
	return limit > used ? rn_min(limit - used, otherwise) : 0;
}

/* Nothing may ever have been counted for that user or group. */
static int quota_get_dqblk(const struct vfs_node *n, unsigned kind, uint32_t id, struct dqblk *q)
{
	int rc;

	memset(q, 0, sizeof(*q));
	rc = quota_ctl(n, COMMAND(Q_GETQUOTA, kind), id, q);
	return rc == -ENOENT ? 0 : rc;
}

int vfs_quota_get(struct vfs_ctx *ctx, struct vfs_node *n, uint32_t uid, struct vfs_quota *out)
{
	struct dqblk q;
	struct vfs_statfs fs;
	int rc = quota_get_dqblk(n, USRQUOTA, uid, &q);

	if (rc == 0)
		rc = vfs_statfs(ctx, n, &fs);
	if (rc != 0)
		return rc;
	out->used = q.dqb_curspace;
	out->avail_hard = quota_bytes_left(q.dqb_bhardlimit, out->used, fs.avail_bytes);
	out->avail_soft = quota_bytes_left(q.dqb_bsoftlimit, out->used, out->avail_hard);
	return 0;
}

/* Bytes of a limit in blocks; 0: none. */
static uint64_t quota_limit_bytes(uint64_t limit)
{
	return limit > UINT64_MAX / BLOCK ? 0 : limit * BLOCK;
}

int vfs_quota_row(const struct vfs_node *n, bool group, uint32_t id, struct vfs_quota_row *out)
{
	struct dqblk q;
	int rc = quota_get_dqblk(n, group ? GRPQUOTA : USRQUOTA, id, &q);

	if (rc != 0)
		return rc;
	out->bytes = (struct vfs_quota_limit){ .hard = quota_limit_bytes(q.dqb_bhardlimit),
					       .soft = quota_limit_bytes(q.dqb_bsoftlimit),
					       .used = q.dqb_curspace,
					       .until = (int64_t)q.dqb_btime };
	out->files = (struct vfs_quota_limit){ .hard = q.dqb_ihardlimit,
					       .soft = q.dqb_isoftlimit,
					       .used = q.dqb_curinodes,
					       .until = (int64_t)q.dqb_itime };
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a file system can hold, and how it keeps names and times. Linux tells a process the sizes;
 * the rest is known by the type of file system.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "vfs/export/mounts.h"
#include "vfs/node/node.h"
#include "vfs/vfs_worker.h"

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

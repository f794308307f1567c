/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <linux/magic.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "vfs/node.h"

#define LINK_MAX_UNKNOWN 32000 /* what nearly every file system has at least */

/* Linux tells no process how long a file may be. ext4's block numbers have 32 bits. */
static uint64_t size_max(const struct statfs *fs)
{
	switch (fs->f_type) {
	case EXT4_SUPER_MAGIC:
		return (uint64_t)UINT32_MAX * (uint64_t)fs->f_bsize;
	case MSDOS_SUPER_MAGIC:
		return UINT32_MAX;
	default:
		return INT64_MAX;
	}
}

static bool is_fat(const struct statfs *fs)
{
	return fs->f_type == MSDOS_SUPER_MAGIC || fs->f_type == EXFAT_SUPER_MAGIC;
}

int vfs_statfs(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_statfs *out)
{
	struct statfs fs;
	uint64_t unit;
	long links;

	(void)ctx;
	if (fstatfs(n->path_fd, &fs) != 0)
		return -errno;
	unit = (uint64_t)(fs.f_frsize ? fs.f_frsize : fs.f_bsize);
	links = fpathconf(n->path_fd, _PC_LINK_MAX);
	*out = (struct vfs_statfs){
		.total_bytes = fs.f_blocks * unit,
		.free_bytes = fs.f_bfree * unit,
		.avail_bytes = fs.f_bavail * unit,
		.total_files = fs.f_files,
		.free_files = fs.f_ffree,
		.avail_files = fs.f_ffree,
		.name_max = fs.f_namelen < VFS_NAME_MAX ? (uint32_t)fs.f_namelen : VFS_NAME_MAX,
		/* 127 is glibc's word for "I do not know this file system". */
		.link_max = links > 127 && links <= INT32_MAX ? (uint32_t)links : LINK_MAX_UNKNOWN,
		.size_max = size_max(&fs),
		.links = !is_fat(&fs),
		.case_insensitive = is_fat(&fs),
	};
	return 0;
}

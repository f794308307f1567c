/* SPDX-License-Identifier: BSD-2-Clause */
/* Disk quotas of users and groups. */
#ifndef RN_VFS_QUOTA_H
#define RN_VFS_QUOTA_H

#include "vfs/vfs.h"

/* Quota of a user, as it bounds what a file may grow to. Bytes. What nobody limits is limited by the
 * file system. */
struct vfs_quota {
	uint64_t used;	     /* by all files of that owner on the file system */
	uint64_t avail_hard; /* until an allocation is refused */
	uint64_t avail_soft; /* until the owner is over the soft limit */
};

/* True if the file system of n counts what each user has there. False on kernels before 5.14. */
bool vfs_quota_supported(const struct vfs_node *n);

/* Quota of the files of uid. 0 or -errno; -ESRCH: no quotas there. */
int vfs_quota_get(struct vfs_ctx *ctx, struct vfs_node *n, uint32_t uid, struct vfs_quota *out);

/* Limits as they are set, and what is used. */
struct vfs_quota_limit {
	uint64_t hard, soft; /* 0: none */
	uint64_t used;
	int64_t until; /* seconds since 1970: end of the time above the soft limit; 0: not above it */
};

struct vfs_quota_row {
	struct vfs_quota_limit bytes, files;
};

/* Quota of a user or a group on the file system of n. 0 or -errno; -ESRCH: no quotas there. */
int vfs_quota_row(const struct vfs_node *n, bool group, uint32_t id, struct vfs_quota_row *out);

#endif

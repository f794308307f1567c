/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks that copy.c and clone.c share. */
#ifndef RN_VFS_COPY_RANGE_H
#define RN_VFS_COPY_RANGE_H

#include "vfs/copy.h"

/* Bytes of a checked range, and the descriptors of both files. */
struct vfs_copy_range {
	int from_fd, to_fd;
	uint64_t count;
	struct vfs_file_change change; /* of the destination; the caller ends it */
};

/* Checks the permissions and the range, and opens both files; 0 or -errno, and nothing is to be ended. The thread may act as the
 * caller afterwards. */
int vfs_copy_range_open(const struct vfs_copy *c, struct vfs_copy_range *out);

/* True if both nodes are of one file, perhaps in different exports. */
bool vfs_copy_is_within(const struct vfs_copy *c);

/* The next system call writes the destination as WRITE does: for a user without capabilities, so
 * that the kernel clears setuid and setgid bits. 0 or -EPERM. */
int vfs_copy_act(const struct vfs_copy *c);

#endif

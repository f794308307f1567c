/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One fsync for all synchronous writes of a file that wait for the disk. A write that comes while one is under way waits for
 * the next, which begins when that ends and covers all that have come by then. They may be of different workers.
 */
#ifndef RN_VFS_WRITE_SYNC_H
#define RN_VFS_WRITE_SYNC_H

#include <stdbool.h>
#include <stdint.h>

struct vfs_ctx;
struct vfs_node;

struct vfs_written {
	uint64_t from, to; /* the part of the file that it lies in: [from, to) */
	uint64_t bytes;
	bool metadata; /* to be on disk, too: FILE_SYNC, not DATA_SYNC */
};

/* In the fiber of a write that is in the page cache: returns when it is on disk. 0 or -errno. fd is the one it was written by. */
int vfs_write_sync(struct vfs_ctx *ctx, struct vfs_node *n, int fd, const struct vfs_written *what);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* A wait of a fiber for something that ends on its worker's thread: operations of the ring, a flush. */
#ifndef RN_VFS_WORKER_VFS_WAIT_H
#define RN_VFS_WORKER_VFS_WAIT_H

#include <stdbool.h>

struct rn_fiber;
struct vfs_ctx;

struct vfs_wait {
	struct rn_fiber *fiber;
	bool ended, waits;
};

#define VFS_WAIT(ctx) ((struct vfs_wait){ .fiber = (ctx)->fiber })

/* In the fiber: until vfs_wait_ended. */
void vfs_wait(struct vfs_wait *x);
/* From vfs_worker_wait or _poll, in no fiber; or before vfs_wait. x may be gone when it returns. */
void vfs_wait_ended(struct vfs_wait *x);

/* In the fiber: lets its worker serve others, then goes on. */
void vfs_worker_yield(struct vfs_ctx *ctx);

#endif

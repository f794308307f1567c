/* SPDX-License-Identifier: BSD-2-Clause */
/* What a prompt worker does (vfs/vfs_worker.h), where other workers use their ring or change their
 * identity. */
#ifndef RN_VFS_PROMPT_H
#define RN_VFS_PROMPT_H

#include "vfs/worker/worker_state.h"

struct vfs_ctx;

/* The operations of vfs/worker/ring.h. False: the fiber is on a worker that may block, where it was, or has moved to. Only what
 * is in memory is read. */
bool vfs_prompt_read(struct vfs_ctx *ctx, const struct vfs_ring_rw *rw, int *n);
/* Only what is in_place, and not as_user. */
bool vfs_prompt_write(struct vfs_ctx *ctx, const struct vfs_ring_rw *rw, int *n);

#endif

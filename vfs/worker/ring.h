/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations of a worker, which the fiber waits for: the worker serves others meanwhile. A full
 * submission queue is submitted and tried again, an overflown completion queue is kept by the
 * kernel; nothing is dropped. A thread that must not block reads what is in memory, and writes to
 * memory; for anything else the fiber moves.
 *
 * The identity of the thread does not matter: every request carries a personality, root's or, for
 * as_user, one without capabilities, so that the kernel clears set-uid and set-gid bits (a write
 * as fsuid 0 would keep them). No permission is checked beyond the open descriptor.
 */
#ifndef RN_VFS_RING_H
#define RN_VFS_RING_H

#include "vfs/worker/worker_state.h"

/* Bytes moved, or -errno. */
int vfs_ring_read(struct vfs_ctx *ctx, const struct vfs_ring_rw *rw);
int vfs_ring_write(struct vfs_ctx *ctx, const struct vfs_ring_rw *rw);
/* len 0: the whole file. Data and metadata. 0 or -errno. */
int vfs_ring_fsync(struct vfs_ctx *ctx, int fd, const struct vfs_ring_sync *s);
int vfs_ring_fallocate(struct vfs_ctx *ctx, const struct vfs_ring_fallocate *f);
int vfs_ring_fadvise(struct vfs_ctx *ctx, const struct vfs_ring_fadvise *f);

/* An fsync that nobody waits for here: op->complete() is called from vfs_worker_wait or _poll. The
 * op belongs to the operation until then. Not on a thread that must not block. */
void vfs_ring_begin_fsync(struct vfs_worker *w, struct vfs_ring_op *op, int fd, uint64_t offset,
			  uint32_t len);

/* Within vfs/worker/. */
int vfs_ring_watch(struct vfs_worker *w);
/* Submits, waits up to timeout_ms for a completion (0: not; -1: for ever), and moves completions to
 * w->finished and w->watch. */
int vfs_ring_enter(struct vfs_worker *w, int timeout_ms);

#endif

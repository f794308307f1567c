/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations of vfs/worker/ring.h as system calls, for a worker without a ring. */
#ifndef RN_VFS_SYSCALL_H
#define RN_VFS_SYSCALL_H

#include "vfs/worker/worker_state.h"

void vfs_syscall_read(struct vfs_worker *w, struct vfs_ring_op *op, const struct vfs_ring_rw *rw);
void vfs_syscall_write(struct vfs_worker *w, struct vfs_ring_op *op, const struct vfs_ring_rw *rw);
/* The bytes written, as this thread is, or -errno. */
int vfs_syscall_pwrite(const struct vfs_ring_rw *rw);
void vfs_syscall_fsync(struct vfs_worker *w, struct vfs_ring_op *op, int fd);
void vfs_syscall_fallocate(struct vfs_worker *w, struct vfs_ring_op *op,
			   const struct vfs_ring_fallocate *f);
void vfs_syscall_fadvise(struct vfs_worker *w, struct vfs_ring_op *op,
			 const struct vfs_ring_fadvise *f);
/* Waits up to timeout_ms for the watched descriptor (0: not; -1: for ever). */
int vfs_syscall_enter(struct vfs_worker *w, int timeout_ms);

#endif

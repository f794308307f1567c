/* SPDX-License-Identifier: BSD-2-Clause */
/* The operations of vfs/worker/ring.h as system calls, for a worker without a ring. */
#ifndef RN_VFS_SYSCALL_H
#define RN_VFS_SYSCALL_H

#include "vfs/worker/worker_state.h"

int vfs_syscall_read(struct vfs_worker *w, const struct vfs_ring_rw *rw);
int vfs_syscall_write(struct vfs_worker *w, const struct vfs_ring_rw *rw);
/* The bytes written, as this thread is, or -errno. */
int vfs_syscall_pwrite(const struct vfs_ring_rw *rw);
int vfs_syscall_fsync(int fd);
int vfs_syscall_fallocate(struct vfs_worker *w, const struct vfs_ring_fallocate *f);
int vfs_syscall_fadvise(const struct vfs_ring_fadvise *f);
/* Waits up to timeout_ms for the watched descriptor (0: not; -1: for ever). */
int vfs_syscall_enter(struct vfs_worker *w, int timeout_ms);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread that learns of broken leases (vfs/hold/lease.h), and the table of files by the
 * descriptors of their leases. Signals are queued with the number of the descriptor. When the queue
 * is full the kernel sends a plain SIGIO, which says no more than that some lease is broken: then all are
 * looked at.
 */
#ifndef RN_VFS_LEASE_THREAD_H
#define RN_VFS_LEASE_THREAD_H

#include <signal.h>
#include <sys/types.h>

#include "vfs/hold/lease.h"

#define VFS_LEASE_SIGNAL SIGRTMIN

/* The thread's id; 0: it does not run, or the system gives local processes no time to wait. */
pid_t vfs_leases_thread(const struct vfs_leases *ls);
/* Under f->lock, while f->lease_fd is set. */
void vfs_leases_add(struct vfs_leases *ls, struct vfs_file *f);
void vfs_leases_remove(struct vfs_leases *ls, struct vfs_file *f);

#endif

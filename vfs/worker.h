/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One worker thread's part of vfs/: its io_uring (SINGLE_ISSUER and DEFER_TASKRUN where the kernel has them), and the
 * identity its thread has just now. Everything here is used by that thread only; vfs_worker_new is called on it.
 *
 * vfs_worker_new drops CAP_SYS_RESOURCE from the thread's effective set, so that quotas and reserved blocks hold for
 * clients, and registers two personalities with the ring: root's, and one without capabilities, under which writes for
 * users are submitted so that the kernel clears set-uid and set-gid bits.
 */
#ifndef RN_VFS_WORKER_H
#define RN_VFS_WORKER_H

#include <stdbool.h>
#include <stdint.h>

struct vfs;
struct vfs_worker;

int vfs_worker_new(struct vfs *vfs, unsigned ring_entries, struct vfs_worker **out);
/* No operation may be in flight. */
void vfs_worker_free(struct vfs_worker *w);

/* Calls ready(ctx) on this thread whenever fd (an eventfd or the like) has become readable. Once per worker; the fd is
 * read (8 bytes) by the ring. */
int vfs_worker_watch(struct vfs_worker *w, int fd, void (*ready)(void *ctx), void *ctx);

/* Submits what is queued, waits for at least one completion (or timeout_ms; -1 is for ever) and runs the completion
 * callbacks. 0, -ETIME, or -errno of a broken ring. */
int vfs_worker_wait(struct vfs_worker *w, int timeout_ms);

/* Submits without waiting, and runs callbacks of what is complete already. */
int vfs_worker_poll(struct vfs_worker *w);

unsigned vfs_worker_in_flight(const struct vfs_worker *w);

#endif

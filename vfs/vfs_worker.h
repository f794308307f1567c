/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One worker thread's part of vfs/: its io_uring (SINGLE_ISSUER and DEFER_TASKRUN where the kernel
 * has them), and the identity its thread has just now. Everything here is used by that thread only;
 * vfs_worker_new is called on it.
 *
 * vfs_worker_new drops CAP_SYS_RESOURCE from the thread's effective set, so that quotas and
 * reserved blocks hold for clients, and registers two personalities with the ring: root's, and one
 * without capabilities, under which writes for users are submitted so that the kernel clears
 * set-uid and set-gid bits.
 *
 * Where io_uring is switched off (sysctl, seccomp of a container) or lacks what Linux 6.1 has, the
 * worker does without: operations are system calls on its thread, everything else stays as
 * described here.
 */
#ifndef RN_VFS_VFS_WORKER_H
#define RN_VFS_VFS_WORKER_H

#include <stdbool.h>
#include <stdint.h>

struct vfs;
struct vfs_worker;

/* ring_entries 0: no ring is tried. Needs CAP_SETUID, CAP_SETGID. */
int vfs_worker_new(struct vfs *vfs, unsigned ring_entries, struct vfs_worker **out);
/* No operation may be in flight. */
void vfs_worker_free(struct vfs_worker *w);

bool vfs_worker_has_ring(const struct vfs_worker *w);

/*
 * An event thread's worker, for a thread that must not wait: fibers move from it before what could wait for a disk, and
 * what needs another identity than root's. Its thread's credentials never change. It reads what is
 * in memory, and writes to memory. Uses no ring and no watch. -EPERM: the process is not root.
 */
int vfs_worker_new_event(struct vfs *vfs, struct vfs_worker **out);
bool vfs_worker_on_event_thread(const struct vfs_worker *w);
/* Takes CAP_SYS_RESOURCE from this thread's effective set, as vfs_worker_new does, and so from those
 * that it starts: for the main thread, before it starts event threads. 0 or -errno. */
int vfs_thread_obey_limits(void);
/* Calls ready(ctx) from vfs_worker_wait or _poll whenever fd (a non-blocking eventfd or the like)
 * has become readable; 8 bytes have been read from it then. Once per worker; fd must stay open
 * until vfs_worker_free. -EBUSY: a second one. */
int vfs_worker_watch(struct vfs_worker *w, int fd, void (*ready)(void *ctx), void *ctx);

/* Submits what is queued, waits for at least one completion (or timeout_ms; -1 is for ever) and
 * runs the completion callbacks. What callbacks start is submitted by the next call, so one call's
 * work is bounded. Must not be called from a callback. 0 (a signal may have ended the wait),
 * -ETIME, or -errno of a broken ring or watched fd. */
int vfs_worker_wait(struct vfs_worker *w, int timeout_ms);

/* Submits without waiting, and runs callbacks of what is complete already. */
int vfs_worker_poll(struct vfs_worker *w);

/* Operations whose done() has not been called yet. */
unsigned vfs_worker_in_flight(const struct vfs_worker *w);

#endif

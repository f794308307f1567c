/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations of a worker: reads, writes and fsyncs that end in op->complete(), called from
 * vfs_worker_wait or _poll. The op and the iovecs belong to the operation until then. A full
 * submission queue is submitted and tried again, an overflown completion queue is kept by the
 * kernel; nothing is dropped.
 *
 * The identity of the thread does not matter: every request carries a personality, root's or, for
 * as_user, one without capabilities, so that the kernel clears set-uid and set-gid bits (a write
 * as fsuid 0 would keep them). No permission is checked beyond the open descriptor.
 */
#ifndef RN_VFS_RING_H
#define RN_VFS_RING_H

#include "vfs/worker/worker_state.h"

struct vfs_ring_rw {
	int fd;
	uint64_t offset;
	const struct iovec *iov;
	unsigned niov;
	const struct rn_payload *payload; /* holds iov[0] if niov is 1; or NULL */
	int flags;			  /* RWF_* */
	bool as_user;			  /* writes only */
};

void vfs_ring_read(struct vfs_worker *w, struct vfs_ring_op *op, const struct vfs_ring_rw *rw);
void vfs_ring_write(struct vfs_worker *w, struct vfs_ring_op *op, const struct vfs_ring_rw *rw);
/* len 0: the whole file. Data and metadata. */
void vfs_ring_fsync(struct vfs_worker *w, struct vfs_ring_op *op, int fd, uint64_t offset,
		    uint32_t len);
struct vfs_ring_fallocate {
	int fd;
	int mode; /* FALLOC_FL_* */
	uint64_t offset, len;
	bool as_user;
};
void vfs_ring_fallocate(struct vfs_worker *w, struct vfs_ring_op *op,
			const struct vfs_ring_fallocate *f);
/* How many operations on regular files may wait for disks at a time; without a ring it is one. */
void vfs_ring_threads(struct vfs_worker *w, unsigned n);
/* Ends an operation with a result that is known already. */
void vfs_ring_finish(struct vfs_worker *w, struct vfs_ring_op *op, int res);

/* Within vfs/worker*.c and vfs/ring*.c. */
int vfs_ring_open(struct vfs_worker *w, unsigned entries);
void vfs_ring_close(struct vfs_worker *w);
int vfs_ring_watch(struct vfs_worker *w);
/* Submits, waits up to timeout_ms for a completion (0: not; -1: for ever), and moves completions to
 * w->finished and w->watch. */
int vfs_ring_enter(struct vfs_worker *w, int timeout_ms);
/* Is iov (one piece) within a slab that the ring has registered? Registers it when seen first. */
bool vfs_ring_slab_ready(struct vfs_worker *w, const struct rn_payload *p, const struct iovec *iov);

/* The same operations as system calls. */
void vfs_syscall_read(struct vfs_worker *w, struct vfs_ring_op *op, const struct vfs_ring_rw *rw);
void vfs_syscall_write(struct vfs_worker *w, struct vfs_ring_op *op, const struct vfs_ring_rw *rw);
void vfs_syscall_fsync(struct vfs_worker *w, struct vfs_ring_op *op, int fd);
void vfs_syscall_fallocate(struct vfs_worker *w, struct vfs_ring_op *op,
			   const struct vfs_ring_fallocate *f);
int vfs_syscall_enter(struct vfs_worker *w, int timeout_ms);

/* Takes CAP_SYS_RESOURCE from this thread's effective set and, with a ring, registers the
 * personalities. The thread is root afterwards. 0 or -errno. */
int vfs_worker_personalities(struct vfs_worker *w);
/* What writes of users run as. */
extern const struct vfs_cred vfs_nobody;

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker's part of vfs/ from inside. With a ring, operations run in the kernel; without one
 * (io_uring switched off by sysctl or seccomp, or ring_entries 0) each runs as a system call when
 * it is started. Either way, what has finished waits in `finished` and its callback runs from
 * vfs_worker_wait or vfs_worker_poll, never from within the call that started it, so that callbacks
 * cannot recurse.
 */
#ifndef RN_VFS_WORKER_STATE_H
#define RN_VFS_WORKER_STATE_H

#include <liburing.h>
#include <sys/queue.h>

#include "lib/payload.h"
#include "vfs/io.h"
#include "vfs/worker.h"
#include "vfs/worker/identity.h"

STAILQ_HEAD(vfs_ring_op_list, vfs_ring_op);

/* The one descriptor that vfs_worker_watch was called for. */
struct vfs_watch {
	int fd; /* -1: none */
	bool armed;
	bool readable;
	int error; /* -errno of a poll that cannot work */
	void (*ready)(void *ctx);
	void *ctx;
};

/* State of a slab of the payload pool in this ring; indexes are rn_payload.slab. */
enum vfs_slab_state { VFS_SLAB_UNSEEN, VFS_SLAB_REGISTERED, VFS_SLAB_REFUSED };

struct vfs_worker {
	struct vfs *vfs;
	struct vfs_identity identity; /* what the thread has just now */

	bool has_ring;
	struct io_uring ring;
	uint16_t root_personality; /* 0: without a ring */
	uint16_t user_personality; /* nobody, without capabilities */
	bool fixed;		   /* the ring has a table of buffers */
	uint8_t slab[RN_SLABS_MAX];

	struct vfs_watch watch;
	struct vfs_ring_op_list finished; /* callbacks to run */
	unsigned in_flight;		  /* started, callback not run yet */
};

/* Arguments of the ring's operations, and of the system calls in their place. */
struct vfs_ring_rw {
	int fd;
	uint64_t offset;
	const struct iovec *iov;
	unsigned niov;
	const struct rn_payload *payload; /* holds iov[0] if niov is 1; or NULL */
	int flags;			  /* RWF_* */
	bool as_user;			  /* writes only */
};
struct vfs_ring_fallocate {
	int fd;
	int mode; /* FALLOC_FL_* */
	uint64_t offset, len;
	bool as_user;
};

/* Ends an operation with a result that is known already. */
static inline void vfs_ring_finish(struct vfs_worker *w, struct vfs_ring_op *op, int res)
{
	op->res = res;
	w->in_flight++;
	STAILQ_INSERT_TAIL(&w->finished, op, link);
}

#endif

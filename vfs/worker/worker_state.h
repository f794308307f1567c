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
#include "vfs/vfs_worker.h"
#include "vfs/worker/identity.h"

STAILQ_HEAD(vfs_ring_op_list, vfs_ring_op);

/* What the worker does next, when flushes have had their turn. */
enum vfs_turn {
	VFS_TURN_WAIT, /* as it was going to */
	VFS_TURN_POLL, /* the same, without waiting */
	VFS_TURN_DONE, /* returns to its owner: operations have ended */
};

/* Changes that wait to become durable (vfs/data/group.h). */
struct vfs_group {
	struct vfs_sync_list waiting;	/* covered by no flush yet, oldest first */
	struct vfs_sync_list under_way; /* the first change of each flush */
	/* Called before the worker waits, if there are changes: starts flushes. idle: the worker
	 * has nothing else to do. */
	enum vfs_turn (*turn)(struct vfs_worker *w, bool idle);
	bool looked;	   /* the worker has looked for more changes to share the next flush */
	uint64_t dev;	   /* file system of the last flush */
	uint64_t usual_ns; /* time that its flushes take */
};

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

	bool prompt; /* vfs_worker_new_prompt */

	bool has_ring;
	struct io_uring ring;
	uint16_t root_personality; /* 0: without a ring */
	uint16_t user_personality; /* nobody, without capabilities */
	bool fixed;		   /* the ring has a table of buffers */
	uint8_t slab[RN_SLABS_MAX];

	struct vfs_watch watch;
	struct vfs_ring_op_list finished; /* callbacks to run */
	unsigned in_flight;		  /* started, callback not run yet */
	struct vfs_group group;
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
	/* Writes only: made by the worker's own thread, as it does not wait for the disk, or not for
	 * long. The ring would hand it to another thread on file systems without asynchronous
	 * buffered writes (ext4). */
	bool in_place;
};
struct vfs_ring_sync {
	uint64_t offset;
	uint32_t len; /* 0: all of the file */
	bool data_only;
};
struct vfs_ring_fallocate {
	int fd;
	int mode; /* FALLOC_FL_* */
	uint64_t offset, len;
	bool as_user;
};

struct vfs_ring_fadvise {
	int fd;
	int advice;	      /* POSIX_FADV_* */
	uint64_t offset, len; /* len: up to 32 bits; 0: to the end */
};

/* Ends an operation with a result that is known already. */
static inline void vfs_ring_finish(struct vfs_worker *w, struct vfs_ring_op *op, int res)
{
	op->res = res;
	w->in_flight++;
	STAILQ_INSERT_TAIL(&w->finished, op, link);
}

#endif

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
#include <stdbool.h>
#include <sys/queue.h>

#include "lib/payload.h"
#include "vfs/io.h"
#include "vfs/vfs_worker.h"

/*
 * struct vfs_identity is the file system identity of one worker thread: fsuid, fsgid and supplementary groups, set by raw
 * system calls (glibc's setgroups would change every thread) and only where they differ from what
 * the thread has already. The kernel gives fsuid 0 the file system capabilities back and takes them
 * from every other, so root here needs no more than fsuid 0.
 *
 * setfsuid and setfsgid report no error: both are read back, and a thread that could not get the
 * asked identity is marked unknown, so that the next call sets all of it again. A caller that gets
 * an error must not touch the file system.
 */

/* Zeroed is right: unknown, so that the first switch sets everything. Belongs to one thread. */
struct vfs_identity {
	bool known;
	struct vfs_cred now; /* the thread's identity, if known */
};

/* Acts as cred from here on. 0 or -EPERM. */
int vfs_identity_become(struct vfs_identity *id, const struct vfs_cred *cred);

/* Writes of users run as this one. */
extern const struct vfs_cred vfs_nobody;

/* Has root's file system capabilities from here on: for opening by handle and for cached data
 * descriptors. The groups stay as they were: with the capabilities they decide nothing. 0 or
 * -EPERM. */
int vfs_identity_root(struct vfs_identity *id);

STAILQ_HEAD(vfs_ring_op_list, vfs_ring_op);

/* The worker's next step after flushes have had their turn. */
enum vfs_turn {
	VFS_TURN_WAIT, /* as it was going to */
	VFS_TURN_POLL, /* the same, without waiting */
	VFS_TURN_DONE, /* returns to its owner: operations have ended */
};

/* Changes that wait to become durable (vfs/data/sync.c). */
struct vfs_group {
	struct vfs_sync_list waiting;	/* covered by no flush yet, oldest first */
	struct vfs_sync_list under_way; /* the first change of each flush */
	/* Called before the worker waits, if there are changes: starts flushes. idle: the worker
	 * has nothing else to do. */
	enum vfs_turn (*turn)(struct vfs_worker *w, bool idle);
	bool looked;	   /* the worker has looked for more changes to share the next flush */
	uint64_t dev;	   /* file system of the last flush */
	uint64_t usual_ns; /* time that its flushes take */
	unsigned
		crowded; /* flushes that must find no other change until the worker waits for one of a slow disk itself */
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
	struct vfs_identity identity; /* the thread's present identity */

	bool on_event_thread; /* true if vfs_worker_new_event() made it */

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
	/* Reads only: the file system may wait within the submission, for a process (FUSE) or another machine (NFS, Ceph). */
	bool remote;
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

/* The next step of an operation runs as its caller: 0 or -errno. On a thread whose identity cannot change the fiber
 * moves, unless the caller is root. Holds until the next wait. */
int vfs_act_as_caller(struct vfs_ctx *ctx);

/* The next step runs as root. 0 or -errno. */
static inline int vfs_act_as_root(struct vfs_ctx *ctx)
{
	return vfs_identity_root(&vfs_worker_of(ctx)->identity);
}

/* Takes CAP_SYS_RESOURCE from this thread's effective set and, with a ring, registers the
 * personalities. The thread is root afterwards. 0 or -errno. */
int vfs_worker_personalities(struct vfs_worker *w);

/* Gives this thread, which acts as a caller other than root, CAP_FOWNER beside the caller's rights. Becoming root takes
 * it away again. 0 or -errno. */
int vfs_thread_add_fowner(void);

/* A wait of a fiber for something that ends on its worker's thread: operations of the ring, a flush. */
struct vfs_wait {
	struct rn_fiber *fiber;
	bool ended, waits;
};

#define VFS_WAIT(ctx) ((struct vfs_wait){ .fiber = (ctx)->fiber })

/* In the fiber: until vfs_wait_ended. */
void vfs_wait(struct vfs_wait *x);
/* From vfs_worker_wait or _poll, in no fiber; or before vfs_wait. x may be gone when it returns. */
void vfs_wait_ended(struct vfs_wait *x);

/* In the fiber: lets its worker serve others, then goes on. */
void vfs_worker_yield(struct vfs_ctx *ctx);

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

/* Opens the worker's ring with the best that the kernel has, and a table for payload slabs. */
int vfs_ring_open(struct vfs_worker *w, unsigned entries);
void vfs_ring_close(struct vfs_worker *w);
/* Sets how many operations on regular files may wait for disks at a time; without a ring it is one. */
void vfs_ring_threads(struct vfs_worker *w, unsigned n);

/* Waits up to timeout_ms for the watched descriptor (0: not; -1: for ever). */
int vfs_syscall_enter(struct vfs_worker *w, int timeout_ms);

#endif

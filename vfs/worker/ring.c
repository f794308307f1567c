/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations of a worker: requests and completions of its io_uring, or system calls where there is none, or where the
 * thread must not block. First the wait of a fiber, then opening the ring, then the system calls, then the operations.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "lib/util.h"
#include "vfs/base/instance.h"
#include "vfs/worker/worker_state.h"

static void wait_at_rest_nothing(void *arg)
{
	(void)arg;
}

/* The thread's identity was the fiber's until the wait only. Builds with TSan find whoever relies on it; with others unit tests run, whose
 * threads go on with it. */
static void lose_identity(const struct rn_fiber *f)
{
#if defined(CHECK_WAITS) && defined(__SANITIZE_THREAD__)
	struct vfs_worker *w = f->worker;

	if (w && !f->move)
		vfs_identity_become(&w->identity, &vfs_nobody);
#else
	(void)f;
#endif
}

void vfs_wait(struct vfs_wait *x)
{
	/* A fiber that stands for its thread does what the thread would do meanwhile. */
	while (!x->ended && !x->fiber->stack)
		vfs_worker_wait(x->fiber->worker, -1);
	if (!x->ended) {
		x->waits = true;
		rn_fiber_wait(x->fiber, RN_WAIT_RING, wait_at_rest_nothing, NULL);
	}
	lose_identity(x->fiber);
}

void vfs_wait_ended(struct vfs_wait *x)
{
	x->ended = true;
	if (x->waits)
		rn_fiber_resume(x->fiber);
}

struct yielded {
	struct vfs_ring_op op;
	struct vfs_wait wait;
};

static void yield_complete(struct vfs_ring_op *op, int res)
{
	struct yielded *y = rn_container_of(op, struct yielded, op);

	(void)res;
	vfs_wait_ended(&y->wait);
}

void vfs_worker_yield(struct vfs_ctx *ctx)
{
	struct yielded y = { .op.complete = yield_complete, .wait = VFS_WAIT(ctx) };

	vfs_ring_finish(vfs_worker_of(ctx), &y.op, 0);
	vfs_wait(&y.wait);
}

#define RING_ENTRIES_MIN 8u
#define RING_ENTRIES_MAX 4096u
/* Threads of the kernel for one ring, which wait in file systems; its own limit is four for each processor. */
#define RING_THREADS_MAX 64u

/* Kernels without one of these (before 5.17) are served without a ring: completions could be lost,
 * waits could not time out, or iovecs would have to outlive the submission. */
#define RING_FEATURES                                                                              \
	(IORING_FEAT_NODROP | IORING_FEAT_SUBMIT_STABLE | IORING_FEAT_EXT_ARG |                    \
	 IORING_FEAT_CQE_SKIP)

static int ring_init(struct vfs_worker *w, unsigned entries)
{
	static const unsigned try[] = {
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL,
		IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SUBMIT_ALL,
		0,
	};
	struct io_uring_params params;
	int rc = -EINVAL;

	for (unsigned i = 0; i < sizeof(try) / sizeof(try[0]) && rc == -EINVAL; i++) {
		memset(&params, 0, sizeof(params));
		params.flags = try[i];
		rc = io_uring_queue_init_params(entries, &w->ring, &params);
	}
	if (rc < 0)
		return rc;
	if ((w->ring.features & RING_FEATURES) != RING_FEATURES) {
		io_uring_queue_exit(&w->ring);
		return -ENOSYS;
	}
	return 0;
}

/* A container may forbid the calls of a ring that it lets be made: one request shows that. */
static int ring_try(struct io_uring *ring)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(ring);
	struct io_uring_cqe *cqe;
	int rc;

	io_uring_prep_nop(sqe);
	io_uring_sqe_set_data(sqe, NULL);
	do
		rc = io_uring_submit_and_wait(ring, 1);
	while (rc == -EINTR || rc == -EAGAIN);
	if (rc < 0)
		return rc;
	rc = io_uring_wait_cqe(ring, &cqe);
	if (rc == 0)
		io_uring_cqe_seen(ring, cqe);
	return rc;
}

int vfs_ring_open(struct vfs_worker *w, unsigned entries)
{
	int rc;

	if (entries < RING_ENTRIES_MIN)
		entries = RING_ENTRIES_MIN;
	if (entries > RING_ENTRIES_MAX)
		entries = RING_ENTRIES_MAX;
	rc = ring_init(w, entries);
	if (rc < 0)
		return rc;
	rc = ring_try(&w->ring);
	if (rc < 0) {
		io_uring_queue_exit(&w->ring);
		return rc;
	}
	w->has_ring = true;
	io_uring_register_iowq_max_workers(&w->ring, (unsigned[]){ RING_THREADS_MAX, 0 });
	w->fixed = io_uring_register_buffers_sparse(&w->ring, RN_SLABS_MAX) == 0;
	return 0;
}

void vfs_ring_close(struct vfs_worker *w)
{
	if (w->has_ring)
		io_uring_queue_exit(&w->ring);
	w->has_ring = false;
}

/* Slabs are registered one by one as they are met: the pool grows while the daemon runs. Memory
 * that the kernel will not lock is used without, and not offered again. */
static enum vfs_slab_state slab_register(struct vfs_worker *w, uint32_t index)
{
	struct iovec v = { .iov_base = rn_payload_slab_base(w->vfs->cfg.pool, index),
			   .iov_len = RN_SLAB_SIZE };
	__u64 tag = 0;

	if (!v.iov_base)
		return VFS_SLAB_UNSEEN;
	if (io_uring_register_buffers_update_tag(&w->ring, index, &v, &tag, 1) != 1)
		return VFS_SLAB_REFUSED;
	return VFS_SLAB_REGISTERED;
}

/* True if iov (one piece) is within a slab that the ring has registered. Registers it when seen
 * first. */
static bool vfs_ring_slab_ready(struct vfs_worker *w, const struct rn_payload *p,
				const struct iovec *iov)
{
	uintptr_t at = (uintptr_t)iov->iov_base;
	uintptr_t start;

	if (!w->fixed || !p || p->pool != w->vfs->cfg.pool || p->slab >= RN_SLABS_MAX)
		return false;
	start = (uintptr_t)p->data;
	if (at < start || iov->iov_len > p->size || at - start > p->size - iov->iov_len)
		return false;
	if (w->slab[p->slab] == VFS_SLAB_UNSEEN)
		w->slab[p->slab] = slab_register(w, p->slab);
	return w->slab[p->slab] == VFS_SLAB_REGISTERED;
}

void vfs_ring_threads(struct vfs_worker *w, unsigned n)
{
	unsigned bounded_and_not[2] = { n, 0 }; /* 0: as it is */

	if (w->has_ring)
		(void)io_uring_register_iowq_max_workers(&w->ring, bounded_and_not);
}

/* A worker without io_uring: each operation is a system call when it is started, and waiting is
 * poll(2) on the watched descriptor. */

static int syscall_result(ssize_t n)
{
	return n < 0 ? -errno : (int)n;
}

static int vfs_syscall_read(struct vfs_worker *w, const struct vfs_ring_rw *rw)
{
	int res = vfs_identity_root(&w->identity);

	if (res == 0)
		res = syscall_result(
			preadv2(rw->fd, rw->iov, (int)rw->niov, (off_t)rw->offset, rw->flags));
	return res;
}

/* nobody's lack of CAP_FSETID is what clears the set-uid and set-gid bits. */
static int become_writer(struct vfs_worker *w, bool as_user)
{
	return as_user ? vfs_identity_become(&w->identity, &vfs_nobody)
		       : vfs_identity_root(&w->identity);
}

/* If the kernel has no pwritev2(2), as that of an emulator, glibc writes without flags only. */
static ssize_t write_then_sync(const struct vfs_ring_rw *rw)
{
	ssize_t n = pwritev(rw->fd, rw->iov, (int)rw->niov, (off_t)rw->offset);

	if (n < 0)
		return n;
	return (rw->flags & RWF_SYNC ? fsync(rw->fd) : fdatasync(rw->fd)) == 0 ? n : -1;
}

static int vfs_syscall_pwrite(const struct vfs_ring_rw *rw)
{
	ssize_t n = pwritev2(rw->fd, rw->iov, (int)rw->niov, (off_t)rw->offset, rw->flags);

	if (n < 0 && errno == EOPNOTSUPP && rw->flags & (RWF_SYNC | RWF_DSYNC))
		n = write_then_sync(rw);
	return syscall_result(n);
}

static int vfs_syscall_write(struct vfs_worker *w, const struct vfs_ring_rw *rw)
{
	int res = become_writer(w, rw->as_user);

	if (res == 0)
		res = vfs_syscall_pwrite(rw);
	return res;
}

static int vfs_syscall_fsync(int fd)
{
	return syscall_result(fsync(fd));
}

static int vfs_syscall_fallocate(struct vfs_worker *w, const struct vfs_ring_fallocate *f)
{
	int res = become_writer(w, f->as_user);

	if (res == 0)
		res = syscall_result(fallocate(f->fd, f->mode, (off_t)f->offset, (off_t)f->len));
	return res;
}

static int vfs_syscall_fadvise(const struct vfs_ring_fadvise *f)
{
	return -posix_fadvise(f->fd, (off_t)f->offset, (off_t)f->len, f->advice);
}

int vfs_syscall_enter(struct vfs_worker *w, int timeout_ms)
{
	struct pollfd p = { .fd = w->watch.fd, .events = POLLIN };
	int n = poll(&p, 1, timeout_ms);

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	if (n == 0)
		return timeout_ms >= 0 ? -ETIME : 0;
	if (p.revents & POLLNVAL)
		return -EBADF;
	w->watch.readable = true;
	return 0;
}

/* Longer reads would keep the thread's other clients waiting while they are copied. */
#define READ_MAX (64u << 10)

/* Reads what is in memory. False: not all is, or it cannot be known. */
static bool vfs_cached_read(const struct vfs_ring_rw *rw, int *n)
{
	*n = (int)preadv2(rw->fd, rw->iov, (int)rw->niov, (off_t)rw->offset,
			  rw->flags | RWF_NOWAIT);
	return *n >= 0;
}

/* Reads on a thread that must not block, and only what is in memory. False: the fiber is on a worker that may block,
 * where it was, or has moved to. */
static bool vfs_nowait_read(struct vfs_ctx *ctx, const struct vfs_ring_rw *rw, int *n)
{
	if (!vfs_worker_of(ctx)->on_event_thread)
		return false;
	if (rw->niov == 1 && rw->iov->iov_len <= READ_MAX && vfs_cached_read(rw, n))
		return true;
	rn_fiber_move(ctx->fiber);
	return false;
}

/* Writes on a thread that must not block, and only what is in_place, and not as_user. */
static bool vfs_nowait_write(struct vfs_ctx *ctx, const struct vfs_ring_rw *rw, int *n)
{
	if (!vfs_worker_of(ctx)->on_event_thread)
		return false;
	if (!rw->as_user && rw->in_place) {
		*n = vfs_syscall_pwrite(rw);
		return true;
	}
	rn_fiber_move(ctx->fiber);
	return false;
}

/* The kernel's memory for a request ran out, or completions must be reaped first. */
static bool ring_busy(int rc)
{
	return rc == -EAGAIN || rc == -EBUSY || rc == -EINTR;
}

static void ring_watch_event(struct vfs_worker *w, const struct io_uring_cqe *cqe)
{
	if (!(cqe->flags & IORING_CQE_F_MORE))
		w->watch.armed = false;
	if (cqe->res >= 0)
		w->watch.readable = true;
	else if (cqe->res != -EAGAIN && cqe->res != -EINTR && cqe->res != -ECANCELED)
		w->watch.error = cqe->res;
}

/* Takes every completion off the queue; no callback runs here. */
static unsigned ring_harvest(struct vfs_worker *w)
{
	struct io_uring_cqe *cqe;
	unsigned head, n = 0;

	io_uring_for_each_cqe (&w->ring, head, cqe) {
		void *data = io_uring_cqe_get_data(cqe);

		n++;
		if (data == &w->watch) {
			ring_watch_event(w, cqe);
		} else if (data) {
			struct vfs_ring_op *op = data;

			op->res = cqe->res;
			STAILQ_INSERT_TAIL(&w->finished, op, link);
		}
	}
	io_uring_cq_advance(&w->ring, n);
	return n;
}

/* A free submission entry. Submits when the queue is full, and reaps completions (their callbacks
 * run later) when the kernel takes no more. NULL and *error: the ring is broken. */
static struct io_uring_sqe *ring_sqe(struct vfs_worker *w, int *error)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct io_uring_sqe *sqe;
	int rc;

	while (!(sqe = io_uring_get_sqe(&w->ring))) {
		rc = io_uring_submit(&w->ring);
		if (rc >= 0)
			continue;
		if (!ring_busy(rc)) {
			*error = rc;
			return NULL;
		}
		io_uring_get_events(&w->ring);
		if (!ring_harvest(w))
			nanosleep(&pause, NULL);
	}
	return sqe;
}

static void ring_start(struct vfs_worker *w, struct vfs_ring_op *op, struct io_uring_sqe *sqe,
		       uint16_t personality)
{
	sqe->personality = personality;
	io_uring_sqe_set_data(sqe, op);
	w->in_flight++;
}

/* An operation that a fiber waits for. */
struct awaited {
	struct vfs_ring_op op;
	struct vfs_wait wait;
};

static void awaited_ended(struct vfs_ring_op *op, int res)
{
	struct awaited *a = rn_container_of(op, struct awaited, op);

	(void)res;
	vfs_wait_ended(&a->wait);
}

/* Starts the operation of sqe, and waits for its result. */
static int ring_await(struct vfs_ctx *ctx, struct io_uring_sqe *sqe, uint16_t personality)
{
	struct awaited a = { .op.complete = awaited_ended, .wait = VFS_WAIT(ctx) };

	ring_start(vfs_worker_of(ctx), &a.op, sqe, personality);
	vfs_wait(&a.wait);
	return a.op.res;
}

static uint16_t personality_of(const struct vfs_worker *w, bool as_user)
{
	return as_user ? w->user_personality : w->root_personality;
}

int vfs_ring_read(struct vfs_ctx *ctx, const struct vfs_ring_rw *rw)
{
	const struct iovec *v = rw->iov;
	struct io_uring_sqe *sqe;
	struct vfs_worker *w;
	int n = 0;

	if (vfs_nowait_read(ctx, rw, &n))
		return n;
	w = vfs_worker_of(ctx);
	if (!w->has_ring)
		return vfs_syscall_read(w, rw);
	if (rw->remote && vfs_cached_read(rw, &n))
		return n;
	sqe = ring_sqe(w, &n);
	if (!sqe)
		return n;
	if (rw->niov == 1 && vfs_ring_slab_ready(w, rw->payload, v))
		io_uring_prep_read_fixed(sqe, rw->fd, v->iov_base, (unsigned)v->iov_len, rw->offset,
					 (int)rw->payload->slab);
	else
		io_uring_prep_readv2(sqe, rw->fd, v, rw->niov, rw->offset, 0);
	if (rw->remote)
		sqe->flags |= IOSQE_ASYNC;
	sqe->rw_flags = rw->flags;
	return ring_await(ctx, sqe, w->root_personality);
}

int vfs_ring_write(struct vfs_ctx *ctx, const struct vfs_ring_rw *rw)
{
	const struct iovec *v = rw->iov;
	struct io_uring_sqe *sqe;
	struct vfs_worker *w;
	int n = 0;

	if (vfs_nowait_write(ctx, rw, &n))
		return n;
	w = vfs_worker_of(ctx);
	if (!w->has_ring || rw->in_place)
		return vfs_syscall_write(w, rw);
	sqe = ring_sqe(w, &n);
	if (!sqe)
		return n;
	if (rw->niov == 1 && vfs_ring_slab_ready(w, rw->payload, v))
		io_uring_prep_write_fixed(sqe, rw->fd, v->iov_base, (unsigned)v->iov_len,
					  rw->offset, (int)rw->payload->slab);
	else
		io_uring_prep_writev2(sqe, rw->fd, v, rw->niov, rw->offset, 0);
	sqe->rw_flags = rw->flags;
	return ring_await(ctx, sqe, personality_of(w, rw->as_user));
}

/* The kernel takes offset + length 0, not length 0, for the whole file. */
static void prep_fsync(struct io_uring_sqe *sqe, int fd, const struct vfs_ring_sync *s)
{
	io_uring_prep_fsync(sqe, fd, s->data_only ? IORING_FSYNC_DATASYNC : 0);
	if (s->len) {
		sqe->off = s->offset;
		sqe->len = s->len;
	}
}

int vfs_ring_fsync(struct vfs_ctx *ctx, int fd, const struct vfs_ring_sync *s)
{
	struct io_uring_sqe *sqe;
	struct vfs_worker *w;
	int error = 0;

	rn_fiber_move(ctx->fiber);
	w = vfs_worker_of(ctx);
	if (!w->has_ring)
		return vfs_syscall_fsync(fd);
	sqe = ring_sqe(w, &error);
	if (!sqe)
		return error;
	prep_fsync(sqe, fd, s);
	return ring_await(ctx, sqe, w->root_personality);
}

void vfs_ring_begin_fsync(struct vfs_worker *w, struct vfs_ring_op *op, int fd, uint64_t offset,
			  uint32_t len)
{
	struct io_uring_sqe *sqe;
	int error = 0;

	if (!w->has_ring) {
		vfs_ring_finish(w, op, vfs_syscall_fsync(fd));
		return;
	}
	sqe = ring_sqe(w, &error);
	if (!sqe) {
		vfs_ring_finish(w, op, error);
		return;
	}
	prep_fsync(sqe, fd, &(struct vfs_ring_sync){ .offset = offset, .len = len });
	ring_start(w, op, sqe, w->root_personality);
}

int vfs_ring_fallocate(struct vfs_ctx *ctx, const struct vfs_ring_fallocate *f)
{
	struct io_uring_sqe *sqe;
	struct vfs_worker *w;
	int error = 0;

	rn_fiber_move(ctx->fiber);
	w = vfs_worker_of(ctx);
	if (!w->has_ring)
		return vfs_syscall_fallocate(w, f);
	sqe = ring_sqe(w, &error);
	if (!sqe)
		return error;
	io_uring_prep_fallocate(sqe, f->fd, f->mode, f->offset, f->len);
	return ring_await(ctx, sqe, personality_of(w, f->as_user));
}

int vfs_ring_fadvise(struct vfs_ctx *ctx, const struct vfs_ring_fadvise *f)
{
	struct io_uring_sqe *sqe;
	struct vfs_worker *w;
	int error = 0;

	rn_fiber_move(ctx->fiber);
	w = vfs_worker_of(ctx);
	if (!w->has_ring)
		return vfs_syscall_fadvise(f);
	sqe = ring_sqe(w, &error);
	if (!sqe)
		return error;
	io_uring_prep_fadvise(sqe, f->fd, f->offset, (off_t)f->len, f->advice);
	return ring_await(ctx, sqe, w->root_personality);
}

int vfs_ring_watch(struct vfs_worker *w)
{
	struct io_uring_sqe *sqe;
	int error = 0;

	sqe = ring_sqe(w, &error);
	if (!sqe)
		return error;
	io_uring_prep_poll_multishot(sqe, w->watch.fd, POLLIN);
	sqe->personality = w->root_personality;
	io_uring_sqe_set_data(sqe, &w->watch);
	w->watch.armed = true;
	return 0;
}

int vfs_ring_enter(struct vfs_worker *w, int timeout_ms)
{
	struct __kernel_timespec ts = { .tv_sec = timeout_ms / 1000,
					.tv_nsec = timeout_ms % 1000 * 1000000LL };
	struct io_uring_cqe *cqe;
	unsigned n;
	int rc;

	if (timeout_ms == 0)
		rc = io_uring_submit_and_get_events(&w->ring);
	else
		rc = io_uring_submit_and_wait_timeout(&w->ring, &cqe, 1,
						      timeout_ms < 0 ? NULL : &ts, NULL);
	n = ring_harvest(w);
	if (rc < 0 && rc != -ETIME && !ring_busy(rc))
		return rc;
	if (w->watch.error)
		return w->watch.error;
	if (w->watch.fd >= 0 && !w->watch.armed) {
		int arm = vfs_ring_watch(w);

		if (arm < 0)
			return arm;
	}
	return n == 0 && !ring_busy(rc) && timeout_ms >= 0 ? -ETIME : 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests and completions of a worker's io_uring, or of system calls where there is none. */
#include "vfs/worker/ring.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

#include "lib/util.h"
#include "vfs/worker/prompt.h"
#include "vfs/worker/ring_setup.h"
#include "vfs/worker/syscall.h"
#include "vfs/worker/vfs_wait.h"

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

	if (vfs_prompt_read(ctx, rw, &n))
		return n;
	w = vfs_worker_of(ctx);
	if (!w->has_ring)
		return vfs_syscall_read(w, rw);
	sqe = ring_sqe(w, &n);
	if (!sqe)
		return n;
	if (rw->niov == 1 && vfs_ring_slab_ready(w, rw->payload, v))
		io_uring_prep_read_fixed(sqe, rw->fd, v->iov_base, (unsigned)v->iov_len, rw->offset,
					 (int)rw->payload->slab);
	else
		io_uring_prep_readv2(sqe, rw->fd, v, rw->niov, rw->offset, 0);
	sqe->rw_flags = rw->flags;
	return ring_await(ctx, sqe, w->root_personality);
}

int vfs_ring_write(struct vfs_ctx *ctx, const struct vfs_ring_rw *rw)
{
	const struct iovec *v = rw->iov;
	struct io_uring_sqe *sqe;
	struct vfs_worker *w;
	int n = 0;

	if (vfs_prompt_write(ctx, rw, &n))
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

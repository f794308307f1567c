/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker's life and its loop: submit, wait, run callbacks. */
#include "vfs/vfs_worker.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "vfs/worker/worker_state.h"

/* The answers of kernels and containers that will not have io_uring, of a kernel too old, and of a
 * limit of locked memory. */
static bool ring_unavailable(int rc)
{
	return rc == -ENOSYS || rc == -EPERM || rc == -EACCES || rc == -EINVAL || rc == -ENOMEM;
}

int vfs_worker_new(struct vfs *vfs, unsigned ring_entries, struct vfs_worker **out)
{
	struct vfs_worker *w = calloc(1, sizeof(*w));
	int rc = 0;

	if (!w)
		return -ENOMEM;
	w->vfs = vfs;
	w->watch.fd = -1;
	STAILQ_INIT(&w->finished);
	STAILQ_INIT(&w->group.waiting);
	STAILQ_INIT(&w->group.under_way);
	/* Root first: who opens a ring pays for its locked memory, unless allowed to lock any. */
	rc = vfs_identity_root(&w->identity);
	if (rc == 0 && ring_entries) {
		rc = vfs_ring_open(w, ring_entries);
		if (ring_unavailable(rc))
			rc = 0;
	}
	if (rc == 0)
		rc = vfs_worker_personalities(w);
	if (w->has_ring && ring_unavailable(rc)) {
		vfs_ring_close(w);
		rc = vfs_worker_personalities(w);
	}
	if (rc < 0) {
		vfs_worker_free(w);
		return rc;
	}
	*out = w;
	return 0;
}

int vfs_worker_new_event(struct vfs *vfs, struct vfs_worker **out)
{
	struct vfs_worker *w;

	if (geteuid() != 0)
		return -EPERM;
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	w->vfs = vfs;
	w->watch.fd = -1;
	STAILQ_INIT(&w->finished);
	w->on_event_thread = true;
	/* Set by no system call: RDMA's drivers refuse a thread whose credentials have changed. */
	w->identity.known = true;
	*out = w;
	return 0;
}

bool vfs_worker_on_event_thread(const struct vfs_worker *w)
{
	return w->on_event_thread;
}

void vfs_worker_free(struct vfs_worker *w)
{
	if (!w)
		return;
	vfs_ring_close(w);
	free(w);
}

bool vfs_worker_has_ring(const struct vfs_worker *w)
{
	return w->has_ring;
}

int vfs_worker_watch(struct vfs_worker *w, int fd, void (*ready)(void *ctx), void *ctx)
{
	if (w->watch.fd >= 0)
		return -EBUSY;
	w->watch.fd = fd;
	w->watch.ready = ready;
	w->watch.ctx = ctx;
	return w->has_ring ? vfs_ring_watch(w) : 0;
}

/* Runs what has finished by now; what callbacks start finishes in a later round. */
static void run_finished(struct vfs_worker *w)
{
	struct vfs_ring_op_list round = STAILQ_HEAD_INITIALIZER(round);
	struct vfs_ring_op *op;

	STAILQ_CONCAT(&round, &w->finished);
	while ((op = STAILQ_FIRST(&round))) {
		STAILQ_REMOVE_HEAD(&round, link);
		w->in_flight--;
		op->complete(op, op->res);
	}
}

static void run_watch(struct vfs_worker *w)
{
	uint64_t count;

	if (!w->watch.readable)
		return;
	w->watch.readable = false;
	/* Nothing to read is nobody's error: the owner may have read it. */
	if (read(w->watch.fd, &count, sizeof(count)) < 0)
		count = 0;
	w->watch.ready(w->watch.ctx);
}

int vfs_worker_wait(struct vfs_worker *w, int timeout_ms)
{
	bool had = !STAILQ_EMPTY(&w->finished) || w->watch.readable;
	int rc;

	if (!STAILQ_EMPTY(&w->group.waiting)) {
		enum vfs_turn next = w->group.turn(w, timeout_ms != 0 && !had);

		if (next == VFS_TURN_DONE)
			return 0;
		had |= next == VFS_TURN_POLL;
	}
	if (had)
		timeout_ms = 0;
	rc = w->has_ring ? vfs_ring_enter(w, timeout_ms) : vfs_syscall_enter(w, timeout_ms);
	run_finished(w);
	run_watch(w);
	return rc == -ETIME && had ? 0 : rc;
}

int vfs_worker_poll(struct vfs_worker *w)
{
	int rc = vfs_worker_wait(w, 0);

	return rc == -ETIME ? 0 : rc;
}

unsigned vfs_worker_in_flight(const struct vfs_worker *w)
{
	return w->in_flight;
}

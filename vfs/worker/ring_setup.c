/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening a worker's ring with the best that the kernel has, and its table of payload slabs. */
#include "vfs/worker/ring_setup.h"

#include <errno.h>
#include <string.h>

#include "vfs/base/instance.h"

#define RING_ENTRIES_MIN 8u
#define RING_ENTRIES_MAX 4096u

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

bool vfs_ring_slab_ready(struct vfs_worker *w, const struct rn_payload *p, const struct iovec *iov)
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

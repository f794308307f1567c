/* SPDX-License-Identifier: BSD-2-Clause */
#include "config.h"

#include "vfs/worker/vfs_wait.h"

#include "lib/util.h"
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

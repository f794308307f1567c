/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Workers that have an event loop: calls that run on the event thread that received them. A call begins there if its file
 * system is local and answers. What would wait, or needs another identity, moves to the pool (rpc/worker.h, vfs/vfs_worker.h).
 * The loop keeps calls while the transports look at their descriptors, and makes them before they do so again; so their
 * order is that in which clients' connections have their turns (transport/turns.h).
 *
 * A call may wait all the same: for a lock of the kernel's, or for memory. When it does so for 50 to 100 ms another thread
 * goes on with the event loop (daemon/worker_watch.c), and calls of that file system go to the pool until none is stuck.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "daemon/worker_pool.h"
#include "lib/clock.h"
#include "lib/util.h"
#include "transport/event_loop.h"
#include "vfs/vfs_worker.h"

#define CALL_MAX (64u << 10)   /* bytes of a call; longer ones keep others waiting */
#define SLOW_NS 5000000u       /* a call that took longer may have waited for its file system */
#define CAREFUL_NS 1000000000u /* time after that in which sleeps are counted */

static _Thread_local struct worker *self; /* NULL on other threads */

/* One of a thread that had the loop and has ended. */
static struct worker *use_ended(struct workers *ws, const struct ev_loop *loop)
{
	for (struct worker *w = atomic_load(&ws->all); w; w = w->next) {
		bool ended = true;

		if (w->loop == loop && atomic_compare_exchange_strong(&w->ended, &ended, false))
			return w;
	}
	return NULL;
}

static void *event_worker_begin(void *ctx, struct ev_loop *loop)
{
	struct workers *ws = ctx;
	struct worker *w = use_ended(ws, loop);

	if (!w)
		w = worker_add(ws, loop);
	self = w;
	if (!w)
		return NULL;
	if (vfs_worker_new_prompt(ws->cfg.vfs, &w->rpc.vfs) != 0)
		w->rpc.vfs = NULL; /* it takes no calls */
	return w;
}

static void event_worker_end(void *state)
{
	struct worker *w = state;

	if (!w)
		return;
	vfs_worker_free(w->rpc.vfs);
	w->rpc.vfs = NULL;
	atomic_store(&w->ended, true);
}

/* How often the thread has gone to sleep. Waiting for a processor is no sleep. */
static long count_sleeps(void)
{
	struct rusage u;

	return getrusage(RUSAGE_THREAD, &u) == 0 ? u.ru_nvcsw : 0;
}

/*
 * A call that takes long may have waited for its file system, or for a processor. After the first
 * one the thread is careful for a while and counts sleeps; then it knows.
 */
static void note_slow(struct worker *w, unsigned lane, bool slept)
{
	const uint64_t now = rn_now_ns();

	if (slept)
		lanes_was_slow(w->pool->cfg.lanes, lane, now);
	w->careful_until = now + CAREFUL_NS;
}

/* Counting has read the clock when the call ended. It has not if the call moved. */
static uint64_t end_of_call(const struct worker *w)
{
	const uint64_t ended = atomic_load_explicit(&w->rpc.ended_ns, memory_order_relaxed);

	return ended ? ended : rn_now_ns();
}

static void run_call(struct worker *w, struct rpc_request *req, uint64_t start)
{
	const unsigned lane = req->lane;
	const bool careful = start < w->careful_until;
	const long sleeps = careful ? count_sleeps() : 0;

	atomic_store_explicit(&w->rpc.ended_ns, 0, memory_order_relaxed);
	req->run_ns = start;
	req->worker = &w->rpc;
	worker_run(w, req);
	if (end_of_call(w) - start >= SLOW_NS)
		note_slow(w, lane, careful && count_sleeps() != sleeps);
}

/* True if calls of that lane may begin here. Those of lane 0 may until they enter a file system. */
static bool is_for_loops(struct workers *ws, unsigned lane, uint64_t now)
{
	return lane == 0 || lanes_prompt(ws->cfg.lanes, lane, now);
}

static void event_worker_run(void *ctx, void *state, struct rn_inbox_node *call)
{
	struct rpc_request *req = rn_container_of(call, struct rpc_request, node);
	const uint64_t now = rn_now_ns();
	struct worker *w = state;

	/* The thread before may have got stuck in the lane, or left calls to one that could not get its own state. */
	if (!w || !w->rpc.vfs || !rpc_is_ready(&w->rpc) || !is_for_loops(ctx, req->lane, now))
		worker_hand_over(ctx, req);
	else
		run_call(w, req, now);
}

static bool event_worker_is_long(const struct rpc_request *req)
{
	size_t sum = 0;

	for (unsigned i = 0; i < req->nseg; i++)
		sum += req->seg[i].len;
	return sum > CALL_MAX;
}

bool event_worker_keep(struct workers *ws, struct rpc_request *req)
{
	const struct worker *w = self;

	if (!w || !w->rpc.vfs || !ev_loop_is_current(w->loop) || event_worker_is_long(req))
		return false;
	if (!is_for_loops(ws, req->lane, req->arrived_ns))
		return false;
	ev_loop_keep(w->loop, &req->node);
	return true;
}

int workers_loop(struct workers *ws, const char *name, struct ev_loop **out)
{
	const struct ev_calls calls = { .begin = event_worker_begin,
					.run = event_worker_run,
					.end = event_worker_end,
					.ctx = ws };

	return ev_loop_new(name, &calls, out);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/reactor.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "daemon/worker_pool.h"
#include "lib/clock.h"
#include "lib/fiber.h"
#include "lib/util.h"
#include "transport/event_loop.h"
#include "vfs/worker.h"

#define CALL_MAX (64u << 10)   /* bytes of a call; longer ones keep others waiting */
#define SLOW_NS 5000000u       /* a call that took longer may have waited for its file system */
#define CAREFUL_NS 1000000000u /* time after that in which sleeps are counted */
#define STUCK_MS 50u	       /* time without progress after which the loop gets another thread */

/* A thread that has, or had, the event loop. Kept as long as the reactor, as requests point here, and
 * used by a later thread when this one has ended. */
struct prompt_worker {
	struct rpc_worker rpc; /* vfs NULL: it takes no calls */
	struct reactor *reactor;
	struct prompt_worker *next;
	_Atomic bool ended;
	_Atomic uint64_t beat;	 /* odd while it runs a call */
	_Atomic unsigned lane;	 /* of that call */
	struct rpc_request *now; /* that call */
	uint64_t careful_until;	 /* rn_now_ns: note_slow */

	/* Used by the watch only. */
	uint64_t seen; /* beat at the last look */
	unsigned stuck_ms;
	bool replaced; /* another thread was started to take the loop from it, in this call */
};

struct reactor {
	_Atomic unsigned nsilent; /* threads that had been stuck for seconds at the last look */
	struct workers *ws;
	struct ev_loop *loop;
	_Atomic(struct prompt_worker *) threads; /* added at the front, never removed */
};

static _Thread_local struct prompt_worker *self; /* NULL on other threads */

static void move_to_pool(struct rpc_worker *from, struct rpc_request *req)
{
	const struct prompt_worker *w = rn_container_of(from, struct prompt_worker, rpc);

	worker_hand_over(w->reactor->ws, req);
}

static struct prompt_worker *use_ended(struct reactor *r)
{
	for (struct prompt_worker *w = atomic_load(&r->threads); w; w = w->next) {
		bool ended = true;

		if (atomic_compare_exchange_strong(&w->ended, &ended, false))
			return w;
	}
	return NULL;
}

static struct prompt_worker *add(struct reactor *r)
{
	struct prompt_worker *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->reactor = r;
	w->rpc.stacks = r->ws->stacks;
	w->rpc.move = move_to_pool;
	w->next = atomic_load(&r->threads);
	while (!atomic_compare_exchange_weak(&r->threads, &w->next, w))
		;
	return w;
}

static void *begin(void *ctx, struct ev_loop *loop)
{
	struct reactor *r = ctx;
	struct prompt_worker *w = use_ended(r);

	(void)loop;
	if (!w)
		w = add(r);
	if (w && vfs_worker_new_prompt(r->ws->cfg.vfs, &w->rpc.vfs) != 0)
		w->rpc.vfs = NULL;
	self = w;
	return w;
}

static void end(void *state)
{
	struct prompt_worker *w = state;

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
static void note_slow(struct prompt_worker *w, unsigned lane, bool slept)
{
	const uint64_t now = rn_now_ns();

	if (slept)
		lanes_was_slow(w->reactor->ws->cfg.lanes, lane, now);
	w->careful_until = now + CAREFUL_NS;
}

/* Counting has read the clock when the call ended. It has not if the call moved. */
static uint64_t end_of_call(const struct prompt_worker *w)
{
	const uint64_t ended = atomic_load_explicit(&w->rpc.ended_ns, memory_order_relaxed);

	return ended ? ended : rn_now_ns();
}

static void run_call(struct prompt_worker *w, struct rpc_request *req)
{
	const unsigned lane = req->lane;
	const uint64_t start = rn_now_ns();
	const bool careful = start < w->careful_until;
	const long sleeps = careful ? count_sleeps() : 0;

	atomic_store_explicit(&w->lane, lane, memory_order_relaxed);
	atomic_fetch_add(&w->beat, 1);
	atomic_store_explicit(&w->rpc.ended_ns, 0, memory_order_relaxed);
	req->run_ns = start;
	w->now = req;
	rpc_run(req); /* may have ended */
	atomic_fetch_add(&w->beat, 1);
	if (end_of_call(w) - start >= SLOW_NS)
		note_slow(w, lane, careful && count_sleeps() != sleeps);
}

static void run(void *ctx, void *state, struct rn_inbox_node *call)
{
	const struct reactor *r = ctx;
	struct prompt_worker *w = state;
	struct rpc_request *req = rn_container_of(call, struct rpc_request, node);

	/* The thread before may have left calls to one that could not get its own state. */
	if (!w || !w->rpc.vfs || !rpc_is_ready(&w->rpc)) {
		worker_hand_over(r->ws, req);
		return;
	}
	req->worker = &w->rpc;
	run_call(w, req);
}

static bool is_long(const struct rpc_request *req)
{
	size_t sum = 0;

	for (unsigned i = 0; i < req->nseg; i++)
		sum += req->seg[i].len;
	return sum > CALL_MAX;
}

bool reactor_take(struct rpc_request *req)
{
	struct reactor *r = self ? self->reactor : NULL;

	if (!r || !self->rpc.vfs || !ev_loop_is_current(r->loop) || is_long(req))
		return false;
	if (req->lane > 0 && !lanes_prompt(r->ws->cfg.lanes, req->lane, req->arrived_ns))
		return false;
	ev_loop_keep(r->loop, &req->node);
	return true;
}

void reactor_enter(unsigned lane)
{
	const struct prompt_worker *w = self;

	if (w && (lane == 0 || lane != atomic_load_explicit(&w->lane, memory_order_relaxed)))
		rpc_move(w->now);
}

/* True if the thread is in the same call as at the last look, for so long that it is stuck. */
static bool is_stuck(struct prompt_worker *w, unsigned look_ms, bool *busy)
{
	const uint64_t beat = atomic_load(&w->beat);

	*busy |= (beat & 1) || beat != w->seen;
	if (!(beat & 1) || beat != w->seen) {
		w->seen = beat;
		w->stuck_ms = 0;
		w->replaced = false;
		return false;
	}
	w->stuck_ms += look_ms;
	return w->stuck_ms >= STUCK_MS;
}

bool reactor_look(struct reactor *r, unsigned look_ms, struct stuck_lanes *lanes)
{
	unsigned nsilent = 0;
	bool busy = false;

	for (struct prompt_worker *w = atomic_load(&r->threads); w; w = w->next) {
		if (!is_stuck(w, look_ms, &busy))
			continue;
		const uint32_t lane = 1u << atomic_load(&w->lane);
		const bool silent = w->stuck_ms >= SILENT_MS;

		nsilent += silent;
		lanes->stuck |= lane;
		lanes->silent |= silent ? lane : 0;
		/* A thread that has lost the loop and is still stuck says nothing of the present one. */
		if (!w->replaced)
			w->replaced = ev_loop_replace(r->loop) == 0;
	}
	atomic_store_explicit(&r->nsilent, nsilent, memory_order_relaxed);
	return busy;
}

unsigned reactor_stuck(const struct reactor *r)
{
	return atomic_load_explicit(&r->nsilent, memory_order_relaxed);
}

int reactor_new(struct workers *ws, const char *name, struct reactor **out, struct ev_loop **loop)
{
	struct reactor *r = calloc(1, sizeof(*r));
	const struct ev_calls calls = { .begin = begin, .run = run, .end = end, .ctx = r };
	int rc;

	if (!r)
		return -ENOMEM;
	r->ws = ws;
	rc = ev_loop_new(name, &calls, &r->loop);
	if (rc) {
		free(r);
		return rc;
	}
	*loop = r->loop;
	*out = r;
	return 0;
}

void reactor_free(struct reactor *r)
{
	struct prompt_worker *w;

	while ((w = atomic_load(&r->threads)) != NULL) {
		atomic_store(&r->threads, w->next);
		rn_fiber_put(w->rpc.spare);
		free(w);
	}
	free(r);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Distribution of requests: to workers of the pool, and at the end of the file which calls stay on event threads. A worker with room gets a request straight into its inbox. When none
 * has room, the request waits for its client's turn (daemon/workers/fs_queues.h), and workers that have
 * finished one take the next from there. So the limit for a worker's inbox is also the number of
 * one client's calls that can be ahead of another's.
 *
 * Requests go by queues, one for each file system (daemon/workers/fs_queues.h). A worker with requests of one
 * queue takes none of another: if the file system does not answer, only its own calls wait behind
 * the worker, and only its own operations are in the worker's ring.
 *
 * A worker has room while it has fewer than INBOX_MAX calls to begin and IN_FLIGHT_MAX operations
 * under way in a file system: a slow disk's queue would be no fairer than an inbox.
 */
#include "daemon/workers/worker_pool.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sysexits.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/fiber.h"
#include "lib/util.h"
#include "transport/event_loop.h"
#include "vfs/vfs_worker.h"

#define INBOX_MAX 2u /* the one being run, and the next */
/* most operations in a worker's ring while other calls wait for their turn */
#define IN_FLIGHT_MAX 32u
#define PICK_TRIES 3u
#define NO_STACK_MS 10 /* until a worker without a stack for a call looks for one again */
#define STUCK_MORE 4u  /* workers that calls of a blocked queue may have beyond the queue's own */
#define TAKE_MAX 8u    /* calls that a worker begins before it polls its ring again */

static void worker_assign_call(struct worker *w, struct rpc_request *req)
{
	req->worker = &w->rpc;
	atomic_store_explicit(&req->conn->last_worker, &w->rpc, memory_order_relaxed);
	atomic_fetch_add_explicit(&w->waiting, 1, memory_order_relaxed);
}

static void worker_move_call(struct rpc_worker *from, struct rpc_request *req);

static struct worker *worker_add(struct workers *ws, struct ev_loop *loop)
{
	struct worker *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->pool = ws;
	w->rpc.stacks = ws->stacks;
	w->rpc.on_event_thread = loop != NULL;
	w->rpc.move = worker_move_call;
	w->loop = loop;
	w->next = atomic_load(&ws->all);
	while (!atomic_compare_exchange_weak(&ws->all, &w->next, w))
		;
	return w;
}

static void worker_run(struct worker *w, struct rpc_request *req)
{
	atomic_store_explicit(&w->touching, req->entered, memory_order_relaxed);
	atomic_fetch_add(&w->beat, 1);
	rpc_run(req); /* may have ended */
	atomic_fetch_add(&w->beat, 1);
}

static void worker_run_queued(struct worker *w, struct rpc_request *req)
{
	rn_histogram_record_alone(&w->waits, rn_now_ns() - req->queued_ns);
	worker_run(w, req);
	atomic_fetch_sub(&w->waiting, 1); /* in order with call_queue_waiting() */
}

static struct worker *worker_of(const struct rpc_request *req)
{
	return rn_container_of(req->worker, struct worker, rpc);
}

int worker_enters(struct fs_queues *fs_queues, uint32_t export_id)
{
	const unsigned fs_queue = fs_queue_of_export_id(fs_queues, export_id);
	const struct rn_fiber *f = rn_fiber_current();
	struct rpc_request *req = f ? f->owner : NULL;

	if (fs_queue_blocked(fs_queues, fs_queue))
		return -RN_ESILENT;
	if (!req)
		return 0;
	/* The call began for another file system, or for none: this worker must not count for that one when it gets stuck here. */
	if (fs_queue != req->fs_queue || (fs_queue == 0 && rpc_on_event_thread(req))) {
		req->entered = 0;
		req->fs_queue = fs_queue;
		rpc_hand_over(req);
		/* The watch gives calls of a queue that is blocked to queue 0, to be refused. */
		if (fs_queue_blocked(fs_queues, fs_queue))
			return -RN_ESILENT;
	}
	req->entered = fs_queue;
	atomic_store_explicit(&worker_of(req)->touching, fs_queue, memory_order_relaxed);
	return 0;
}

/* Counts one more request of that queue in the worker's hands. False: it has requests of another
 * queue, or the queue has all its workers. */
static bool worker_hold_fs_queue(struct worker *w, unsigned fs_queue)
{
	struct workers *ws = w->pool;
	uint32_t is = atomic_load(&w->hold);

	while (hold_count(is) > 0) {
		if (hold_fs_queue(is) != fs_queue || hold_count(is) == 0xffff)
			return false;
		if (atomic_compare_exchange_weak(&w->hold, &is, is + 1))
			return true;
	}
	if (atomic_fetch_add(&ws->bound[fs_queue], 1) < (fs_queue ? ws->cfg.count : ws->most) &&
	    atomic_compare_exchange_strong(&w->hold, &is, fs_queue << 16 | 1))
		return true;
	atomic_fetch_sub(&ws->bound[fs_queue], 1);
	return false;
}

/* Counts one request less. The watch may have changed the worker's queue. True: it has none any more. */
static bool worker_release_fs_queue(struct worker *w)
{
	uint32_t is = atomic_load(&w->hold);

	while (!atomic_compare_exchange_weak(&w->hold, &is, hold_count(is) == 1 ? 0 : is - 1))
		;
	if (hold_count(is) == 1)
		atomic_fetch_sub(&w->pool->bound[hold_fs_queue(is)], 1);
	return hold_count(is) == 1;
}

/* Gives waiting calls to a worker that has no requests any more, and may be asleep. */
static void feed_any(struct workers *ws)
{
	for (unsigned i = 0; i < RPC_FS_QUEUES; i++)
		if (call_queue_waiting(&ws->calls, i) > 0 && worker_feed(ws, i))
			return;
}

/*
 * rpc_worker.move: a call goes on after a wait, or may not go on on its event thread. It goes to whichever worker has room
 * for its queue, as its own may be stuck by now.
 */
static void worker_move_call(struct rpc_worker *from, struct rpc_request *req)
{
	struct worker *w = rn_container_of(from, struct worker, rpc);
	struct workers *ws = w->pool;

	if (!w->loop && worker_release_fs_queue(w))
		feed_any(ws);
	worker_hand_over(ws, req);
}

void workers_ended(void *ctx, struct rpc_request *req)
{
	(void)ctx;
	if (!rpc_on_event_thread(req))
		worker_release_fs_queue(worker_of(req));
}

/* Puts a call that there is no stack for back into the queue. */
static void worker_requeue_call(struct worker *w, struct rpc_request *req)
{
	atomic_fetch_sub(&w->waiting, 1);
	worker_release_fs_queue(w);
	call_queue_push(&w->pool->calls, req);
}

static void worker_drain_inbox(struct worker *w)
{
	struct rn_inbox_node *node = rn_inbox_take(&w->rpc.inbox);

	while (node) {
		struct rpc_request *req = rn_container_of(node, struct rpc_request, node);

		atomic_store(&w->rest, node->next);
		if (req->waits || rpc_is_ready(&w->rpc))
			worker_run_queued(w, req);
		else
			worker_requeue_call(w, req);
		node = atomic_exchange(&w->rest, NULL);
	}
}

static void give_to_others(struct worker *w, struct rn_inbox_node *node)
{
	while (node) {
		struct rn_inbox_node *next = node->next;
		struct rpc_request *req = rn_container_of(node, struct rpc_request, node);

		atomic_fetch_sub(&w->waiting, 1);
		worker_release_fs_queue(w);
		worker_hand_over(w->pool, req);
		node = next;
	}
}

void worker_rescue(struct worker *w)
{
	give_to_others(w, atomic_exchange(&w->rest, NULL));
	give_to_others(w, rn_inbox_take(&w->rpc.inbox));
}

static void on_inbox(void *ctx)
{
	worker_drain_inbox(ctx);
}

static struct rpc_request *pop(struct workers *ws, unsigned fs_queue, enum call_kind kind)
{
	struct rpc_request *req = call_queue_pop(&ws->calls, fs_queue, kind);

	if (req)
		atomic_fetch_add_explicit(&ws->popped[fs_queue], 1, memory_order_relaxed);
	return req;
}

/* Takes a request of some queue in hand, and returns the queue. False: no request waits that the
 * worker may serve. */
static bool next_fs_queue(struct worker *w, unsigned *fs_queue)
{
	struct workers *ws = w->pool;
	const uint32_t is = atomic_load(&w->hold);
	unsigned from;

	if (hold_count(is) > 0) {
		*fs_queue = hold_fs_queue(is);
		return call_queue_waiting(&ws->calls, *fs_queue) > 0 &&
		       worker_hold_fs_queue(w, *fs_queue);
	}
	from = atomic_fetch_add_explicit(&ws->next_fs_queue, 1, memory_order_relaxed);
	for (unsigned i = 0; i < RPC_FS_QUEUES; i++) {
		*fs_queue = (from + i) % RPC_FS_QUEUES;
		if (call_queue_waiting(&ws->calls, *fs_queue) > 0 &&
		    worker_hold_fs_queue(w, *fs_queue))
			return true;
	}
	return false;
}

/* Begins waiting calls. True: there are more, and room for them. */
static bool take_turns(struct worker *w)
{
	unsigned fs_queue;

	for (unsigned n = 0;; n++) {
		const bool ring_full = vfs_worker_in_flight(w->rpc.vfs) >= IN_FLIGHT_MAX;
		/* Without a stack for another call those that have begun go on, and give theirs back. */
		const bool ready = rpc_is_ready(&w->rpc);

		atomic_store(&w->ring_full, ring_full);
		atomic_store(&w->no_stack, !ready);
		if (ring_full || !next_fs_queue(w, &fs_queue))
			return false;
		struct rpc_request *req =
			n < TAKE_MAX ? pop(w->pool, fs_queue, ready ? CALL_ANY : CALL_BEGUN) : NULL;

		if (!req) {
			worker_release_fs_queue(w);
			return n == TAKE_MAX;
		}
		worker_assign_call(w, req);
		worker_run_queued(w, req);
	}
}

static void report_started(struct worker *w, int error)
{
	pthread_mutex_lock(&w->pool->lock);
	w->error = error;
	atomic_store(&w->ready, !error);
	w->pool->started++;
	pthread_cond_signal(&w->pool->changed);
	pthread_mutex_unlock(&w->pool->lock);
}

/*
 * Ends the process when a worker's ring fails, since its requests will never be answered.
 * Everything acknowledged is on disk and clients retransmit, so a restart by the service manager is
 * the cure.
 */
static void die(struct worker *w, int rc)
{
	rn_err(w->pool->cfg.log, "worker %u: its ring failed, giving up: %s", w->rpc.index,
	       strerror(-rc));
	_exit(EX_SOFTWARE);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	const struct workers_config *cfg = &w->pool->cfg;
	int rc = vfs_worker_new(cfg->vfs, cfg->ring_entries, &w->rpc.vfs);

	if (!rc)
		rc = vfs_worker_watch(w->rpc.vfs, w->rpc.inbox.fd, on_inbox, w);
	report_started(w, rc);
	if (!rc && w->rpc.index == 0 && !vfs_worker_has_ring(w->rpc.vfs))
		rn_notice(cfg->log,
			  "io_uring is not available: file data goes by plain system calls");
	while (!rc && (!atomic_load(&w->stop) || vfs_worker_in_flight(w->rpc.vfs))) {
		const bool more = take_turns(w);

		rc = more ? vfs_worker_poll(w->rpc.vfs)
			  : vfs_worker_wait(w->rpc.vfs, w->rpc.spare ? -1 : NO_STACK_MS);
		atomic_fetch_add(
			&w->beat,
			2); /* it is not stuck in what a fiber did that the ring has woken */
		if (rc == -ETIME || rc == -EINTR || rc == -EAGAIN)
			rc = 0;
		if (rc)
			die(w, rc);
	}
	if (w->rpc.vfs)
		vfs_worker_free(w->rpc.vfs);
	return NULL;
}

int worker_start(struct workers *ws)
{
	const unsigned i = atomic_load(&ws->count);
	struct worker *w;
	char name[16];
	int rc;

	if (i == ws->most)
		return -RN_EFULL;
	w = ws->worker[i];
	if (!w)
		w = ws->worker[i] = worker_add(ws, NULL);
	if (!w)
		return -ENOMEM;
	w->rpc.index = i;
	rc = rn_inbox_init(&w->rpc.inbox);
	if (rc)
		return rc;
	rc = -pthread_create(&w->thread, NULL, worker_main, w);
	if (rc) {
		rn_inbox_fini(&w->rpc.inbox);
		return rc;
	}
	snprintf(name, sizeof(name), "worker-%u", i % 1000);
	pthread_setname_np(w->thread, name);
	atomic_store(&ws->count, i + 1);
	return 0;
}

/* True if the worker may get a call of the queue. Calls in an inbox wait for the call before them.
 * Calls of queue 0 must not, as they may turn out to use any file system. begun: the call has a stack. */
static bool worker_has_room(struct worker *w, unsigned fs_queue, bool begun)
{
	return atomic_load(&w->waiting) < (fs_queue ? INBOX_MAX : 1) &&
	       !atomic_load(&w->ring_full) && (begun || !atomic_load(&w->no_stack)) &&
	       atomic_load(&w->ready) && !atomic_load(&w->stalled);
}

static bool worker_may_hold_fs_queue(struct worker *w, unsigned fs_queue)
{
	const uint32_t is = atomic_load(&w->hold);

	return hold_count(is) == 0 || hold_fs_queue(is) == fs_queue;
}

/* The worker with fewest waiting calls that has room for the queue's calls. */
static struct worker *least_busy(struct workers *ws, unsigned fs_queue, bool begun)
{
	const unsigned from = atomic_fetch_add_explicit(&ws->next, 1, memory_order_relaxed);
	const unsigned count = atomic_load(&ws->count);
	struct worker *best = NULL;
	unsigned fewest = UINT_MAX;

	for (unsigned i = 0; i < count; i++) {
		struct worker *w = ws->worker[(from + i) % count];
		unsigned n = atomic_load_explicit(&w->waiting, memory_order_relaxed);

		if (n >= fewest || !worker_has_room(w, fs_queue, begun) ||
		    !worker_may_hold_fs_queue(w, fs_queue))
			continue;
		fewest = n;
		best = w;
		if (n == 0)
			break;
	}
	return best;
}

/* An idle worker, the connection's last one first; else the one with fewest waiting calls that has
 * room; else NULL. The request is counted in its hands. */
static struct worker *pick(struct workers *ws, struct rpc_worker *last, unsigned fs_queue,
			   bool begun)
{
	struct worker *w;

	if (last) {
		w = rn_container_of(last, struct worker, rpc);
		if (atomic_load(&w->waiting) == 0 && worker_has_room(w, fs_queue, begun) &&
		    worker_hold_fs_queue(w, fs_queue))
			return w;
	}
	/* Another thread may be faster; if no worker has room the call waits in the queue. */
	for (unsigned i = 0; i < PICK_TRIES && (w = least_busy(ws, fs_queue, begun)) != NULL; i++)
		if (worker_hold_fs_queue(w, fs_queue))
			return w;
	return NULL;
}

static void worker_post_call(struct worker *w, struct rpc_request *req)
{
	worker_assign_call(w, req);
	rn_inbox_post(&w->rpc.inbox, &req->node);
}

bool worker_feed(struct workers *ws, unsigned fs_queue)
{
	struct worker *w = pick(ws, NULL, fs_queue, false);
	struct rpc_request *req = w ? pop(ws, fs_queue, CALL_ANY) : NULL;

	if (req)
		worker_post_call(w, req);
	else if (w)
		worker_release_fs_queue(w);
	return req != NULL;
}

static void workers_push_call(struct workers *ws, struct rpc_request *req)
{
	const unsigned fs_queue = req->fs_queue;

	call_queue_push(&ws->calls, req);
	/* A worker that went to sleep just before has room. */
	worker_feed(ws, fs_queue);
}

static void push_to(struct workers *ws, struct rpc_request *req, unsigned fs_queue)
{
	req->fs_queue = fs_queue;
	workers_push_call(ws, req);
}

/* True if a further call may get stuck in a blocked queue. One that has is counted in the queue from one of the next looks on. */
static bool may_probe(struct workers *ws, unsigned fs_queue)
{
	return call_queue_waiting(&ws->calls, 0) == 0 &&
	       atomic_load(&ws->bound[fs_queue]) < ws->cfg.count + STUCK_MORE;
}

void worker_divert(struct workers *ws, unsigned fs_queue)
{
	const bool probe = may_probe(ws, fs_queue);
	struct rpc_request *req;

	while ((req = pop(ws, fs_queue, CALL_OUTSIDE)) != NULL)
		push_to(ws, req, 0);
	req = probe ? pop(ws, fs_queue, CALL_BEGUN) : NULL;
	if (req)
		push_to(ws, req, 0);
}

void worker_hand_over(struct workers *ws, struct rpc_request *req)
{
	struct rpc_worker *last =
		atomic_load_explicit(&req->conn->last_worker, memory_order_relaxed);
	struct worker *w = NULL;

	req->queued_ns = rn_now_ns();
	if (call_queue_waiting(&ws->calls, req->fs_queue) == 0)
		w = pick(ws, last, req->fs_queue, req->waits);
	if (w)
		worker_post_call(w, req);
	else
		workers_push_call(ws, req);
}

/*
 * Workers that have an event loop: calls that run on the event thread that received them. A call begins there if its file
 * system is local and answers. What would wait, or needs another identity, moves to the pool (rpc/worker.h, vfs/vfs_worker.h).
 * The loop keeps calls while the transports look at their descriptors, and makes them before they do so again; so their
 * order is that in which clients' connections have their turns (transport/turns.h).
 *
 * A call may wait all the same: for a lock of the kernel's, or for memory. When it does so for 50 to 100 ms another thread
 * goes on with the event loop (daemon/workers/worker_watch.c), and calls of that file system go to the pool until none is stuck.
 */

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
	if (vfs_worker_new_event(ws->cfg.vfs, &w->rpc.vfs) != 0)
		w->rpc.vfs = NULL; /* the thread takes no calls */
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

/* Counts how often the thread has gone to sleep. Waiting for a processor is no sleep. */
static long count_sleeps(void)
{
	struct rusage u;

	return getrusage(RUSAGE_THREAD, &u) == 0 ? u.ru_nvcsw : 0;
}

/*
 * A call that takes long may have waited for its file system, or for a processor. After the first
 * one the thread is careful for a while and counts sleeps; then it knows.
 */
static void note_slow(struct worker *w, unsigned fs_queue, bool slept)
{
	const uint64_t now = rn_now_ns();

	if (slept)
		fs_queue_was_slow(w->pool->cfg.fs_queues, fs_queue, now);
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
	const unsigned fs_queue = req->fs_queue;
	const bool careful = start < w->careful_until;
	const long sleeps = careful ? count_sleeps() : 0;

	atomic_store_explicit(&w->rpc.ended_ns, 0, memory_order_relaxed);
	req->run_ns = start;
	req->worker = &w->rpc;
	worker_run(w, req);
	if (end_of_call(w) - start >= SLOW_NS)
		note_slow(w, fs_queue, careful && count_sleeps() != sleeps);
}

/* True if calls of that queue may begin here. Those of queue 0 may until they enter a file system. */
static bool is_for_loops(struct workers *ws, unsigned fs_queue, uint64_t now)
{
	return fs_queue == 0 || fs_queue_on_event_thread(ws->cfg.fs_queues, fs_queue, now);
}

static void event_worker_run(void *ctx, void *state, struct rn_inbox_node *call)
{
	struct rpc_request *req = rn_container_of(call, struct rpc_request, node);
	const uint64_t now = rn_now_ns();
	struct worker *w = state;

	/* The thread before may have got stuck in the queue, or left calls to one that could not get its own state. */
	if (!w || !w->rpc.vfs || !rpc_is_ready(&w->rpc) || !is_for_loops(ctx, req->fs_queue, now))
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
	if (!is_for_loops(ws, req->fs_queue, req->arrived_ns))
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

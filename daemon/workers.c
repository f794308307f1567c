/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where requests wait. A worker with room gets a request straight into its inbox. When none has
 * room, the request waits for its client's turn (daemon/call_queue.h), and workers that have
 * finished one take the next from there. So the bound on what a worker may have waiting is what
 * decides how much of one client can be ahead of another's call.
 *
 * A worker has room while it has fewer than INBOX_MAX calls to begin with and IN_FLIGHT_MAX
 * operations on their way to a file system: a slow disk's queue would be no fairer than an inbox.
 */
#include "daemon/workers.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sysexits.h>
#include <unistd.h>

#include "daemon/call_queue.h"
#include "lib/checked.h"
#include "rpc/worker.h"
#include "vfs/worker.h"

#define INBOX_MAX 2u	  /* the one being worked on, and one to go on with */
#define IN_FLIGHT_MAX 32u /* operations of a worker's ring while others wait for their turn */
#define TAKE_MAX 8u	  /* calls that a worker begins before it looks at its ring again */

struct worker {
	struct rpc_worker rpc; /* requests point here */
	struct workers *pool;
	pthread_t thread;
	_Atomic unsigned waiting; /* submitted and not yet started and brought to its first pause */
	_Atomic bool stuffed;	  /* IN_FLIGHT_MAX operations: will look for calls when one ends */
	_Atomic bool stop;
	int error; /* of the start, read after ready */
};

struct workers {
	struct workers_config cfg;
	pthread_mutex_t lock; /* guards started */
	pthread_cond_t changed;
	unsigned started;
	struct call_queue calls;
	_Atomic unsigned next; /* where a scan for an idle worker starts */
	unsigned count;
	struct worker worker[];
};

static void run_fresh(struct rpc_request *req)
{
	struct worker *w = rn_container_of(req->worker, struct worker, rpc);

	rpc_dispatch(w->pool->cfg.server, req);
	atomic_fetch_sub(&w->waiting, 1); /* in order with call_queue_waiting() */
}

static void assign(struct worker *w, struct rpc_request *req)
{
	req->worker = &w->rpc;
	req->work = run_fresh;
	atomic_store_explicit(&req->conn->last_worker, &w->rpc, memory_order_relaxed);
	atomic_fetch_add_explicit(&w->waiting, 1, memory_order_relaxed);
}

static void drain(struct worker *w)
{
	struct rn_inbox_node *node = rn_inbox_take(&w->rpc.inbox);

	while (node) {
		struct rn_inbox_node *next = node->next;
		struct rpc_request *req = rn_container_of(node, struct rpc_request, node);

		req->work(req);
		node = next;
	}
}

static void on_inbox(void *ctx)
{
	drain(ctx);
}

/* Begins calls whose turn it is. True: there are more, and room for them. */
static bool take_turns(struct worker *w)
{
	struct call_queue *t = &w->pool->calls;

	for (unsigned n = 0;; n++) {
		const bool stuffed = vfs_worker_in_flight(w->rpc.vfs) >= IN_FLIGHT_MAX;

		atomic_store(&w->stuffed, stuffed);
		if (stuffed || call_queue_waiting(t) == 0)
			return false;
		if (n == TAKE_MAX)
			return true;
		struct rpc_request *req = call_queue_pop(t);

		if (req == NULL)
			return false;
		assign(w, req);
		req->work(req);
	}
}

static void report_started(struct worker *w, int error)
{
	pthread_mutex_lock(&w->pool->lock);
	w->error = error;
	w->pool->started++;
	pthread_cond_signal(&w->pool->changed);
	pthread_mutex_unlock(&w->pool->lock);
}

/* A worker that cannot wait any more holds requests that will never be answered. Everything
 * acknowledged is on disk and clients retransmit, so a restart by the service manager is the cure.
 */
static void die(struct worker *w, int err)
{
	rn_err(w->pool->cfg.log, "worker %u: its ring failed, giving up: %s", w->rpc.index,
	       strerror(-err));
	_exit(EX_SOFTWARE);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	const struct workers_config *cfg = &w->pool->cfg;
	int err = vfs_worker_new(cfg->vfs, cfg->ring_entries, &w->rpc.vfs);

	if (!err)
		err = vfs_worker_watch(w->rpc.vfs, w->rpc.inbox.fd, on_inbox, w);
	report_started(w, err);
	if (!err && w->rpc.index == 0 && !vfs_worker_has_ring(w->rpc.vfs))
		rn_notice(cfg->log, "no io_uring here: file data goes by plain system calls");
	while (!err && (!atomic_load(&w->stop) || vfs_worker_in_flight(w->rpc.vfs))) {
		const bool more = take_turns(w);

		err = more ? vfs_worker_poll(w->rpc.vfs) : vfs_worker_wait(w->rpc.vfs, -1);
		if (err == -ETIME || err == -EINTR || err == -EAGAIN)
			err = 0;
		if (err)
			die(w, err);
	}
	if (w->rpc.vfs)
		vfs_worker_free(w->rpc.vfs);
	return NULL;
}

static int start_one(struct workers *ws, unsigned i)
{
	struct worker *w = &ws->worker[i];
	char name[16];

	w->pool = ws;
	w->rpc.index = i;
	int err = rn_inbox_init(&w->rpc.inbox);
	if (err)
		return err;
	err = -pthread_create(&w->thread, NULL, worker_main, w);
	if (err) {
		rn_inbox_fini(&w->rpc.inbox);
		return err;
	}
	snprintf(name, sizeof(name), "worker-%u", i % 1000);
	pthread_setname_np(w->thread, name);
	ws->count++;
	return 0;
}

static int wait_started(struct workers *ws)
{
	int err = 0;

	pthread_mutex_lock(&ws->lock);
	while (ws->started < ws->count)
		pthread_cond_wait(&ws->changed, &ws->lock);
	for (unsigned i = 0; i < ws->count; i++)
		if (ws->worker[i].error)
			err = ws->worker[i].error;
	pthread_mutex_unlock(&ws->lock);
	return err;
}

int workers_start(const struct workers_config *cfg, struct workers **out)
{
	struct workers *ws = calloc(1, sizeof(*ws) + cfg->count * sizeof(ws->worker[0]));
	int err = ws ? 0 : -ENOMEM;

	if (err)
		return err;
	ws->cfg = *cfg;
	pthread_mutex_init(&ws->lock, NULL);
	pthread_cond_init(&ws->changed, NULL);
	call_queue_init(&ws->calls);
	for (unsigned i = 0; !err && i < cfg->count; i++)
		err = start_one(ws, i);
	int failed = wait_started(ws);
	if (err || failed) {
		workers_stop(ws);
		return err ? err : failed;
	}
	*out = ws;
	return 0;
}

void workers_stop(struct workers *ws)
{
	for (unsigned i = 0; i < ws->count; i++) {
		struct worker *w = &ws->worker[i];

		atomic_store(&w->stop, true);
		eventfd_write(w->rpc.inbox.fd, 1);
		pthread_join(w->thread, NULL);
		rn_inbox_fini(&w->rpc.inbox);
	}
	call_queue_fini(&ws->calls);
	pthread_cond_destroy(&ws->changed);
	pthread_mutex_destroy(&ws->lock);
	free(ws);
}

static bool has_room(struct worker *w)
{
	return atomic_load(&w->waiting) < INBOX_MAX && !atomic_load(&w->stuffed);
}

/* An idle worker, the connection's last one first; else the one with fewest waiting that has room;
 * else NULL. */
static struct worker *pick(struct workers *ws, struct rpc_worker *last)
{
	struct worker *best = NULL;
	unsigned fewest = UINT_MAX;

	if (last) {
		struct worker *w = rn_container_of(last, struct worker, rpc);
		if (atomic_load(&w->waiting) == 0 && has_room(w))
			return w;
	}
	unsigned from = atomic_fetch_add_explicit(&ws->next, 1, memory_order_relaxed);
	for (unsigned i = 0; i < ws->count; i++) {
		struct worker *w = &ws->worker[(from + i) % ws->count];
		unsigned n = atomic_load_explicit(&w->waiting, memory_order_relaxed);

		if (n >= fewest || !has_room(w))
			continue;
		fewest = n;
		best = w;
		if (n == 0)
			break;
	}
	return best;
}

static void post(struct worker *w, struct rpc_request *req)
{
	assign(w, req);
	rn_inbox_post(&w->rpc.inbox, &req->node);
}

static void submit(void *ctx, struct rpc_request *req)
{
	struct workers *ws = ctx;
	struct rpc_worker *last =
		atomic_load_explicit(&req->conn->last_worker, memory_order_relaxed);
	struct worker *w = NULL;

	if (call_queue_waiting(&ws->calls) == 0)
		w = pick(ws, last);
	if (w) {
		post(w, req);
		return;
	}
	call_queue_push(&ws->calls, req);
	/* A worker may have gone to sleep just before: then it has room. */
	w = pick(ws, NULL);
	if (w && (req = call_queue_pop(&ws->calls)))
		post(w, req);
}

struct rpc_sink workers_sink(struct workers *ws)
{
	return (struct rpc_sink){ .submit = submit, .ctx = ws };
}

void workers_observe(struct workers *ws, const struct rpc_request *req)
{
	call_queue_charge(&ws->calls, req);
}

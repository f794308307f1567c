/* SPDX-License-Identifier: BSD-2-Clause */
/* The pool and its watch together: start, stop, and the executor of the transports' calls. */
#include "daemon/workers/workers.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "daemon/workers/admission.h"
#include "daemon/workers/worker_pool.h"
#include "lib/fiber.h"
#include "lib/util.h"
#include "vfs/vfs_worker.h"

#define STACKS_LEAST                                                                               \
	128u /* stacks for calls that there are without memory: more than threads that run calls */

static int wait_started(struct workers *ws)
{
	int rc = 0;

	pthread_mutex_lock(&ws->lock);
	while (ws->started < ws->count)
		pthread_cond_wait(&ws->changed, &ws->lock);
	for (unsigned i = 0; i < ws->count; i++)
		if (ws->worker[i]->error)
			rc = ws->worker[i]->error;
	pthread_mutex_unlock(&ws->lock);
	return rc;
}

int workers_start(const struct workers_config *cfg, struct workers **out)
{
	const unsigned most = cfg->count + WORKERS_MORE;
	struct workers *ws = calloc(1, sizeof(*ws) + most * sizeof(ws->worker[0]));
	int rc = ws ? 0 : -ENOMEM;

	if (rc)
		return rc;
	ws->cfg = *cfg;
	ws->most = most;
	ws->stacks = rn_stacks_new(cfg->budget, STACKS_LEAST);
	if (!ws->stacks) {
		free(ws);
		return -ENOMEM;
	}
	pthread_mutex_init(&ws->lock, NULL);
	pthread_cond_init(&ws->changed, NULL);
	call_queue_init(&ws->calls);
	for (unsigned i = 0; !rc && i < cfg->count; i++)
		rc = worker_start(ws);
	int failed = wait_started(ws);
	if (!rc && !failed)
		rc = worker_watch_start(ws);
	if (rc || failed) {
		workers_stop(ws);
		workers_free(ws);
		return rc ? rc : failed;
	}
	*out = ws;
	return 0;
}

static void worker_end(struct worker *w)
{
	atomic_store(&w->stop, true);
	eventfd_write(w->rpc.inbox.fd, 1);
	pthread_join(w->thread, NULL);
	rn_inbox_fini(&w->rpc.inbox);
}

void workers_stop(struct workers *ws)
{
	worker_watch_stop(ws);
	for (unsigned i = 0; i < ws->count; i++)
		worker_end(ws->worker[i]);
}

void workers_free(struct workers *ws)
{
	struct worker *w;

	if (!ws)
		return;
	while ((w = atomic_load(&ws->all)) != NULL) {
		atomic_store(&ws->all, w->next);
		rn_fiber_put(w->rpc.spare);
		free(w);
	}
	rn_stacks_free(ws->stacks);
	call_queue_fini(&ws->calls);
	pthread_cond_destroy(&ws->changed);
	pthread_mutex_destroy(&ws->lock);
	free(ws);
}

struct rn_stacks *workers_stacks(struct workers *ws)
{
	return ws->stacks;
}

void workers_unwatch(struct workers *ws)
{
	worker_watch_stop(ws);
}

void workers_limit(struct workers *ws, unsigned more)
{
	atomic_store(&ws->most, ws->cfg.count + (unsigned)rn_min(more, WORKERS_MORE));
}

/* A blocked queue's calls are refused by workers that have nothing to do with its file system. */
static unsigned fs_queue_of_export(const struct workers *ws, uint32_t id)
{
	const unsigned fs_queue = fs_queue_of_export_id(ws->cfg.fs_queues, id);

	return fs_queue_blocked(ws->cfg.fs_queues, fs_queue) ? 0 : fs_queue;
}

static unsigned fs_queue_of_request(const struct workers *ws, const struct rpc_request *req)
{
	uint32_t id;

	return first_handle_export(req, &id) ? fs_queue_of_export(ws, id) : 0;
}

static void workers_submit(void *ctx, struct rpc_request *req)
{
	struct workers *ws = ctx;

	req->server = ws->cfg.server;
	req->work = rpc_dispatch;
	req->entered = 0;
	req->fs_queue = fs_queue_of_request(ws, req);
	if (!event_worker_keep(ws, req))
		worker_hand_over(ws, req);
	if (atomic_load(&ws->watch.asleep))
		worker_watch_wake(ws);
}

void workers_background(struct workers *ws, struct rpc_request *req, uint32_t export_id)
{
	req->entered = 0;
	req->fs_queue = fs_queue_of_export(ws, export_id);
	worker_hand_over(ws, req);
	if (atomic_load(&ws->watch.asleep))
		worker_watch_wake(ws);
}

struct rpc_executor workers_executor(struct workers *ws)
{
	return (struct rpc_executor){ .submit = workers_submit, .ctx = ws };
}

void workers_stats(struct workers *ws, struct workers_stats *out)
{
	*out = (struct workers_stats){ .workers = atomic_load(&ws->count) };
	out->fds = out->workers;
	for (const struct worker *w = atomic_load(&ws->all); w; w = w->next) {
		const bool stuck = atomic_load(&w->stuck);

		out->stuck += stuck && !w->loop;
		out->stuck_loops += stuck && w->loop;
		out->busy += !stuck && hold_count(atomic_load(&w->hold)) > 0;
		if (atomic_load(&w->ready))
			out->fds += vfs_worker_has_ring(w->rpc.vfs);
	}
	for (unsigned i = 0; i < RPC_FS_QUEUES; i++)
		out->queued += call_queue_waiting(&ws->calls, i);
}

void workers_waits(struct workers *ws, struct rn_durations *sum)
{
	for (const struct worker *w = atomic_load(&ws->all); w; w = w->next)
		rn_histogram_add(sum, &w->waits);
}

void workers_observe(struct workers *ws, const struct rpc_request *req)
{
	call_queue_charge(&ws->calls, req);
}

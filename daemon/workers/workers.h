/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The worker pool: threads that decode, run and answer requests. A request is given to an idle
 * worker (the one that served its connection last, if that is idle), else to one with few waiting,
 * so that a client with one connection can keep all of them busy; when all are, clients take turns.
 */
#ifndef RN_DAEMON_WORKERS_WORKERS_H
#define RN_DAEMON_WORKERS_WORKERS_H

#include "lib/histogram.h"
#include "lib/log.h"
#include "rpc/program.h"

struct ev_loop;
struct fs_queues;
struct rn_budget;
struct rn_stacks;
struct vfs;
struct workers;

#define WORKERS_MORE 60u /* workers that may be started on demand, at most */

struct workers_config {
	/* Workers; one file system's queue has at most as many. More start when other queues need them. */
	unsigned count;
	struct fs_queues *fs_queues;
	unsigned ring_entries;
	struct vfs *vfs;
	struct rpc_server *server;
	struct rn_budget *budget; /* for the stacks of calls */
	const struct rn_logger *log;
};

/* Starts the threads; 0 or -errno when any of them cannot be set up. */
int workers_start(const struct workers_config *cfg, struct workers **out);
/* Starts an event thread that runs calls as well (daemon/workers/worker_pool.c). The loop is the caller's, to
 * be freed after workers_unwatch and before workers_stop. At most RPC_LOOPS_MAX. 0 or -errno. */
int workers_loop(struct workers *ws, const char *name, struct ev_loop **out);
/* Ends the thread that looks for stuck calls. */
void workers_unwatch(struct workers *ws);
/* At most so many are started on demand: where descriptors are few. */
void workers_limit(struct workers *ws, unsigned more);
/* The executor that transports submit calls to. */
struct rpc_executor workers_executor(struct workers *ws);
/* rpc_server.background. */
void workers_background(struct workers *ws, struct rpc_request *req, uint32_t export_id);
/* Charges the client for its reply, in the order of its next turns. */
void workers_observe(struct workers *ws, const struct rpc_request *req);
/* The workers that there are, those that were started on demand included; those of them that have been stuck in a
 * system call for seconds; and the descriptors that they hold: of each, its inbox's and its ring's. */
struct workers_stats {
	unsigned workers, stuck, fds;
	unsigned busy;	      /* not stuck, with requests in hand */
	unsigned stuck_loops; /* event threads that are stuck */
	unsigned queued;      /* requests that wait for a worker */
};
void workers_stats(struct workers *ws, struct workers_stats *out);
/* The stacks of the calls under way. */
struct rn_stacks *workers_stacks(struct workers *ws);
/* Adds the times that requests have waited for a worker. */
void workers_waits(struct workers *ws, struct rn_durations *sum);
/* rpc_server.ended. */
void workers_ended(void *ctx, struct rpc_request *req);
/* In a call that is about to use an export's file system: has it go on at a worker of that one's queue. -RN_ESILENT: that
 * file system does not answer, and has all its workers. No lock is held. */
int worker_enters(struct fs_queues *fs_queues, uint32_t export_id);
/* Ends the threads; nothing is in flight any more and no transport can submit. */
void workers_stop(struct workers *ws);
/* After workers_stop, when no thread is left that may have woken a call: it may still look for a worker with room, although its call
 * has been answered. NULL is allowed. */
void workers_free(struct workers *ws);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internals of workers. A worker is a thread that runs calls: one of the pool which may wait, or one that has,
 * or had, an event loop, which should not. daemon/workers/worker_watch.c looks after all of them, and daemon/workers/workers.c puts them together.
 */
#ifndef RN_DAEMON_WORKERS_WORKER_POOL_H
#define RN_DAEMON_WORKERS_WORKER_POOL_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/workers/fs_queues.h"
#include "daemon/workers/workers.h"
#include "rpc/worker.h"

/* Time without progress after which a worker is stuck, and its file system counts as one that does not answer: the queue is blocked, and
 * the log says so. It has stalled, and gets nothing more, long before (STALLED_MS in worker_watch.c). Slow disks take time, too. */
#define STUCK_MS 2000u

struct ev_loop;

struct worker {
	struct rpc_worker rpc; /* requests point here */
	struct workers *pool;
	struct worker *next;	   /* in workers.all */
	_Atomic uint64_t beat;	   /* odd while it runs a request */
	_Atomic unsigned touching; /* the queue whose file system the request uses */

	/* Used by the watch only. */
	uint64_t seen; /* beat at the last look */
	unsigned stalled_ms;
	_Atomic bool stalled; /* no progress for so long that it gets no further requests */
	_Atomic bool
		stuck; /* for so long that its file system counts as one that does not answer */

	/* Members of an event thread's worker. */
	struct ev_loop *loop; /* NULL: a worker of the pool */
	_Atomic bool ended;   /* the thread; the loop's next one uses the worker */
	bool replaced; /* another thread was started to take the loop from it, in this call; used by the watch */
	uint64_t careful_until; /* rn_now_ns: is_for_loops() */

	/* Members of a worker of the pool. */
	pthread_t thread;
	_Atomic unsigned waiting; /* requests submitted to it that it has not started yet */
	_Atomic(struct rn_inbox_node *)
		rest; /* those that it has taken out of its inbox together with the present one */
	/* True if IN_FLIGHT_MAX operations are under way: it takes calls again when one ends. */
	_Atomic bool ring_full;
	_Atomic bool no_stack; /* for a call that has not begun */
	_Atomic bool ready, stop;
	/* (Queue << 16) + requests in hand, which are given to it and not answered yet. While there
	 * are some, it takes none of another queue. */
	_Atomic uint32_t hold;
	struct rn_histogram waits; /* times until its requests have begun; recorded by it alone */
	int error;		   /* result of its start, read after ready */
};

struct worker_watch {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t woken;
	_Atomic bool asleep; /* changed under the lock */
	bool started, stop;
	uint64_t popped[RPC_FS_QUEUES];	      /* at the last look */
	uint32_t silent;		      /* file system queues, as bits: the log has them */
	uint64_t silent_since[RPC_FS_QUEUES]; /* rn_now_ns */
	/* consecutive looks in which calls waited in the queue and none was taken */
	unsigned starved[RPC_FS_QUEUES];
};

struct rn_stacks;

struct workers {
	struct workers_config cfg;
	struct rn_stacks *stacks;
	_Atomic(struct worker *)
		all;	      /* added at the front, never removed, as requests point to them */
	pthread_mutex_t lock; /* guards started */
	pthread_cond_t changed;
	unsigned started;
	struct call_queue calls;
	_Atomic uint64_t popped[RPC_FS_QUEUES]; /* calls taken from the queue */
	_Atomic unsigned bound[RPC_FS_QUEUES]; /* workers that have requests of the queue in hand */
	_Atomic unsigned next;		       /* where a scan for an idle worker starts */
	_Atomic unsigned next_fs_queue;
	_Atomic unsigned count; /* elements of worker[] in use; grows */
	_Atomic unsigned most;
	struct worker_watch watch;
	struct worker *worker[]; /* of the pool */
};

static inline unsigned hold_fs_queue(uint32_t hold)
{
	return hold >> 16;
}
static inline unsigned hold_count(uint32_t hold)
{
	return hold & 0xffff;
}

int worker_start(
	struct workers *
		ws); /* starts one more of the pool; 0, -RN_EFULL: there may be no more, or -errno */
/* Gives waiting calls of the queue to workers that have room. True: there was one. */
bool worker_feed(struct workers *ws, unsigned fs_queue);
/* Gives a request to a worker of the pool that has room for its queue, or queues it. Any thread. */
void worker_hand_over(struct workers *ws, struct rpc_request *req);
/* For the watch: gives the calls that a stalled worker has not begun to others. */
void worker_rescue(struct worker *w);
/* For the watch, at each look: moves the waiting calls of a blocked queue to queue 0, whose workers tell the clients to come
 * again. Of calls that use the file system already it moves one, which may get stuck or have nothing to do there any more,
 * while few are stuck. */
void worker_divert(struct workers *ws, unsigned fs_queue);

/* On an event thread: keeps the call, to run it there. False: it is for the pool. */
bool event_worker_keep(struct workers *ws, struct rpc_request *req);

/* The thread that looks after workers: see daemon/workers/worker_watch.c. */

struct workers;

int worker_watch_start(struct workers *ws); /* 0 or -errno */
void worker_watch_stop(struct workers *ws);
void worker_watch_wake(struct workers *ws); /* when there is work again */

#endif

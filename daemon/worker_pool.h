/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Internals of the pool. daemon/worker_pool.c has the workers and what they run,
 * daemon/worker_watch.c looks after them, and daemon/workers.c puts both together.
 */
#ifndef RN_DAEMON_WORKER_POOL_H
#define RN_DAEMON_WORKER_POOL_H

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/call_queue.h"
#include "daemon/lanes.h"
#include "daemon/workers.h"
#include "rpc/worker.h"

/* Time without progress after which a file system counts as one that does not answer, and is told of. Slow disks take time, too. */
#define SILENT_MS 2000u

struct worker {
	struct rpc_worker rpc; /* requests point here */
	struct workers *pool;
	pthread_t thread;
	_Atomic unsigned waiting; /* requests submitted to it that it has not started yet */
	/* True if IN_FLIGHT_MAX operations are under way: it takes calls again when one ends. */
	_Atomic bool ring_full;
	_Atomic bool ready, stop;
	/* (Lane << 16) + requests in hand, which are given to it and not answered yet. While there
	 * are some, it takes none of another lane. */
	_Atomic uint32_t hold;
	_Atomic uint64_t beat;	   /* odd while it runs a request */
	_Atomic unsigned touching; /* the lane whose file system the request uses */
	struct rn_histogram waits; /* times until its requests have begun; recorded by it alone */
	int error;		   /* result of its start, read after ready */

	/* Used by the watch only. */
	uint64_t seen; /* beat at the last look */
	unsigned stuck_ms;
	_Atomic bool stuck; /* no progress for so long that it gets no further requests */
	_Atomic bool
		silent; /* for so long that its file system counts as one that does not answer */
};

/* Lanes as bits. */
struct stuck_lanes {
	uint32_t stuck;	 /* some call makes no progress */
	uint32_t silent; /* for so long that the file system counts as one that does not answer */
};

struct worker_watch {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t woken;
	_Atomic bool asleep; /* changed under the lock */
	bool started, stop;
	uint64_t popped[RPC_LANES];	  /* at the last look */
	uint32_t silent;		  /* lanes, as bits: the log has them */
	uint64_t silent_since[RPC_LANES]; /* rn_now_ns */
	/* consecutive looks in which calls waited in the lane and none was taken */
	unsigned starved[RPC_LANES];
};

struct reactor;
struct rn_stacks;

struct workers {
	struct workers_config cfg;
	struct rn_stacks *stacks;
	struct reactor *reactor[RPC_LOOPS_MAX];
	_Atomic unsigned nreactors; /* at most RPC_LOOPS_MAX */
	pthread_mutex_t lock;	    /* guards started */
	pthread_cond_t changed;
	unsigned started;
	struct call_queue calls;
	_Atomic uint64_t popped[RPC_LANES]; /* calls taken from the lane's queue */
	_Atomic unsigned bound[RPC_LANES];  /* workers that have requests of the lane in hand */
	_Atomic unsigned next;		    /* where a scan for an idle worker starts */
	_Atomic unsigned next_lane;
	_Atomic unsigned count; /* elements of worker[] in use; grows */
	_Atomic unsigned most;
	struct worker_watch watch;
	struct worker worker[];
};

static inline unsigned hold_lane(uint32_t hold)
{
	return hold >> 16;
}
static inline unsigned hold_count(uint32_t hold)
{
	return hold & 0xffff;
}

int worker_start(struct workers *ws); /* starts one more; 0 or -errno */
/* Gives waiting calls of the lane to workers that have room. True: there was one. */
bool worker_feed(struct workers *ws, unsigned lane);
/* Gives a request to a worker that has room for its lane, or queues it. Any thread. */
void worker_hand_over(struct workers *ws, struct rpc_request *req);
/* Moves the lane's waiting calls to lane 0, whose workers tell the clients to come again. */
void worker_divert(struct workers *ws, unsigned lane);

#endif

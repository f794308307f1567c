/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that wait for a worker, while all are busy, in each lane (daemon/lanes.h): clients take
 * turns, whatever the number of their connections. A call costs CALL_COST bytes and the data that
 * it moves, so that a client of large READs and one of GETATTRs get about the same time.
 * Thread-safe.
 */
#ifndef RN_DAEMON_CALL_QUEUE_H
#define RN_DAEMON_CALL_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/fair_queue.h"
#include "rpc/client.h"
#include "rpc/request.h"

/* What a call costs beside its data: the bytes that are copied in the time of a small call. */
#define CALL_COST (32u << 10)

struct call_queue {
	pthread_mutex_t lock;
	struct rn_fq queue[RPC_LANES];
	_Atomic unsigned waiting[RPC_LANES]; /* changed under the lock, looked at without */
};

void call_queue_init(struct call_queue *t);
void call_queue_fini(struct call_queue *t);

/* Into the lane req->lane; req->conn->client is set. */
void call_queue_push(struct call_queue *t, struct rpc_request *req);
struct rpc_request *call_queue_pop(struct call_queue *t, unsigned lane); /* NULL: nobody waits */
/* req has been served; its reply is in req->out. */
void call_queue_charge(struct call_queue *t, const struct rpc_request *req);

/* Sequentially consistent, like the change: who looks after he has made room for a request, and who
 * pushes one and looks for room after that, cannot both miss each other. */
static inline unsigned call_queue_waiting(const struct call_queue *t, unsigned lane)
{
	return atomic_load(&t->waiting[lane]);
}

#endif

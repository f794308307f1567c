/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests that wait for a worker, in each lane (daemon/lanes.h), while all are busy: clients take
 * turns, whatever the number of their connections. A call costs CALL_COST bytes and the data that
 * it moves, so that a client of large READs and one of GETATTRs get about the same time. Calls that have begun, and go on
 * after a wait, have had their turn: they come first, and alone where there is no stack for another call.
 * Thread-safe.
 */
#ifndef RN_DAEMON_CALL_QUEUE_H
#define RN_DAEMON_CALL_QUEUE_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/fair_queue.h"
#include "rpc/client.h"
#include "rpc/request.h"

/* Cost of a call without data: the bytes that are copied in the time of a small call. */
#define CALL_COST (32u << 10)

struct call_queue {
	pthread_mutex_t lock;
	struct rn_fq queue[RPC_LANES];
	/* Requests that have begun, by their inbox nodes, the oldest first. */
	struct {
		struct rn_inbox_node *first, **last;
		unsigned n;
	} begun[RPC_LANES];
	_Atomic unsigned waiting[RPC_LANES]; /* changed under the lock, read without */
};

void call_queue_init(struct call_queue *t);
void call_queue_fini(struct call_queue *t);

/* Queues req in the lane req->lane; req->conn->client is set. */
void call_queue_push(struct call_queue *t, struct rpc_request *req);
/* Calls to take out of the queue. */
enum call_kind {
	CALL_ANY,
	CALL_BEGUN,
	CALL_OUTSIDE, /* have not entered a file system */
};
/* NULL: none waits. */
struct rpc_request *call_queue_pop(struct call_queue *t, unsigned lane, enum call_kind kind);
/* Charges the client for a reply, in req->out. */
void call_queue_charge(struct call_queue *t, const struct rpc_request *req);

/*
 * Requests waiting in the lane. Sequentially consistent, like the change: a thread that makes room
 * for a request and then looks here, and one that pushes a request and then looks for room, cannot
 * both miss each other.
 */
static inline unsigned call_queue_waiting(const struct call_queue *t, unsigned lane)
{
	return atomic_load(&t->waiting[lane]);
}

#endif

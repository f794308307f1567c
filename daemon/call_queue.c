/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/call_queue.h"

#include "lib/util.h"
#include "rpc/client.h"

void call_queue_init(struct call_queue *t)
{
	pthread_mutex_init(&t->lock, NULL);
	/* One small call a turn: round robin by calls, until somebody moves data. */
	for (unsigned i = 0; i < RPC_LANES; i++) {
		rn_fq_init(&t->queue[i], CALL_COST);
		atomic_init(&t->waiting[i], 0);
	}
}

void call_queue_fini(struct call_queue *t)
{
	pthread_mutex_destroy(&t->lock);
}

/* Bytes that the call has brought, or that a piece of background work will move. */
static uint32_t bytes_of(const struct rpc_request *req)
{
	uint32_t sum = req->moves;

	for (unsigned i = 0; i < req->nseg; i++)
		sum += req->seg[i].len;
	return sum;
}

void call_queue_push(struct call_queue *t, struct rpc_request *req)
{
	const uint32_t cost = CALL_COST + bytes_of(req);

	struct rn_fq *q = &t->queue[req->lane];

	pthread_mutex_lock(&t->lock);
	rn_fq_push(q, &req->conn->client->calls[req->lane], &req->turn, cost);
	atomic_store(&t->waiting[req->lane], q->nitems);
	pthread_mutex_unlock(&t->lock);
}

struct rpc_request *call_queue_pop(struct call_queue *t, unsigned lane)
{
	struct rn_fq *q = &t->queue[lane];

	pthread_mutex_lock(&t->lock);
	struct rn_fq_item *it = rn_fq_pop(q);
	atomic_store(&t->waiting[lane], q->nitems);
	pthread_mutex_unlock(&t->lock);
	return it != NULL ? rn_container_of(it, struct rpc_request, turn) : NULL;
}

void call_queue_charge(struct call_queue *t, const struct rpc_request *req)
{
	if (call_queue_waiting(t, req->lane) == 0)
		return; /* no other client lost a turn by it */
	pthread_mutex_lock(&t->lock);
	rn_fq_charge(&t->queue[req->lane], &req->conn->client->calls[req->lane],
		     xdr_out_total(&req->out));
	pthread_mutex_unlock(&t->lock);
}

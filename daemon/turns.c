/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/turns.h"

#include "lib/checked.h"
#include "rpc/client.h"

void turns_init(struct turns *t)
{
	pthread_mutex_init(&t->lock, NULL);
	/* One small call a turn: round robin by calls, until somebody moves data. */
	rn_fq_init(&t->queue, TURN_CALL_COST);
	atomic_init(&t->waiting, 0);
}

void turns_fini(struct turns *t)
{
	pthread_mutex_destroy(&t->lock);
}

static uint32_t arrived_bytes(const struct rpc_request *req)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < req->nseg; i++)
		sum += req->seg[i].len;
	return sum;
}

void turns_push(struct turns *t, struct rpc_request *req)
{
	const uint32_t cost = TURN_CALL_COST + arrived_bytes(req);

	pthread_mutex_lock(&t->lock);
	rn_fq_push(&t->queue, &req->conn->client->calls, &req->turn, cost);
	atomic_store(&t->waiting, t->queue.nitems);
	pthread_mutex_unlock(&t->lock);
}

struct rpc_request *turns_pop(struct turns *t)
{
	pthread_mutex_lock(&t->lock);
	struct rn_fq_item *it = rn_fq_pop(&t->queue);
	atomic_store(&t->waiting, t->queue.nitems);
	pthread_mutex_unlock(&t->lock);
	return it != NULL ? rn_container_of(it, struct rpc_request, turn) : NULL;
}

void turns_charge(struct turns *t, const struct rpc_request *req)
{
	if (turns_waiting(t) == 0)
		return; /* nobody lost a turn by it */
	pthread_mutex_lock(&t->lock);
	rn_fq_charge(&t->queue, &req->conn->client->calls, xdr_out_total(&req->out));
	pthread_mutex_unlock(&t->lock);
}

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
		t->begun[i].first = NULL;
		t->begun[i].last = &t->begun[i].first;
		t->begun[i].n = 0;
		atomic_init(&t->waiting[i], 0);
	}
}

void call_queue_fini(struct call_queue *t)
{
	pthread_mutex_destroy(&t->lock);
}

/* Bytes that the call has brought, or that a piece of background work will move. */
static uint32_t call_queue_bytes_of(const struct rpc_request *req)
{
	uint32_t sum = req->moves;

	for (unsigned i = 0; i < req->nseg; i++)
		sum += req->seg[i].len;
	return sum;
}

/* Under the lock. */
static void call_queue_count(struct call_queue *t, unsigned lane)
{
	atomic_store(&t->waiting[lane], t->queue[lane].nitems + t->begun[lane].n);
}

/* Under the lock. */
static void push_begun(struct call_queue *t, struct rpc_request *req)
{
	req->node.next = NULL;
	*t->begun[req->lane].last = &req->node;
	t->begun[req->lane].last = &req->node.next;
	t->begun[req->lane].n++;
}

/* Under the lock. */
static struct rpc_request *pop_begun(struct call_queue *t, unsigned lane, enum call_kind kind)
{
	struct rn_inbox_node *node, **at = &t->begun[lane].first;

	while ((node = *at) != NULL) {
		struct rpc_request *req = rn_container_of(node, struct rpc_request, node);

		if (kind != CALL_OUTSIDE || !req->entered) {
			*at = node->next;
			if (!node->next)
				t->begun[lane].last = at;
			t->begun[lane].n--;
			return req;
		}
		at = &node->next;
	}
	return NULL;
}

void call_queue_push(struct call_queue *t, struct rpc_request *req)
{
	const unsigned lane = req->lane;

	pthread_mutex_lock(&t->lock);
	if (req->waits)
		push_begun(t, req);
	else
		rn_fq_push(&t->queue[lane], &req->conn->client->calls[lane], &req->turn,
			   CALL_COST + call_queue_bytes_of(req));
	call_queue_count(t, lane);
	pthread_mutex_unlock(&t->lock);
}

struct rpc_request *call_queue_pop(struct call_queue *t, unsigned lane, enum call_kind kind)
{
	struct rn_fq_item *it = NULL;
	struct rpc_request *req;

	pthread_mutex_lock(&t->lock);
	req = pop_begun(t, lane, kind);
	if (!req && kind != CALL_BEGUN)
		it = rn_fq_pop(&t->queue[lane]);
	call_queue_count(t, lane);
	pthread_mutex_unlock(&t->lock);
	return it ? rn_container_of(it, struct rpc_request, turn) : req;
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

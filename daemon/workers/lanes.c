/* SPDX-License-Identifier: BSD-2-Clause */
/* File systems as lanes of calls, and the calls that wait in them for a worker. */
#include "daemon/workers/lanes.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

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

#define IDS 4096u /* most exports; further ones use lane 0 */
#define KNOWN (1ull << 63)
#define SLOW_NS 1000000000ull

struct lane {
	_Atomic bool blocked, doubted;
	_Atomic bool foreign;	     /* some file system of the lane is not local */
	_Atomic uint64_t slow_until; /* rn_now_ns */
	_Atomic uint64_t dev;
	char *path; /* of the export that was put last; under the lock */
};

struct lanes {
	pthread_mutex_t lock; /* guards changes */
	unsigned n;	      /* lanes that have a file system, and lane 0 */
	struct lane lane[RPC_LANES];
	_Atomic uint64_t
		id[IDS]; /* open addressing: KNOWN, lane << 32, export id; none is removed */
};

struct lanes *lanes_new(void)
{
	struct lanes *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	pthread_mutex_init(&l->lock, NULL);
	l->n = 1;
	return l;
}

void lanes_free(struct lanes *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < RPC_LANES; i++)
		free(l->lane[i].path);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* Under the lock. */
static unsigned lane_of_device(struct lanes *l, dev_t dev)
{
	for (unsigned i = 1; i < l->n; i++)
		if (atomic_load(&l->lane[i].dev) == dev)
			return i;
	if (l->n == RPC_LANES)
		return 1 + (unsigned)(dev % (RPC_LANES - 1));
	atomic_store(&l->lane[l->n].dev, dev);
	return l->n++;
}

static unsigned lanes_place_of(uint32_t id, unsigned i)
{
	return ((id ^ id >> 16) * 0x9e3779b1u + i) % IDS;
}

void lanes_put(struct lanes *l, const struct lanes_export *e)
{
	pthread_mutex_lock(&l->lock);
	const unsigned lane = lane_of_device(l, e->dev);
	const uint64_t entry = KNOWN | (uint64_t)lane << 32 | e->id;

	if (!e->local)
		atomic_store(&l->lane[lane].foreign, true);
	free(l->lane[lane].path);
	l->lane[lane].path = strdup(e->path);
	for (unsigned i = 0; i < IDS; i++) {
		_Atomic uint64_t *at = &l->id[lanes_place_of(e->id, i)];
		const uint64_t is = atomic_load(at);

		if (!is || (uint32_t)is == e->id) {
			atomic_store(at, entry);
			break;
		}
	}
	pthread_mutex_unlock(&l->lock);
}

unsigned lanes_of(const struct lanes *l, uint32_t export_id)
{
	for (unsigned i = 0; i < IDS; i++) {
		const uint64_t is = atomic_load_explicit(&l->id[lanes_place_of(export_id, i)],
							 memory_order_relaxed);

		if (!is)
			break;
		if ((uint32_t)is == export_id)
			return (unsigned)(is >> 32 & 0xffff);
	}
	return 0;
}

bool lanes_blocked(const struct lanes *l, unsigned lane)
{
	return atomic_load_explicit(&l->lane[lane].blocked, memory_order_relaxed);
}

bool lanes_prompt(const struct lanes *l, unsigned lane, uint64_t now)
{
	const struct lane *at = &l->lane[lane];

	return lane > 0 && !atomic_load_explicit(&at->foreign, memory_order_relaxed) &&
	       !atomic_load_explicit(&at->doubted, memory_order_relaxed) &&
	       now >= atomic_load_explicit(&at->slow_until, memory_order_relaxed);
}

void lanes_was_slow(struct lanes *l, unsigned lane, uint64_t now)
{
	atomic_store_explicit(&l->lane[lane].slow_until, now + SLOW_NS, memory_order_relaxed);
}

void lanes_doubt(struct lanes *l, unsigned lane, bool stuck)
{
	atomic_store_explicit(&l->lane[lane].doubted, stuck, memory_order_relaxed);
}

void lanes_block(struct lanes *l, unsigned lane, bool blocked)
{
	atomic_store(&l->lane[lane].blocked, blocked);
}

void lanes_name(struct lanes *l, unsigned lane, char text[LANES_NAME])
{
	const dev_t dev = atomic_load(&l->lane[lane].dev);

	pthread_mutex_lock(&l->lock);
	const char *path = l->lane[lane].path;

	/* Lane 0 has the calls that name no file, such as MNT. */
	if (lane == 0)
		snprintf(text, LANES_NAME, "a file system that a path of the exports leads over");
	else
		snprintf(text, LANES_NAME, "the file system of export %s on device %u:%u",
			 path ? path : "?", major(dev), minor(dev));
	pthread_mutex_unlock(&l->lock);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues of calls that wait for a worker, one for each file system. */
#include "daemon/workers/fs_queues.h"

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
	for (unsigned i = 0; i < RPC_FS_QUEUES; i++) {
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
static void call_queue_count(struct call_queue *t, unsigned fs_queue)
{
	atomic_store(&t->waiting[fs_queue], t->queue[fs_queue].nitems + t->begun[fs_queue].n);
}

/* Under the lock. */
static void push_begun(struct call_queue *t, struct rpc_request *req)
{
	req->node.next = NULL;
	*t->begun[req->fs_queue].last = &req->node;
	t->begun[req->fs_queue].last = &req->node.next;
	t->begun[req->fs_queue].n++;
}

/* Under the lock. */
static struct rpc_request *pop_begun(struct call_queue *t, unsigned fs_queue, enum call_kind kind)
{
	struct rn_inbox_node *node, **at = &t->begun[fs_queue].first;

	while ((node = *at) != NULL) {
		struct rpc_request *req = rn_container_of(node, struct rpc_request, node);

		if (kind != CALL_OUTSIDE || !req->entered) {
			*at = node->next;
			if (!node->next)
				t->begun[fs_queue].last = at;
			t->begun[fs_queue].n--;
			return req;
		}
		at = &node->next;
	}
	return NULL;
}

void call_queue_push(struct call_queue *t, struct rpc_request *req)
{
	const unsigned fs_queue = req->fs_queue;

	pthread_mutex_lock(&t->lock);
	if (req->waits)
		push_begun(t, req);
	else
		rn_fq_push(&t->queue[fs_queue], &req->conn->client->calls[fs_queue], &req->turn,
			   CALL_COST + call_queue_bytes_of(req));
	call_queue_count(t, fs_queue);
	pthread_mutex_unlock(&t->lock);
}

struct rpc_request *call_queue_pop(struct call_queue *t, unsigned fs_queue, enum call_kind kind)
{
	struct rn_fq_item *it = NULL;
	struct rpc_request *req;

	pthread_mutex_lock(&t->lock);
	req = pop_begun(t, fs_queue, kind);
	if (!req && kind != CALL_BEGUN)
		it = rn_fq_pop(&t->queue[fs_queue]);
	call_queue_count(t, fs_queue);
	pthread_mutex_unlock(&t->lock);
	return it ? rn_container_of(it, struct rpc_request, turn) : req;
}

void call_queue_charge(struct call_queue *t, const struct rpc_request *req)
{
	if (call_queue_waiting(t, req->fs_queue) == 0)
		return; /* no other client lost a turn by it */
	pthread_mutex_lock(&t->lock);
	rn_fq_charge(&t->queue[req->fs_queue], &req->conn->client->calls[req->fs_queue],
		     xdr_out_total(&req->out));
	pthread_mutex_unlock(&t->lock);
}

#define IDS 4096u /* most exports; further ones use queue 0 */
#define KNOWN (1ull << 63)
#define SLOW_NS 1000000000ull

struct fs_queue {
	_Atomic bool blocked, doubted;
	_Atomic bool foreign;	     /* some file system of the queue is not local */
	_Atomic uint64_t slow_until; /* rn_now_ns */
	_Atomic uint64_t dev;
	char *path; /* of the export that was put last; under the lock */
};

struct fs_queues {
	pthread_mutex_t lock; /* guards changes */
	unsigned n;	      /* queues that have a file system, and queue 0 */
	struct fs_queue fs_queue[RPC_FS_QUEUES];
	_Atomic uint64_t
		id[IDS]; /* open addressing: KNOWN, queue << 32, export id; none is removed */
};

struct fs_queues *fs_queues_new(void)
{
	struct fs_queues *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	pthread_mutex_init(&l->lock, NULL);
	l->n = 1;
	return l;
}

void fs_queues_free(struct fs_queues *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < RPC_FS_QUEUES; i++)
		free(l->fs_queue[i].path);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

/* Under the lock. */
static unsigned fs_queue_of_device(struct fs_queues *l, dev_t dev)
{
	for (unsigned i = 1; i < l->n; i++)
		if (atomic_load(&l->fs_queue[i].dev) == dev)
			return i;
	if (l->n == RPC_FS_QUEUES)
		return 1 + (unsigned)(dev % (RPC_FS_QUEUES - 1));
	atomic_store(&l->fs_queue[l->n].dev, dev);
	return l->n++;
}

static unsigned fs_queues_place_of(uint32_t id, unsigned i)
{
	return ((id ^ id >> 16) * 0x9e3779b1u + i) % IDS;
}

void fs_queues_put(struct fs_queues *l, const struct fs_queue_export *e)
{
	pthread_mutex_lock(&l->lock);
	const unsigned fs_queue = fs_queue_of_device(l, e->dev);
	const uint64_t entry = KNOWN | (uint64_t)fs_queue << 32 | e->id;

	if (!e->local)
		atomic_store(&l->fs_queue[fs_queue].foreign, true);
	free(l->fs_queue[fs_queue].path);
	l->fs_queue[fs_queue].path = strdup(e->path);
	for (unsigned i = 0; i < IDS; i++) {
		_Atomic uint64_t *at = &l->id[fs_queues_place_of(e->id, i)];
		const uint64_t is = atomic_load(at);

		if (!is || (uint32_t)is == e->id) {
			atomic_store(at, entry);
			break;
		}
	}
	pthread_mutex_unlock(&l->lock);
}

unsigned fs_queue_of_export_id(const struct fs_queues *l, uint32_t export_id)
{
	for (unsigned i = 0; i < IDS; i++) {
		const uint64_t is = atomic_load_explicit(&l->id[fs_queues_place_of(export_id, i)],
							 memory_order_relaxed);

		if (!is)
			break;
		if ((uint32_t)is == export_id)
			return (unsigned)(is >> 32 & 0xffff);
	}
	return 0;
}

bool fs_queue_blocked(const struct fs_queues *l, unsigned fs_queue)
{
	return atomic_load_explicit(&l->fs_queue[fs_queue].blocked, memory_order_relaxed);
}

bool fs_queue_on_event_thread(const struct fs_queues *l, unsigned fs_queue, uint64_t now)
{
	const struct fs_queue *at = &l->fs_queue[fs_queue];

	return fs_queue > 0 && !atomic_load_explicit(&at->foreign, memory_order_relaxed) &&
	       !atomic_load_explicit(&at->doubted, memory_order_relaxed) &&
	       now >= atomic_load_explicit(&at->slow_until, memory_order_relaxed);
}

void fs_queue_was_slow(struct fs_queues *l, unsigned fs_queue, uint64_t now)
{
	atomic_store_explicit(&l->fs_queue[fs_queue].slow_until, now + SLOW_NS,
			      memory_order_relaxed);
}

void fs_queue_doubt(struct fs_queues *l, unsigned fs_queue, bool stalled)
{
	atomic_store_explicit(&l->fs_queue[fs_queue].doubted, stalled, memory_order_relaxed);
}

void fs_queue_block(struct fs_queues *l, unsigned fs_queue, bool blocked)
{
	atomic_store(&l->fs_queue[fs_queue].blocked, blocked);
}

void fs_queue_name(struct fs_queues *l, unsigned fs_queue, char text[FS_QUEUE_NAME])
{
	const dev_t dev = atomic_load(&l->fs_queue[fs_queue].dev);

	pthread_mutex_lock(&l->lock);
	const char *path = l->fs_queue[fs_queue].path;

	/* Queue 0 has the calls that name no file, such as MNT. */
	if (fs_queue == 0)
		snprintf(text, FS_QUEUE_NAME,
			 "a file system that a path of the exports leads over");
	else
		snprintf(text, FS_QUEUE_NAME, "the file system of export %s on device %u:%u",
			 path ? path : "?", major(dev), minor(dev));
	pthread_mutex_unlock(&l->lock);
}

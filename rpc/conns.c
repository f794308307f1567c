/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/conns.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "rpc/backchannel.h"
#include "rpc/client.h"

void rpc_conn_ref(struct rpc_conn *c)
{
	atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
}

void rpc_conn_put(struct rpc_conn *c)
{
	struct rpc_backchannel *back;

	if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) > 1)
		return;
	back = atomic_load(&c->back);
	c->ops->destroy(c);
	rpc_backchannel_put(back);
}

#define BUCKETS 1024u
#define PIECE 16u /* connections copied under one hold of the lock */

TAILQ_HEAD(conn_list, rpc_conn);

struct rpc_conns {
	pthread_mutex_t lock;
	uint64_t last_id;
	struct conn_list bucket[BUCKETS]; /* connections by id, each list in ascending order */
};

struct rpc_conns *rpc_conns_new(void)
{
	struct rpc_conns *conns = calloc(1, sizeof(*conns));

	if (!conns)
		return NULL;
	pthread_mutex_init(&conns->lock, NULL);
	for (unsigned i = 0; i < BUCKETS; i++)
		TAILQ_INIT(&conns->bucket[i]);
	return conns;
}

void rpc_conns_free(struct rpc_conns *conns)
{
	if (!conns)
		return;
	pthread_mutex_destroy(&conns->lock);
	free(conns);
}

void rpc_conns_enter(struct rpc_conns *conns, struct rpc_conn *conn)
{
	struct rpc_conn *before;

	conn->made_ns = rn_now_ns();
	TAILQ_INIT(&conn->under_way);
	conn->conns = conns;
	pthread_mutex_lock(&conns->lock);
	if (!conn->id)
		conn->id = conns->last_id + 1;
	if (conn->id > conns->last_id)
		conns->last_id = conn->id;
	before = TAILQ_LAST(&conns->bucket[conn->id % BUCKETS], conn_list);
	while (before && before->id > conn->id)
		before = TAILQ_PREV(before, conn_list, of_conns);
	if (before)
		TAILQ_INSERT_AFTER(&conns->bucket[conn->id % BUCKETS], before, conn, of_conns);
	else
		TAILQ_INSERT_HEAD(&conns->bucket[conn->id % BUCKETS], conn, of_conns);
	pthread_mutex_unlock(&conns->lock);
}

uint64_t rpc_conns_last_id(struct rpc_conns *conns)
{
	pthread_mutex_lock(&conns->lock);
	const uint64_t id = conns->last_id;
	pthread_mutex_unlock(&conns->lock);
	return id;
}

void rpc_conns_begin_after(struct rpc_conns *conns, uint64_t id)
{
	conns->last_id = id;
}

void rpc_conns_leave(struct rpc_conn *conn)
{
	struct rpc_conns *conns = conn->conns;

	if (!conns)
		return;
	pthread_mutex_lock(&conns->lock);
	TAILQ_REMOVE(&conns->bucket[conn->id % BUCKETS], conn, of_conns);
	pthread_mutex_unlock(&conns->lock);
	conn->conns = NULL;
}

uint64_t rpc_conns_under_way(struct rpc_conns *conns)
{
	const struct rpc_conn *c;
	uint64_t n = 0;

	pthread_mutex_lock(&conns->lock);
	for (unsigned i = 0; i < BUCKETS; i++)
		TAILQ_FOREACH (c, &conns->bucket[i], of_conns) {
			/* ended first: otherwise more might have ended than have come */
			const uint64_t ended =
				atomic_load_explicit(&c->tally.ended, memory_order_acquire);

			n += atomic_load_explicit(&c->tally.calls, memory_order_relaxed) - ended;
		}
	pthread_mutex_unlock(&conns->lock);
	return n;
}

/* Anybody may send datagrams in the name of the client. */
void rpc_conn_heard(struct rpc_conn *conn)
{
	if (conn->client && !conn->ops->datagrams)
		atomic_store_explicit(&conn->client->connected, true, memory_order_relaxed);
}

static uint64_t rpc_conn_load(_Atomic uint64_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

/* Reads ended before calls: otherwise more might have ended than have come. */
static void copy_tally(struct rpc_conn_view *v, struct rpc_conn_tally *n)
{
	v->ended = atomic_load_explicit(&n->ended, memory_order_acquire);
	v->calls = rpc_conn_load(&n->calls);
	v->called_ns = rpc_conn_load(&n->called_ns);
	v->oldest_ns = rpc_conn_load(&n->oldest_ns);
	v->bytes_in = rpc_conn_load(&n->bytes_in);
	v->bytes_out = rpc_conn_load(&n->bytes_out);
	v->dropped = rpc_conn_load(&n->dropped);
	v->errors = rpc_conn_load(&n->errors);
}

static void copy_rdma(struct rpc_conn_view *v, struct rpc_conn_rdma *rdma)
{
	memcpy(v->device, rdma->device, sizeof(v->device));
	v->inline_in = rdma->inline_in;
	v->inline_out = rdma->inline_out;
	v->credits = rdma->credits;
	v->err_chunk = rpc_conn_load(&rdma->err_chunk);
	v->err_vers = rpc_conn_load(&rdma->err_vers);
}

static void copy_tls(struct rpc_conn_view *v, const struct rpc_conn_tls *tls)
{
	v->tls_version = tls->version;
	v->tls_cipher = tls->cipher;
	v->tls_alpn = tls->alpn;
	v->ktls = tls->ktls;
	if (!tls->certificate)
		return;
	memcpy(v->subject, tls->certificate->subject, sizeof(v->subject));
	v->user_found = atomic_load_explicit(&tls->certificate->found, memory_order_relaxed);
}

/* Under the lock. */
static void rpc_conn_view_copy(struct rpc_conn_view *v, struct rpc_conn *conn)
{
	*v = (struct rpc_conn_view){
		.id = conn->id,
		.peer = conn->peer,
		.local = conn->local,
		.netid = conn->ops->netid,
		.dialed = conn->dialed,
		.closing = atomic_load(&conn->closing),
		.back = atomic_load(&conn->back) != NULL,
		.protection = rpc_conn_protection(conn),
		.secs = atomic_load_explicit(&conn->secs, memory_order_relaxed),
		.session_client = rpc_conn_load(&conn->session_client),
		.made_ns = conn->made_ns,
	};
	copy_tally(v, &conn->tally);
	const struct rpc_conn_tls *tls = atomic_load_explicit(&conn->tls, memory_order_acquire);
	if (tls)
		copy_tls(v, tls);
	if (conn->rdma)
		copy_rdma(v, conn->rdma);
}

/* The first connection of that bucket behind an id. NULL: there is none. Under the lock. */
static struct rpc_conn *behind(const struct rpc_conns *conns, uint64_t bucket, uint64_t id)
{
	struct rpc_conn *conn;

	TAILQ_FOREACH (conn, &conns->bucket[bucket], of_conns) {
		if (conn->id > id)
			break;
	}
	return conn;
}

/* Copies the next connections behind *after, which moves, in the order of the buckets. */
static unsigned rpc_conns_next_piece(struct rpc_conns *conns, uint64_t *after, unsigned most,
				     struct rpc_conn_view piece[PIECE])
{
	uint64_t bucket = *after % BUCKETS;
	unsigned n = 0;

	pthread_mutex_lock(&conns->lock);
	struct rpc_conn *conn = behind(conns, bucket, *after);

	while (n < PIECE && n < most) {
		while (!conn && ++bucket < BUCKETS)
			conn = TAILQ_FIRST(&conns->bucket[bucket]);
		if (!conn)
			break;
		*after = conn->id;
		rpc_conn_view_copy(&piece[n++], conn);
		conn = TAILQ_NEXT(conn, of_conns);
	}
	pthread_mutex_unlock(&conns->lock);
	return n;
}

bool rpc_conns_view(struct rpc_conns *conns, uint64_t *after, unsigned most,
		    void (*show)(void *arg, const struct rpc_conn_view *v), void *arg)
{
	struct rpc_conn_view piece[PIECE];

	while (most > 0) {
		const unsigned n = rpc_conns_next_piece(conns, after, most, piece);

		for (unsigned i = 0; i < n; i++)
			show(arg, &piece[i]);
		if (n < PIECE && n < most)
			return true;
		most -= n;
	}
	return false;
}

bool rpc_conns_find(struct rpc_conns *conns, uint64_t id, struct rpc_conn_view *out)
{
	struct rpc_conn *conn;

	pthread_mutex_lock(&conns->lock);
	TAILQ_FOREACH (conn, &conns->bucket[id % BUCKETS], of_conns) {
		if (conn->id == id)
			break;
	}
	if (conn)
		rpc_conn_view_copy(out, conn);
	pthread_mutex_unlock(&conns->lock);
	return conn != NULL;
}

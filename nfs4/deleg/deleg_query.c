/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * References of a query: one of its delegation's, from the start until the callback has ended, and one
 * of each operation that waits for it. The callback may last longer than anybody waits.
 */
#include "nfs4/deleg/deleg_query.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "nfs4/callback/cb_getattr.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/registry.h"
#include "nfs4/nfs4_private.h"

/* Time that a holder has to answer. */
#define PATIENCE_NS (2 * RN_NS_PER_SECOND)

struct nfs4_query {
	struct nfs4_deleg *d; /* a reference */
	struct nfs4_cb_getattr call;
	/* Under the lock of the queries: */
	uint32_t refs;
	bool ended, known; /* known: with an answer */
	struct nfs4_held_attrs answer;
	uint64_t sent_ns; /* CLOCK_MONOTONIC; 0: not yet */
};

struct nfs4_queries {
	pthread_mutex_t lock; /* of the queries */
};

int nfs4_queries_new(struct nfs4_server *srv)
{
	struct nfs4_queries *qs = calloc(1, sizeof(*qs));

	if (!qs)
		return -ENOMEM;
	pthread_mutex_init(&qs->lock, NULL);
	srv->queries = qs;
	return 0;
}

void nfs4_queries_free(struct nfs4_queries *qs)
{
	if (qs)
		pthread_mutex_destroy(&qs->lock);
	free(qs);
}

static struct nfs4_queries *queries_of(const struct nfs4_query *q)
{
	return q->d->st.client->srv->queries;
}

static void nfs4_query_put(struct nfs4_query *q)
{
	struct nfs4_queries *qs = queries_of(q);
	bool last;

	pthread_mutex_lock(&qs->lock);
	last = --q->refs == 0;
	pthread_mutex_unlock(&qs->lock);
	if (!last)
		return;
	nfs4_state_unref(&q->d->st);
	free(q);
}

/* Under the lock: q ends with that answer, or with none. */
static void nfs4_query_end(struct nfs4_query *q, const struct nfs4_held_attrs *attrs)
{
	if (q->ended)
		return;
	q->ended = true;
	q->known = attrs;
	if (attrs)
		q->answer = *attrs;
	rpc_wake(q->d->st.client->srv->cfg.waits, q);
}

static void send_query(struct nfs4_query *q);

/* Under the lock, when d has no query any more that was sent: the next one, if there is one. */
static struct nfs4_query *take_next(struct nfs4_deleg *d)
{
	struct nfs4_query *next = d->next_query;

	d->next_query = NULL;
	d->query = d->silent ? NULL : next;
	return next;
}

static void nfs4_query_ended(struct nfs4_cb_getattr *g, const struct nfs4_held_attrs *attrs)
{
	struct nfs4_query *q = rn_container_of(g, struct nfs4_query, call), *next;
	struct nfs4_queries *qs = queries_of(q);
	bool silent;

	pthread_mutex_lock(&qs->lock);
	nfs4_query_end(q, attrs);
	if (!attrs)
		q->d->silent = true;
	silent = q->d->silent;
	next = take_next(q->d);
	if (next && silent)
		nfs4_query_end(next, NULL);
	pthread_mutex_unlock(&qs->lock);
	if (next && silent)
		nfs4_query_put(next);
	else if (next)
		send_query(next);
	nfs4_query_put(q);
}

/* q is its delegation's query. The caller holds no lock. */
static void send_query(struct nfs4_query *q)
{
	struct nfs4_deleg *d = q->d;
	struct nfs4_client *cl = d->st.client;
	struct nfs4_queries *qs = queries_of(q);

	pthread_mutex_lock(&qs->lock);
	q->sent_ns = rn_now_ns();
	pthread_mutex_unlock(&qs->lock);
	q->call.fh = d->fh;
	q->call.fh_len = d->fh_len;
	q->call.ended = nfs4_query_ended;
	q->call.cb.referring = &d->giver;
	nfs4_cb_getattr(cl, &q->call);
}

/* Under the lock: the holder has not answered in time. Returns the query that was to follow, to be put, or NULL. */
static struct nfs4_query *nfs4_query_give_up(struct nfs4_query *q)
{
	struct nfs4_deleg *d = q->d;
	struct nfs4_query *rest = d->next_query == q ? NULL : d->next_query;

	nfs4_query_end(q, NULL);
	d->silent = true;
	if (rest) {
		d->next_query = NULL;
		nfs4_query_end(rest, NULL);
	}
	return rest;
}

/* Under the lock. A query of d that its holder gets after now, with a reference for the caller; fresh is
 * used if there is none. NULL: the holder does not answer. */
static struct nfs4_query *nfs4_query_join(struct nfs4_deleg *d, struct nfs4_query *fresh)
{
	struct nfs4_query *q = d->next_query;

	if (d->silent)
		return NULL;
	if (!q) {
		q = fresh;
		q->d = d;
		nfs4_state_ref(&d->st);
		q->refs = 1;
		if (d->query)
			d->next_query = q;
		else
			d->query = q;
	}
	q->refs++;
	return q;
}

/* Until q has ended. */
static void nfs4_query_await(struct nfs4_compound *c, struct nfs4_query *q)
{
	struct nfs4_queries *qs = queries_of(q);
	struct nfs4_query *rest = NULL;
	int rc = 0;

	pthread_mutex_lock(&qs->lock);
	while (!q->ended) {
		const uint64_t now = rn_now_ns();
		const uint64_t until = (q->sent_ns ? q->sent_ns : now) + PATIENCE_NS;

		if (rc == -ENOSYS || now >= until) {
			rest = nfs4_query_give_up(q);
			break;
		}
		rc = rpc_wait(c->req, RN_WAIT_ATTRIBUTES, q, until, &qs->lock);
		pthread_mutex_lock(&qs->lock);
	}
	pthread_mutex_unlock(&qs->lock);
	if (rest)
		nfs4_query_put(rest);
}

int nfs4_query(struct nfs4_compound *c, struct nfs4_deleg *d, struct nfs4_held_attrs *out)
{
	struct nfs4_queries *qs = c->server->queries;
	struct nfs4_query *fresh = calloc(1, sizeof(*fresh)), *q;
	bool is_first, known;

	if (!fresh)
		return -ENOMEM;
	pthread_mutex_lock(&qs->lock);
	q = nfs4_query_join(d, fresh);
	/* Whoever made it sends it; one that follows is sent when the one before has ended. */
	is_first = q == fresh && d->query == q;
	pthread_mutex_unlock(&qs->lock);
	if (q != fresh)
		free(fresh);
	if (!q)
		return -ETIMEDOUT;
	if (is_first)
		send_query(q);
	nfs4_query_await(c, q);
	known = q->known; /* does not change any more */
	*out = q->answer;
	nfs4_query_put(q);
	return known ? 0 : -ETIMEDOUT;
}

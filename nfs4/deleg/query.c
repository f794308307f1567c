/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * References of a query: one of its delegation's, from the start until the callback has ended, and one
 * of each COMPOUND that it is the obstacle of. The callback may last longer than anybody waits for it.
 */
#include "nfs4/deleg/query.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/util.h"
#include "nfs4/callback/cb_getattr.h"
#include "nfs4/client/client.h"
#include "nfs4/client/registry.h"
#include "nfs4/server.h"

/* Seconds that an operation waits for an answer, give or take one. */
#define PATIENCE_S 2u

/* An operation that waits; in its request's arena. */
struct waiter {
	struct waiter *next;
	struct nfs4_compound *c;
	int (*again)(struct nfs4_compound *c, int rc);
	void *saved; /* of c->wait */
};

struct nfs4_query {
	struct nfs4_deleg *d; /* a reference */
	struct nfs4_cb_getattr call;
	/* Under the lock of the queries: */
	uint32_t refs;
	bool sent, ended;
	struct nfs4_held_answer answer;
	uint64_t since; /* seconds of nfs4_clients_now() */
	struct waiter *waiting;
	TAILQ_ENTRY(nfs4_query) link; /* of those that were sent */
};

struct nfs4_queries {
	pthread_mutex_t lock; /* a leaf */
	TAILQ_HEAD(, nfs4_query) sent;
};

int nfs4_queries_new(struct nfs4_server *srv)
{
	struct nfs4_queries *qs = calloc(1, sizeof(*qs));

	if (!qs)
		return -ENOMEM;
	pthread_mutex_init(&qs->lock, NULL);
	TAILQ_INIT(&qs->sent);
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

static void put(struct nfs4_query *q)
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

/* Continues on the operation's worker. The COMPOUND still has its reference of the query. */
static void resume(struct rpc_request *req)
{
	struct nfs4_compound *c = req->op;
	struct waiter *w = c->wait;
	struct nfs4_query *q = c->obstacle;
	int status;

	nfs4_compound_rehome(c);
	c->wait = w->saved;
	c->held = q->answer; /* does not change any more */
	c->held.index = c->index + 1;
	status = w->again(c, 0);
	if (status != NFS4_PENDING)
		nfs4_compound_resume(c, status);
}

static void wake(struct waiter *w)
{
	struct waiter *next;

	for (; w; w = next) {
		next = w->next; /* w is gone when its operation goes on */
		rpc_requeue(w->c->req, resume);
	}
}

/* Under the lock: takes those that wait off q, which ends with that answer, or with none. */
static struct waiter *end_locked(struct nfs4_query *q, const struct nfs4_held_attrs *attrs)
{
	struct waiter *w = q->waiting;

	if (q->ended)
		return NULL;
	q->ended = true;
	q->waiting = NULL;
	q->answer = (struct nfs4_held_answer){ .of = nfs4_query_id(q->d) };
	if (attrs) {
		q->answer.known = true;
		q->answer.change = attrs->change;
		q->answer.size = attrs->size;
	}
	return w;
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

static void ended(struct nfs4_cb_getattr *g, const struct nfs4_held_attrs *attrs)
{
	struct nfs4_query *q = rn_container_of(g, struct nfs4_query, call), *next;
	struct nfs4_queries *qs = queries_of(q);
	struct waiter *w, *more = NULL;
	bool silent;

	pthread_mutex_lock(&qs->lock);
	TAILQ_REMOVE(&qs->sent, q, link);
	w = end_locked(q, attrs);
	if (!attrs)
		q->d->silent = true;
	silent = q->d->silent;
	next = take_next(q->d);
	if (next && silent)
		more = end_locked(next, NULL);
	pthread_mutex_unlock(&qs->lock);
	wake(w);
	wake(more);
	if (next && silent)
		put(next);
	else if (next)
		send_query(next);
	put(q);
}

/* q is its delegation's query. The caller holds no lock. */
static void send_query(struct nfs4_query *q)
{
	struct nfs4_deleg *d = q->d;
	struct nfs4_client *cl = d->st.client;
	struct nfs4_queries *qs = queries_of(q);

	pthread_mutex_lock(&qs->lock);
	q->sent = true;
	q->since = nfs4_clients_now(cl->srv);
	TAILQ_INSERT_TAIL(&qs->sent, q, link);
	pthread_mutex_unlock(&qs->lock);
	q->call.fh = d->fh;
	q->call.fh_len = d->fh_len;
	q->call.ended = ended;
	q->call.cb.referring = &d->giver;
	nfs4_cb_getattr(cl, &q->call);
}

/* Under the lock: those that wait for the query, which has not been answered in time, and for the next
 * one. *rest is then to be put. */
static struct waiter *give_up(struct nfs4_query *q, struct nfs4_query **rest)
{
	struct nfs4_deleg *d = q->d;
	struct waiter *w = end_locked(q, NULL), **last = &w;

	d->silent = true;
	*rest = d->next_query;
	d->next_query = NULL;
	while (*last)
		last = &(*last)->next;
	if (*rest)
		*last = end_locked(*rest, NULL);
	return w;
}

void nfs4_queries_tick(struct nfs4_server *srv)
{
	struct nfs4_queries *qs = srv->queries;
	const uint64_t now = nfs4_clients_now(srv);
	struct nfs4_query *q, *rest;
	struct waiter *w;

	do {
		w = NULL;
		rest = NULL;
		pthread_mutex_lock(&qs->lock);
		TAILQ_FOREACH (q, &qs->sent, link) {
			if (!q->ended && now >= q->since + PATIENCE_S)
				break;
		}
		if (q)
			w = give_up(q, &rest);
		pthread_mutex_unlock(&qs->lock);
		wake(w);
		if (rest)
			put(rest);
	} while (q);
}

/* Under the lock. A query of d that its holder gets after now, with a reference for the caller; fresh is
 * used if there is none. NULL: the holder does not answer. */
static struct nfs4_query *join(struct nfs4_deleg *d, struct nfs4_query *fresh)
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

static int await(struct nfs4_compound *c, void *obstacle,
		 int (*again)(struct nfs4_compound *c, int rc))
{
	struct nfs4_query *q = obstacle;
	struct nfs4_queries *qs = queries_of(q);
	struct waiter *w = rn_arena_alloc(&c->req->arena, sizeof(*w));
	bool is_ended;

	if (!w)
		return NFS4ERR_DELAY;
	w->c = c;
	w->again = again;
	w->saved = c->wait;
	pthread_mutex_lock(&qs->lock);
	is_ended = q->ended;
	if (is_ended) {
		c->held = q->answer;
		c->held.index = c->index + 1;
	} else {
		c->wait = w;
		w->next = q->waiting;
		q->waiting = w;
	}
	pthread_mutex_unlock(&qs->lock);
	return is_ended ? NFS4_OK : NFS4_PENDING;
}

static void put_obstacle(void *obstacle)
{
	put(obstacle);
}

static const struct nfs4_obstacle_hooks hooks = { .await = await, .put = put_obstacle };

int nfs4_query(struct nfs4_compound *c, struct nfs4_deleg *d)
{
	struct nfs4_queries *qs = c->server->queries;
	struct nfs4_query *fresh = calloc(1, sizeof(*fresh)), *q;
	bool is_first;

	if (!fresh)
		return -ENOMEM;
	pthread_mutex_lock(&qs->lock);
	q = join(d, fresh);
	/* Whoever made it sends it; one that follows is sent when the one before has ended. */
	is_first = q == fresh && d->query == q;
	pthread_mutex_unlock(&qs->lock);
	if (q != fresh)
		free(fresh);
	if (!q)
		return -ETIMEDOUT;
	nfs4_repeat_after(c, &hooks, q);
	if (is_first)
		send_query(q);
	return 0;
}

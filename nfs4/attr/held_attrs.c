/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions to the holders of write delegations by CB_GETATTR, and the operations that wait for an answer.
 *
 * A delegation has one question under way, and at most one that follows it: an answer that was perhaps on
 * its way before somebody asked is not for him. An operation waits without a worker, for two seconds at most.
 * A holder that has not answered by then is not asked again: its delegation is to be recalled.
 *
 * References of a query: one of its delegation's, from the start until the callback has ended, and one
 * of each operation that waits for it. The callback may last longer than anybody waits.
 */
#include "nfs4/attr/held_attrs.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/util.h"
#include "nfs4/callback/cb_ops.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/nfs4_deleg.h"

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

/* Until q has ended; or -RN_EGONE. */
static int nfs4_query_await(struct nfs4_compound *c, struct nfs4_query *q)
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
		if (rc == -RN_EGONE)
			return rc;
		pthread_mutex_lock(&qs->lock);
	}
	pthread_mutex_unlock(&qs->lock);
	if (rest)
		nfs4_query_put(rest);
	return 0;
}

/* Asks the holder of d, and waits for the answer. 0; -ETIMEDOUT: the holder does not answer; -RN_EGONE; -ENOMEM. The
 * caller holds a reference of d and no lock. */
static int nfs4_query(struct nfs4_compound *c, struct nfs4_deleg *d, struct nfs4_held_attrs *out)
{
	struct nfs4_queries *qs = c->server->queries;
	struct nfs4_query *fresh = calloc(1, sizeof(*fresh)), *q;
	bool is_first;
	int rc;

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
	rc = nfs4_query_await(c, q);
	if (rc == 0 && !q->known) /* does not change any more */
		rc = -ETIMEDOUT;
	else if (rc == 0)
		*out = q->answer;
	nfs4_query_put(q);
	return rc;
}

/* Under a lock of vfs/. */
static void held_attrs_found(void *arg, struct vfs_deleg *v)
{
	struct nfs4_deleg *d = rn_container_of(v, struct nfs4_deleg, vfs);

	nfs4_state_ref(&d->st);
	*(struct nfs4_deleg **)arg = d;
}

/* True if the client may know the delegation, and have changed the file by it. */
static bool is_given(struct nfs4_deleg *d)
{
	bool given;

	pthread_mutex_lock(&d->st.client->lock);
	given = d->given;
	pthread_mutex_unlock(&d->st.client->lock);
	return given;
}

static int read_attr(struct nfs4_compound *c, struct nfs4_object *p, struct vfs_attr *attr)
{
	return nfs4_status(c->minor, vfs_getattr(&p->ctx, p->node, attr));
}

/* The holder does not answer: it is to write its changes and to return the delegation. */
static int held_attrs_recall(struct nfs4_compound *c, struct nfs4_object *p, struct vfs_attr *attr)
{
	int rc;

	do
		rc = vfs_deleg_check(&p->ctx, p->node, VFS_USE_READ);
	while (nfs4_await(c, rc));
	return rc == 0 ? read_attr(c, p, attr) : nfs4_status(c->minor, rc);
}

/* Once it is modified, it stays so: the client may answer with the same value after each change. */
static bool is_modified(struct nfs4_deleg *d, const struct nfs4_held_attrs *a, uint64_t size)
{
	bool modified;

	pthread_mutex_lock(&d->st.client->lock);
	if (a->change != d->change || a->size != size)
		d->modified = true;
	modified = d->modified;
	pthread_mutex_unlock(&d->st.client->lock);
	return modified;
}

/* A holder's answer. */
struct answer {
	struct nfs4_held_attrs held;
	uint64_t size_when_asked; /* of the file */
};

/*
 * The answer may be older than what is read here, and than what the holder has written since: a size that has
 * changed here counts. Otherwise the holder's counts, which the file may never get, if the holder dies. The
 * file gets another change attribute then, so that nobody sees the one that is told here with the file's own size.
 */
static int held_attrs_tell(struct nfs4_compound *c, struct nfs4_object *p, const struct answer *a,
			   struct vfs_attr *attr)
{
	const int status = read_attr(c, p, attr);

	if (status != NFS4_OK || attr->size != a->size_when_asked || attr->size == a->held.size)
		return status;
	attr->size = a->held.size;
	return vfs_touch_delegated(&p->ctx, p->node) == 0 ? NFS4_OK : held_attrs_recall(c, p, attr);
}

/* The holder may have written since the attributes were read. */
static int held_attrs_apply(struct nfs4_compound *c, struct nfs4_object *p, struct nfs4_deleg *d,
			    const struct answer *a, struct vfs_attr *attr)
{
	const int status = read_attr(c, p, attr);

	if (status != NFS4_OK || !is_modified(d, &a->held, attr->size))
		return status;
	if (vfs_touch_delegated(&p->ctx, p->node) != 0)
		return held_attrs_recall(c, p, attr);
	return held_attrs_tell(c, p, a, attr);
}

static int held_attrs_ask(struct nfs4_compound *c, struct nfs4_object *p, struct nfs4_deleg *d,
			  struct vfs_attr *attr)
{
	struct answer a;
	int status, rc;

	rpc_move(c->req);
	if (!nfs4_client_is_alive(d->st.client))
		return held_attrs_recall(c, p, attr);
	status = read_attr(c, p, attr);
	if (status != NFS4_OK)
		return status;
	a.size_when_asked = attr->size;
	rc = nfs4_query(c, d, &a.held);
	if (rc == 0)
		return held_attrs_apply(c, p, d, &a, attr);
	return rc == -ETIMEDOUT ? held_attrs_recall(c, p, attr) : NFS4ERR_DELAY;
}

int nfs4_held_attrs(struct nfs4_compound *c, struct nfs4_object *p, struct vfs_attr *attr)
{
	struct nfs4_deleg *d = NULL;
	int status = NFS4_OK;

	vfs_deleg_writer(&p->ctx, p->node, held_attrs_found, &d);
	if (!d)
		return NFS4_OK;
	if (is_given(d))
		status = held_attrs_ask(c, p, d, attr);
	nfs4_state_unref(&d->st);
	return status;
}

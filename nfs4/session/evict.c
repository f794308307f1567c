/* SPDX-License-Identifier: BSD-2-Clause */
/* Eviction of clients and slots when a bound is reached: who has to go, and how. */
#include "lib/budget.h"
#include "nfs4/callback/cb_ops.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/client_host.h"
#include "nfs4/client/client_table.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/session.h"
#include "nfs4/session/session_private.h"
#include "nfs4/state/holdings.h"

/* Destruction of clients that have left the tables. */

static void drop_sessions(struct nfs4_client *cl)
{
	struct nfs4_session *s;

	do {
		pthread_mutex_lock(&cl->lock);
		s = LIST_FIRST(&cl->session_list);
		if (s)
			nfs4_session_leave(s);
		pthread_mutex_unlock(&cl->lock);
		nfs4_session_put(s);
	} while (s);
}

void nfs4_client_destroy(struct nfs4_client *cl)
{
	if (!cl)
		return;
	drop_sessions(cl);
	nfs4_cb_conn_drop(cl);
	nfs4_holdings_drop(cl);
	nfs4_client_put(cl);
}

void nfs4_client_forget(struct nfs4_clients *all, struct nfs4_client *cl,
			enum nfs4_client_status status)
{
	bool mine;

	pthread_mutex_lock(&all->lock);
	mine = nfs4_client_status(cl) == status;
	if (mine)
		nfs4_client_detach(all, cl);
	pthread_mutex_unlock(&all->lock);
	if (mine)
		nfs4_client_destroy(cl);
	nfs4_client_put(cl);
}

void nfs4_clients_forget(struct nfs4_server *srv, struct nfs4_client_queue *old)
{
	struct nfs4_client *cl;

	while ((cl = TAILQ_FIRST(old)) != NULL) {
		TAILQ_REMOVE(old, cl, aging);
		/* An unconfirmed client has no record; a record of its owner belongs to another
		 * client. */
		if (cl->was_confirmed)
			nfs4_record_forget(srv, &cl->record);
		nfs4_client_destroy(cl);
	}
}

/*
 * When memory is short, SEQUENCE's replies tell clients to use fewer slots (nfs4/client/session.c). A client that sends no
 * requests does not read that, and its session keeps its replies. It is told by CB_RECALL_SLOT, and then sends a
 * SEQUENCE (RFC 8881 section 20.8.3).
 */

bool nfs4_session_short_of_memory(const struct nfs4_session *s)
{
	const struct rn_budget *b = s->client->srv->cfg.budget;

	return atomic_load_explicit(&b->used, memory_order_relaxed) > b->max - b->max / 8 ||
	       nfs4_host_has_its_quota(s->client->host, b->max / 8);
}

/* Under the session's lock. True: the client is to be told of s->target. */
static bool shrink(struct nfs4_session *s)
{
	const bool idle = !s->active && s->busy == 0;

	s->active = false;
	if (!idle || s->dead || s->slots_recalled || s->nslots <= NFS4_SLOTS_LEAST ||
	    s->nmade <= NFS4_SLOTS_LEAST || !s->cb_path || s->cb_path->state != NFS4_CB_UP ||
	    !nfs4_session_short_of_memory(s))
		return false;
	s->short_of_memory = true;
	s->slots_recalled = true;
	s->target = NFS4_SLOTS_LEAST;
	s->target_state = NFS4_TARGET_NEW;
	return true;
}

/* A session whose idle slots are to be recalled, with a reference; NULL: none. */
static struct nfs4_session *next_idle(struct nfs4_client *cl)
{
	struct nfs4_session *s;
	bool found = false;

	pthread_mutex_lock(&cl->lock);
	LIST_FOREACH (s, &cl->session_list, of_client) {
		pthread_mutex_lock(&s->lock);
		found = shrink(s);
		pthread_mutex_unlock(&s->lock);
		if (found)
			break;
	}
	if (found)
		nfs4_session_ref(s);
	pthread_mutex_unlock(&cl->lock);
	return found ? s : NULL;
}

bool nfs4_client_recall_slots(struct nfs4_client *cl)
{
	struct nfs4_session *s = next_idle(cl);

	if (!s)
		return false;
	nfs4_recall_slots(s, NFS4_SLOTS_LEAST - 1);
	nfs4_session_put(s);
	return true;
}

/*
 * Eviction. When memory is short, the host that holds most loses clients. A client that has nothing
 * open and no request under way loses its client id and sessions, and registers anew when it comes
 * back. Opens and locks are never taken from a client whose lease is good.
 */

/* Clients of a host, or courtesy clients, that one search examines. */
#define LOOK_MOST 64u

static bool nfs4_client_is_evictable(struct nfs4_client *cl)
{
	const enum nfs4_client_status status = nfs4_client_status(cl);
	struct nfs4_session *s;
	bool quiet;

	if (status != NFS4_CLIENT_ACTIVE && status != NFS4_CLIENT_UNCONFIRMED)
		return false;
	if (atomic_load(&cl->record.ended) != atomic_load(&cl->record.begun) ||
	    atomic_load(&cl->under_way) != 0)
		return false;
	pthread_mutex_lock(&cl->lock);
	quiet = !cl->creating && !nfs4_holdings_busy(cl->holdings);
	LIST_FOREACH (s, &cl->session_list, of_client)
		quiet = quiet && !nfs4_session_busy(s, NULL);
	pthread_mutex_unlock(&cl->lock);
	return quiet;
}

/* Detaches a client without state and requests and returns it with the table's reference. NULL:
 * none among those examined. */
static struct nfs4_client *take_quiet(struct nfs4_clients *all, struct nfs4_host *h)
{
	struct nfs4_host_clients *queue = nfs4_host_clients(h);
	struct nfs4_client *cl = NULL;

	pthread_mutex_lock(&all->lock);
	for (unsigned i = 0; i < LOOK_MOST; i++) {
		cl = TAILQ_FIRST(queue);
		if (!cl || nfs4_client_is_evictable(cl))
			break;
		TAILQ_REMOVE(queue, cl, of_host);
		TAILQ_INSERT_TAIL(queue, cl, of_host);
		cl = NULL;
	}
	if (cl)
		nfs4_client_detach(all, cl);
	pthread_mutex_unlock(&all->lock);
	return cl;
}

bool nfs4_clients_shed(struct nfs4_clients *all, enum nfs4_measure what, size_t mine)
{
	struct nfs4_host *h = nfs4_hosts_greediest(all->hosts, what, mine);
	struct nfs4_client *cl;

	if (!h)
		return false;
	cl = take_quiet(all, h);
	nfs4_host_put(h);
	if (!cl)
		return false;
	if (cl->was_confirmed)
		nfs4_record_forget(all->srv, &cl->record);
	nfs4_client_destroy(cl);
	return true;
}

struct nfs4_client *nfs4_clients_oldest(struct nfs4_clients *all, struct nfs4_client_queue *queue,
					uint64_t age)
{
	struct nfs4_client *cl;

	pthread_mutex_lock(&all->lock);
	cl = TAILQ_FIRST(queue);
	if (cl && cl->since + age > nfs4_clients_now(all->srv))
		cl = NULL;
	if (cl)
		nfs4_client_ref(cl);
	pthread_mutex_unlock(&all->lock);
	return cl;
}

enum nfs4_expire nfs4_client_evict(struct nfs4_clients *all, struct nfs4_client *cl)
{
	enum nfs4_expire how;

	if (!cl)
		return NFS4_HOLDS;
	how = nfs4_client_expire_courtesy(all->srv, cl);
	if (how == NFS4_DROPPED)
		nfs4_client_forget(all, cl, NFS4_CLIENT_EXPIRED);
	else
		nfs4_client_put(cl);
	return how;
}

enum nfs4_expire nfs4_clients_evict(struct nfs4_clients *all)
{
	return nfs4_client_evict(all, nfs4_clients_oldest(all, &all->courtesy, 0));
}

/* The host's oldest courtesy client, among those examined, with a reference; or NULL. */
static struct nfs4_client *oldest_of(struct nfs4_clients *all, const struct nfs4_host *h)
{
	unsigned looked = 0;
	struct nfs4_client *cl;

	pthread_mutex_lock(&all->lock);
	TAILQ_FOREACH (cl, &all->courtesy, aging) {
		if (cl->host == h || ++looked == LOOK_MOST)
			break;
	}
	if (cl && cl->host != h)
		cl = NULL;
	if (cl)
		nfs4_client_ref(cl);
	pthread_mutex_unlock(&all->lock);
	return cl;
}

bool nfs4_clients_take(struct nfs4_clients *all, struct nfs4_host *h, size_t bytes,
		       enum nfs4_use use)
{
	struct nfs4_client *cl;
	enum nfs4_expire how;

	for (unsigned i = 0; !nfs4_host_take(h, bytes, use); i++) {
		if (i == NFS4_EVICT_MOST)
			return false;
		/* A host that has its share may evict only its own clients. */
		cl = nfs4_host_has_its_quota(h, bytes)
			     ? oldest_of(all, h)
			     : nfs4_clients_oldest(all, &all->courtesy, 0);
		how = nfs4_client_evict(all, cl);
		if (how == NFS4_DROPPED)
			continue;
		/* Else a host with twice as much as the caller's host will have loses a client. */
		if (how == NFS4_DROPPING ||
		    !nfs4_clients_shed(all, NFS4_BYTES, 2 * (nfs4_host_has(h, NFS4_BYTES) + bytes)))
			return false;
	}
	return true;
}

struct nfs4_client *nfs4_client_overflow(struct nfs4_clients *all)
{
	struct nfs4_host *h = nfs4_hosts_greediest(all->hosts, NFS4_UNCONFIRMED, 0);
	struct nfs4_client *cl;

	TAILQ_FOREACH (cl, &all->unconfirmed, aging) {
		if (cl->host == h)
			break;
	}
	nfs4_host_put(h);
	if (cl)
		nfs4_client_detach(all, cl);
	return cl;
}

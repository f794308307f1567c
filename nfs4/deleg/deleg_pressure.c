/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/deleg/deleg_pressure.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/budget.h"
#include "lib/clock.h"
#include "lib/util.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/holdings.h"

uint64_t nfs4_deleg_excess(uint64_t used, uint64_t most)
{
	const uint64_t eighth = most / 8;

	return used > most - eighth ? used - (most - 2 * eighth) : 0;
}

uint64_t nfs4_deleg_memory_excess(const struct nfs4_deleg_memory *m)
{
	const uint64_t bytes = nfs4_deleg_excess(m->used, m->most);
	const uint64_t fair = m->most / 16 / m->cost;
	uint64_t excess = (bytes + m->cost - 1) / m->cost;

	if (m->delegs <= fair)
		return 0;
	return excess < m->delegs - fair ? excess : m->delegs - fair;
}

/* Sum of what is above a level. */
static uint64_t nfs4_deleg_sum_above(const uint32_t *has, unsigned n, uint64_t level)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < n && has[i] > level; i++)
		sum += has[i] - level;
	return sum;
}

/* The highest level above which there is as much as excess; at least low. */
static uint32_t find_level(const uint32_t *has, unsigned n, uint32_t low, uint64_t excess)
{
	uint32_t high = n > 0 && has[0] > low ? has[0] : low;

	while (low < high) {
		const uint32_t middle = high - (high - low) / 2;

		if (nfs4_deleg_sum_above(has, n, middle) >= excess)
			low = middle;
		else
			high = middle - 1;
	}
	return low;
}

void nfs4_deleg_divide(const uint32_t *has, unsigned n, uint32_t next, uint64_t excess,
		       uint32_t *give)
{
	const uint32_t level = find_level(has, n, next, excess);

	for (unsigned i = 0; i < n; i++) {
		const uint32_t least = has[i] / 4 + (has[i] % 4 ? 1 : 0);
		uint64_t part = has[i] > level ? has[i] - level : 0;

		if (part < least)
			part = least;
		if (part > excess)
			part = excess;
		give[i] = (uint32_t)part;
		excess -= part;
	}
}

bool nfs4_deleg_may_ask(const struct nfs4_deleg_asked *a, uint32_t keep, uint64_t now)
{
	if (a->keep == NFS4_DELEG_KEEP_ALL)
		return true;
	return keep <= a->keep && now >= a->last + NFS4_DELEG_ASK_AGAIN_S;
}

uint32_t nfs4_deleg_to_take(const struct nfs4_deleg_asked *a, uint32_t n, uint64_t now,
			    uint64_t lease)
{
	if (n <= a->keep || (!a->deaf && now < a->since + lease))
		return 0;
	return n - a->keep < NFS4_DELEG_TAKEN_AT_ONCE ? n - a->keep : NFS4_DELEG_TAKEN_AT_ONCE;
}

/* Bytes charged for a delegation with a filehandle of common length. */
#define COST (sizeof(struct nfs4_deleg) + NFS4_FILE_COST + 32u)
/* Delegations of a client that one search for unused ones looks at. */
#define LOOK_MOST 128u

int nfs4_deleg_holders_new(struct nfs4_server *srv)
{
	struct nfs4_deleg_holders *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	pthread_mutex_init(&h->lock, NULL);
	TAILQ_INIT(&h->clients);
	h->max = NFS4_DELEGS_MAX;
	h->max_of_client = NFS4_DELEGS_OF_CLIENT;
	srv->deleg_holders = h;
	return 0;
}

void nfs4_deleg_holders_free(struct nfs4_deleg_holders *h)
{
	if (h)
		pthread_mutex_destroy(&h->lock);
	free(h);
}

bool nfs4_deleg_has_room(struct nfs4_client *cl)
{
	const struct nfs4_deleg_holders *h = cl->srv->deleg_holders;
	uint32_t has;

	pthread_mutex_lock(&cl->lock);
	has = cl->holdings->delegs;
	pthread_mutex_unlock(&cl->lock);
	return has < h->max_of_client && atomic_load(&h->given) < h->max;
}

void nfs4_deleg_one_more(struct nfs4_client *cl)
{
	struct nfs4_deleg_holders *h = cl->srv->deleg_holders;

	if (nfs4_deleg_excess(atomic_load(&cl->holdings->deleg_account.n), h->max_of_client) > 0)
		atomic_store(&h->crowded, true);
}

void nfs4_deleg_refused(struct nfs4_client *cl)
{
	if (atomic_load(&cl->holdings->deleg_account.n) == 0)
		return;
	atomic_store(&cl->holdings->deleg_account.refused, true);
	atomic_store(&cl->srv->deleg_holders->crowded, true);
}

/* Prepares CB_RECALL_ANY, if the client can be asked that now. */
static bool recall_any_prepare(struct nfs4_client *cl, uint32_t keep, uint64_t now)
{
	struct nfs4_deleg_account *a = &cl->holdings->deleg_account;

	if (a->calling || !nfs4_deleg_may_ask(&a->asked, keep, now))
		return false;
	if (a->asked.keep == NFS4_DELEG_KEEP_ALL)
		a->asked.since = now;
	a->asked.keep = keep;
	a->asked.last = now;
	a->asked.deaf = !cl->sessions;
	atomic_store(&a->keep, keep);
	atomic_store(&a->look_at, a->asked.deaf ? now : now + cl->srv->cfg.lease_seconds);
	a->call.keep = keep;
	a->call.types = a->types;
	a->calling = !a->asked.deaf;
	return a->calling;
}

static bool is_among(struct nfs4_deleg *const *found, unsigned n, const struct nfs4_deleg *d)
{
	while (n > 0 && found[n - 1] != d)
		n--;
	return n > 0;
}

/* Finds up to most delegations, least recently used ones first, with a reference each. One that was used since
 * the last search is passed over once. */
static unsigned nfs4_deleg_find_unused(struct nfs4_deleg_account *a, unsigned most,
				       struct nfs4_deleg **found)
{
	struct nfs4_deleg *d;
	unsigned n = 0;

	for (unsigned i = 0; i < LOOK_MOST && n < most; i++) {
		d = TAILQ_FIRST(&a->order);
		if (!d)
			break;
		TAILQ_REMOVE(&a->order, d, order_link);
		TAILQ_INSERT_TAIL(&a->order, d, order_link);
		if (atomic_exchange(&d->used, false) || is_among(found, n, d))
			continue;
		nfs4_state_ref(&d->st);
		found[n++] = d;
	}
	return n;
}

/* The functions below are called without locks. */

/* A client that did not take the call, or that could not be reached, is asked again. */
static void asked(struct nfs4_recall_any *r, bool taken)
{
	struct nfs4_deleg_account *a = rn_container_of(r, struct nfs4_deleg_account, call);
	struct nfs4_client *cl = a->client;

	pthread_mutex_lock(&cl->lock);
	a->calling = false;
	if (!taken && a->asked.last + NFS4_DELEG_ASK_AGAIN_S < atomic_load(&a->look_at))
		atomic_store(&a->look_at, a->asked.last + NFS4_DELEG_ASK_AGAIN_S);
	pthread_mutex_unlock(&cl->lock);
	nfs4_client_put(cl);
}

static void recall_any_send(struct nfs4_client *cl)
{
	struct nfs4_deleg_account *a = &cl->holdings->deleg_account;

	unsigned left_out;

	if (rn_log_limit_pass(&cl->srv->deleg_holders->told, rn_now_ns(), &left_out))
		rn_info(cl->srv->cfg.log,
			"client %llx is asked to keep no more than %u of its %u delegations (%u "
			"such messages were left out before)",
			(unsigned long long)cl->clientid, a->call.keep, atomic_load(&a->n),
			left_out);
	a->call.ended = asked;
	nfs4_client_ref(cl);
	nfs4_recall_any(cl, &a->call);
}

/* Asks for so many back. */
static void recall_any_ask(struct nfs4_client *cl, uint32_t give)
{
	struct nfs4_deleg_account *a = &cl->holdings->deleg_account;
	bool ready;
	uint32_t n;

	pthread_mutex_lock(&cl->lock);
	n = atomic_load(&a->n);
	if (n > a->asked.keep)
		n = a->asked.keep;
	ready = n > 0 && give > 0 &&
		recall_any_prepare(cl, n > give ? n - give : 0, nfs4_clients_now(cl->srv));
	pthread_mutex_unlock(&cl->lock);
	if (ready)
		recall_any_send(cl);
}

/* A client that has not fulfilled what it was asked for: takes delegations from it if its time is up, or repeats
 * the request. */
static void insist(struct nfs4_client *cl)
{
	struct nfs4_deleg_account *a = &cl->holdings->deleg_account;
	struct nfs4_deleg *found[NFS4_DELEG_TAKEN_AT_ONCE];
	const uint64_t now = nfs4_clients_now(cl->srv), lease = cl->srv->cfg.lease_seconds;
	bool ready = false;
	unsigned n;

	pthread_mutex_lock(&cl->lock);
	n = nfs4_deleg_to_take(&a->asked, atomic_load(&a->n), now, lease);
	if (n > 0)
		n = nfs4_deleg_find_unused(a, n, found);
	else if (a->asked.keep != NFS4_DELEG_KEEP_ALL)
		ready = recall_any_prepare(cl, a->asked.keep, now);
	/* After a repeated request the time counts from the first. */
	if (ready)
		atomic_store(&a->look_at, a->asked.since + lease);
	pthread_mutex_unlock(&cl->lock);
	if (ready)
		recall_any_send(cl);
	for (unsigned i = 0; i < n; i++) {
		vfs_deleg_ask_back(found[i]->st.file, &found[i]->vfs);
		nfs4_state_unref(&found[i]->st);
	}
}

/* One walk over the clients. */
struct look {
	bool leased; /* delegations with leases count, otherwise all */
	uint64_t now;
	/* Clients with most, that were not asked for as many: the largest first, with references. */
	struct nfs4_client *most[NFS4_DELEG_ASKED_AT_ONCE];
	uint32_t has[NFS4_DELEG_ASKED_AT_ONCE + 1]; /* the last is that of the next client */
	unsigned n;
	uint64_t awaited; /* what clients have been asked for and not returned */
	/* Clients whose time is up, with references. */
	struct nfs4_client *late[NFS4_DELEG_ASKED_AT_ONCE];
	unsigned nlate;
};

static bool is_courtesy(const struct nfs4_deleg_account *a)
{
	return nfs4_client_status(a->client) == NFS4_CLIENT_COURTESY;
}

static void nfs4_deleg_look_insert(struct look *l, const struct nfs4_deleg_account *a, uint32_t has)
{
	unsigned i = l->n;

	while (i > 0 && l->has[i - 1] < has)
		i--;
	if (i == NFS4_DELEG_ASKED_AT_ONCE) {
		if (l->has[i] < has)
			l->has[i] = has;
		return;
	}
	if (l->n == NFS4_DELEG_ASKED_AT_ONCE)
		l->has[l->n] = l->has[l->n - 1];
	else
		l->n++;
	for (unsigned k = l->n - 1; k > i; k--) {
		l->most[k] = l->most[k - 1];
		l->has[k] = l->has[k - 1];
	}
	l->most[i] = a->client;
	l->has[i] = has;
}

static void nfs4_deleg_look_at(struct look *l, const struct nfs4_deleg_account *a)
{
	const uint32_t n = atomic_load(&a->n), keep = atomic_load(&a->keep);
	const uint32_t counted = l->leased ? atomic_load(&a->leased) : n;
	uint32_t owed = n > keep ? n - keep : 0;

	if (owed > 0 && l->nlate < NFS4_DELEG_ASKED_AT_ONCE && l->now >= atomic_load(&a->look_at))
		l->late[l->nlate++] = a->client;
	if (owed > counted)
		owed = counted;
	l->awaited += owed;
	if (is_courtesy(a))
		nfs4_deleg_look_insert(l, a, UINT32_MAX);
	else if (counted > owed)
		nfs4_deleg_look_insert(l, a, counted - owed);
}

static void nfs4_deleg_look_all(struct nfs4_server *srv, struct look *l)
{
	struct nfs4_deleg_holders *h = srv->deleg_holders;
	struct nfs4_deleg_account *a;

	l->now = nfs4_clients_now(srv);
	pthread_mutex_lock(&h->lock);
	TAILQ_FOREACH (a, &h->clients, link)
		nfs4_deleg_look_at(l, a);
	for (unsigned i = 0; i < l->n; i++)
		nfs4_client_ref(l->most[i]);
	for (unsigned i = 0; i < l->nlate; i++)
		nfs4_client_ref(l->late[i]);
	pthread_mutex_unlock(&h->lock);
}

/* Takes the state of clients whose lease has run out. True: there was one. */
static bool nfs4_deleg_evict_courtesy(struct nfs4_server *srv, const struct look *l)
{
	bool any = false;

	for (unsigned i = 0; i < l->n; i++) {
		if (nfs4_client_status(l->most[i]) != NFS4_CLIENT_COURTESY)
			continue;
		nfs4_client_expire_courtesy(srv, l->most[i]);
		any = true;
	}
	return any;
}

static void relieve(struct nfs4_server *srv, uint64_t excess, bool leased)
{
	const uint64_t recalling = atomic_load(&srv->deleg_holders->recalling);
	uint32_t give[NFS4_DELEG_ASKED_AT_ONCE];
	struct look l = { .leased = leased };
	uint64_t coming;

	if (excess == 0)
		return;
	nfs4_deleg_look_all(srv, &l);
	coming = l.awaited + recalling;
	if (!nfs4_deleg_evict_courtesy(srv, &l) && excess > coming) {
		nfs4_deleg_divide(l.has, l.n, l.has[NFS4_DELEG_ASKED_AT_ONCE], excess - coming,
				  give);
		for (unsigned i = 0; i < l.n; i++)
			recall_any_ask(l.most[i], give[i]);
	}
	for (unsigned i = 0; i < l.nlate; i++)
		insist(l.late[i]);
	for (unsigned i = 0; i < l.n; i++)
		nfs4_client_put(l.most[i]);
	for (unsigned i = 0; i < l.nlate; i++)
		nfs4_client_put(l.late[i]);
}

/* Delegations that a client has to give back because of its own bound, or its host's quota of the memory. */
static uint32_t own_excess(const struct nfs4_deleg_holders *h, const struct nfs4_deleg_account *a)
{
	const uint32_t n = atomic_load(&a->n);
	const uint64_t excess = nfs4_deleg_excess(n, h->max_of_client);

	if (excess == 0 && atomic_load(&a->refused))
		return n / 4 + 1;
	return (uint32_t)excess;
}

/* Clients near a bound of their own. */
static void relieve_crowded(struct nfs4_server *srv)
{
	struct nfs4_deleg_holders *h = srv->deleg_holders;
	struct nfs4_client *found[NFS4_DELEG_ASKED_AT_ONCE];
	struct nfs4_deleg_account *a;
	unsigned n = 0;

	if (!atomic_exchange(&h->crowded, false))
		return;
	pthread_mutex_lock(&h->lock);
	TAILQ_FOREACH (a, &h->clients, link) {
		if (own_excess(h, a) == 0)
			continue;
		atomic_store(&h->crowded, true); /* until it is not any more */
		if (n < NFS4_DELEG_ASKED_AT_ONCE &&
		    (atomic_load(&a->keep) == NFS4_DELEG_KEEP_ALL ||
		     nfs4_clients_now(srv) >= atomic_load(&a->look_at))) {
			nfs4_client_ref(a->client);
			found[n++] = a->client;
		}
	}
	pthread_mutex_unlock(&h->lock);
	for (unsigned i = 0; i < n; i++) {
		a = &found[i]->holdings->deleg_account;
		if (atomic_load(&a->keep) == NFS4_DELEG_KEEP_ALL)
			recall_any_ask(found[i], own_excess(h, a));
		else
			insist(found[i]);
		nfs4_client_put(found[i]);
	}
}

static uint64_t memory_excess(const struct nfs4_server *srv)
{
	const struct rn_budget *b = srv->cfg.budget;
	struct nfs4_deleg_memory m = { .cost = COST };

	if (!b)
		return 0;
	m.used = atomic_load_explicit(&b->used, memory_order_relaxed);
	m.most = b->max;
	m.delegs = atomic_load(&srv->deleg_holders->given);
	return nfs4_deleg_memory_excess(&m);
}

void nfs4_deleg_pressure_tick(struct nfs4_server *srv)
{
	const struct vfs_lease_usage room = vfs_lease_usage(srv->cfg.vfs);
	const struct nfs4_deleg_holders *h = srv->deleg_holders;
	const uint64_t bound = nfs4_deleg_excess(atomic_load(&h->given), h->max);
	const uint64_t memory = memory_excess(srv);

	relieve(srv, nfs4_deleg_excess(room.used, room.most), true);
	relieve(srv, bound > memory ? bound : memory, false);
	relieve_crowded(srv);
}

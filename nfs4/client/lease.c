/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Leases: from active by way of courtesy to expired. Renewing is a store into the timer. A timer
 * that is filed holds a reference, which goes with whoever takes it out: nfs4_client_become(), or
 * fire().
 */
#include "lib/checked.h"
#include "nfs4/client/table.h"

/* Of how many one looks for who has to pay. */
#define LOOK_MOST 64u
/* How long it is known that a client's state has expired, in leases. */
#define EXPIRED_LEASES 4u

uint64_t nfs4_clients_now(const struct nfs4_server *srv)
{
	return nfs4_now() + atomic_load_explicit(&srv->clients->skipped, memory_order_relaxed);
}

void nfs4_clients_skip_time(struct nfs4_server *srv, uint64_t seconds)
{
	atomic_fetch_add(&srv->clients->skipped, seconds);
}

/* A second more, because the time is rounded down. */
uint64_t nfs4_client_lease_end(const struct nfs4_client *cl)
{
	return nfs4_clients_now(cl->srv) + cl->srv->cfg.lease_seconds + 1;
}

static struct nfs4_client_queue *queue_of(struct nfs4_clients *all, enum nfs4_client_status status,
					  uint32_t **count)
{
	switch (status) {
	case NFS4_CLIENT_UNCONFIRMED:
		*count = &all->nunconfirmed;
		return &all->unconfirmed;
	case NFS4_CLIENT_COURTESY:
		*count = &all->ncourtesy;
		return &all->courtesy;
	case NFS4_CLIENT_EXPIRED:
		*count = &all->nexpired;
		return &all->expired;
	case NFS4_CLIENT_ACTIVE:
	case NFS4_CLIENT_GONE:
		break;
	}
	return NULL;
}

void nfs4_client_become(struct nfs4_clients *all, struct nfs4_client *cl,
			enum nfs4_client_status status)
{
	enum nfs4_client_status was = nfs4_client_status(cl);
	struct nfs4_client_queue *queue;
	uint32_t *count;

	if (was == NFS4_CLIENT_UNCONFIRMED)
		nfs4_host_count(cl->host, NFS4_UNCONFIRMED, -1);
	queue = queue_of(all, was, &count);
	if (queue) {
		TAILQ_REMOVE(queue, cl, aging);
		--*count;
	} else if (was == NFS4_CLIENT_ACTIVE) {
		all->nactive--;
		if (nfs4_wheel_cancel(&all->wheel, &cl->lease))
			nfs4_client_put(cl);
	}
	atomic_store(&cl->status, status); /* before lapse() looks at the time again */
	cl->since = nfs4_clients_now(all->srv);
	queue = queue_of(all, status, &count);
	if (queue) {
		TAILQ_INSERT_TAIL(queue, cl, aging);
		++*count;
	} else if (status == NFS4_CLIENT_ACTIVE) {
		all->nactive++;
		nfs4_client_ref(cl);
		nfs4_wheel_add(&all->wheel, &cl->lease, nfs4_client_lease_end(cl));
	}
}

bool nfs4_client_is_courtesy(const struct nfs4_client *cl)
{
	return nfs4_client_status(cl) == NFS4_CLIENT_COURTESY;
}

/* Back from courtesy. */
static bool revive(struct nfs4_client *cl)
{
	struct nfs4_clients *all = cl->srv->clients;
	enum nfs4_client_status status;

	pthread_mutex_lock(&all->lock);
	status = nfs4_client_status(cl);
	if (status == NFS4_CLIENT_COURTESY)
		nfs4_client_become(all, cl, NFS4_CLIENT_ACTIVE);
	pthread_mutex_unlock(&all->lock);
	return status == NFS4_CLIENT_COURTESY || status == NFS4_CLIENT_ACTIVE;
}

bool nfs4_client_renew(struct nfs4_client *cl)
{
	if (nfs4_client_status(cl) != NFS4_CLIENT_ACTIVE)
		return revive(cl);
	nfs4_timer_renew(&cl->lease, nfs4_client_lease_end(cl));
	/* Either lapse() sees the new time, or this what it has done. */
	return atomic_load(&cl->status) == NFS4_CLIENT_ACTIVE || revive(cl);
}

/* A lease does not run out while a COMPOUND of the client runs (RFC 8881 section 8.3). */
static bool is_busy(struct nfs4_client *cl)
{
	struct nfs4_session *s;
	bool busy = false;

	pthread_mutex_lock(&cl->lock);
	LIST_FOREACH (s, &cl->session_list, of_client) {
		if (nfs4_session_busy(s, NULL))
			busy = true;
	}
	pthread_mutex_unlock(&cl->lock);
	return busy;
}

static bool lease_is_over(struct nfs4_client *cl)
{
	return atomic_load(&cl->lease.due) <= nfs4_clients_now(cl->srv) && !is_busy(cl);
}

bool nfs4_client_has_lapsed(struct nfs4_client *cl)
{
	const enum nfs4_client_status status = nfs4_client_status(cl);

	return status == NFS4_CLIENT_COURTESY ||
	       (status == NFS4_CLIENT_ACTIVE && lease_is_over(cl));
}

/* If the lease of cl, which is active, has run out, it is there by courtesy from now on. With
 * all->lock held. */
static bool lapse(struct nfs4_clients *all, struct nfs4_client *cl)
{
	if (!lease_is_over(cl))
		return false;
	nfs4_client_become(all, cl, NFS4_CLIENT_COURTESY);
	if (lease_is_over(cl))
		return true;
	nfs4_client_become(all, cl, NFS4_CLIENT_ACTIVE); /* renewed just now */
	return false;
}

/* Has it closed everything? Then nobody needs to wait for it after a restart. */
static void retire_record(struct nfs4_client *cl)
{
	unsigned mark;

	if (nfs4_record_is_quiet(&cl->record, &mark) && !nfs4_client_has_state(cl))
		nfs4_record_retire(cl->srv, &cl->record, mark);
}

static void fire(void *ctx, struct nfs4_timer *t)
{
	struct nfs4_clients *all = ctx;
	struct nfs4_client *cl = rn_container_of(t, struct nfs4_client, lease);
	bool over = false;

	pthread_mutex_lock(&all->lock);
	if (nfs4_client_status(cl) == NFS4_CLIENT_ACTIVE) {
		over = lapse(all, cl);
		if (!over)
			nfs4_client_become(all, cl, NFS4_CLIENT_ACTIVE); /* files it again */
	}
	pthread_mutex_unlock(&all->lock);
	/* It may come back just now by an OPEN, which this sees. */
	if (over)
		retire_record(cl);
	nfs4_client_put(cl);
}

enum nfs4_expire nfs4_client_expire_courtesy(struct nfs4_server *srv, struct nfs4_client *cl)
{
	struct nfs4_clients *all = srv->clients;
	enum nfs4_client_status status;

	pthread_mutex_lock(&all->lock);
	status = nfs4_client_status(cl);
	if (status == NFS4_CLIENT_COURTESY || (status == NFS4_CLIENT_ACTIVE && lapse(all, cl))) {
		/* From now on it cannot come back, or it could after its record is gone. */
		nfs4_client_become(all, cl, NFS4_CLIENT_EXPIRED);
		status = NFS4_CLIENT_EXPIRED;
	}
	pthread_mutex_unlock(&all->lock);
	if (status == NFS4_CLIENT_ACTIVE || status == NFS4_CLIENT_UNCONFIRMED)
		return NFS4_HOLDS;
	if (status == NFS4_CLIENT_EXPIRED && !nfs4_record_revoke(srv, &cl->record)) {
		atomic_store(&all->dropping, true);
		return NFS4_DROPPING;
	}
	srv->holdings_hooks->drop(cl);
	return NFS4_DROPPED;
}

/* The oldest of a queue, with a reference; NULL: it is empty, or that one is younger than that. */
static struct nfs4_client *oldest(struct nfs4_clients *all, struct nfs4_client_queue *queue,
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

/* Lets go of one that is only there by courtesy. NFS4_HOLDS: there is none (NULL). Takes over the
 * caller's reference. */
static enum nfs4_expire evict(struct nfs4_clients *all, struct nfs4_client *cl)
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
	return evict(all, oldest(all, &all->courtesy, 0));
}

/* One of the oldest by courtesy that this host has to pay for, with a reference; or NULL. */
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
		/* Others do not lose theirs to one that has its share. */
		cl = nfs4_host_has_its_share(h, bytes) ? oldest_of(all, h)
						       : oldest(all, &all->courtesy, 0);
		how = evict(all, cl);
		if (how == NFS4_DROPPED)
			continue;
		/* Who has twice as much as the caller will have pays for him. */
		if (how == NFS4_DROPPING ||
		    !nfs4_clients_shed(all, NFS4_BYTES, 2 * (nfs4_host_has(h, NFS4_BYTES) + bytes)))
			return false;
	}
	return true;
}

#define AT_ONCE 16u

/* Expired clients whose state waits for their records to go lose it, although nobody may ask for it
 * any more: it was memory that was wanted. */
static void tick_dropping(struct nfs4_clients *all)
{
	struct nfs4_client *found[AT_ONCE], *cl;
	unsigned n = 0;

	if (!atomic_exchange(&all->dropping, false))
		return;
	pthread_mutex_lock(&all->lock);
	TAILQ_FOREACH (cl, &all->expired, aging) {
		if (!nfs4_client_has_state(cl))
			continue;
		if (n == AT_ONCE) {
			atomic_store(&all->dropping, true);
			break;
		}
		nfs4_client_ref(cl);
		found[n++] = cl;
	}
	pthread_mutex_unlock(&all->lock);
	for (unsigned i = 0; i < n; i++) {
		nfs4_client_expire_courtesy(all->srv, found[i]);
		nfs4_client_put(found[i]);
	}
}

/* Forgets the oldest of those that are known as expired. */
static void tick_expired(struct nfs4_clients *all)
{
	const uint64_t age = (uint64_t)EXPIRED_LEASES * all->srv->cfg.lease_seconds;
	struct nfs4_client *cl;

	while ((cl = oldest(all, &all->expired, age)) != NULL) {
		if (nfs4_client_expire_courtesy(all->srv, cl) != NFS4_DROPPED) {
			nfs4_client_put(cl);
			break;
		}
		nfs4_client_forget(all, cl, NFS4_CLIENT_EXPIRED);
	}
}

static void tick_unconfirmed(struct nfs4_clients *all)
{
	struct nfs4_client *cl;

	while ((cl = oldest(all, &all->unconfirmed, all->srv->cfg.lease_seconds)) != NULL)
		nfs4_client_forget(all, cl, NFS4_CLIENT_UNCONFIRMED);
}

/* The clients of one bucket of ids get their turn (nfs4_holdings_hooks.tick). */
static void sweep_bucket(struct nfs4_clients *all, uint32_t bucket)
{
	struct id_part *part = &all->part[bucket % ID_PARTS];
	struct nfs4_client *found[AT_ONCE], *cl;
	unsigned n = 0;

	pthread_mutex_lock(&part->lock);
	LIST_FOREACH (cl, &part->clients[bucket / ID_PARTS], by_id) {
		if (n == AT_ONCE)
			break;
		nfs4_client_ref(cl);
		found[n++] = cl;
	}
	pthread_mutex_unlock(&part->lock);
	for (unsigned i = 0; i < n; i++) {
		all->srv->holdings_hooks->tick(found[i]);
		retire_record(found[i]);
		nfs4_client_put(found[i]);
	}
}

/* All of them in some seconds, and several times in a lease. */
static void sweep(struct nfs4_clients *all)
{
	const uint32_t buckets = ID_PARTS * ID_BUCKETS;
	const uint32_t lease = all->srv->cfg.lease_seconds;
	const uint32_t n = buckets / (lease / 4 > 8 ? 8 : lease / 4 > 0 ? lease / 4 : 1) + 1;

	for (uint32_t i = 0; i < n; i++)
		sweep_bucket(all, (all->swept + i) % buckets);
	all->swept = (all->swept + n) % buckets;
}

void nfs4_clients_tick(struct nfs4_server *srv)
{
	struct nfs4_clients *all = srv->clients;

	nfs4_wheel_tick(&all->wheel, nfs4_clients_now(srv), fire, all);
	tick_unconfirmed(all);
	while (evict(all, oldest(all, &all->courtesy, COURTESY_SECONDS)) == NFS4_DROPPED)
		;
	tick_dropping(all);
	tick_expired(all);
	sweep(all);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "nfs4/client/client.h"
#include "nfs4/client/clients.h"
#include "nfs4/server.h"
#include "nfs4/state/owners.h"
#include "nfs4/state/slots.h"

void nfs4_client_state_init(struct nfs4_client_state *cs)
{
	*cs = (struct nfs4_client_state){ .dropped = false };
	nfs4_slots_init(cs);
	TAILQ_INIT(&cs->idle);
	TAILQ_INIT(&cs->unconfirmed);
	TAILQ_INIT(&cs->states);
}

/* Any open, with a reference; NULL: there is none left. */
static struct nfs4_open *any_open(struct nfs4_client *cl)
{
	struct nfs4_state *st;
	struct nfs4_open *open = NULL;

	pthread_mutex_lock(&cl->lock);
	cl->state.dropped = true;
	st = TAILQ_FIRST(&cl->state.states);
	if (st) {
		open = nfs4_open_of(st);
		nfs4_state_ref(&open->st);
	}
	pthread_mutex_unlock(&cl->lock);
	return open;
}

/* A revoked lock may outlive its open's stay in the tables. */
static void drop_locks(struct nfs4_client *cl, struct nfs4_open *open)
{
	struct nfs4_lock *lock;

	for (;;) {
		pthread_mutex_lock(&cl->lock);
		lock = LIST_FIRST(&open->locks);
		pthread_mutex_unlock(&cl->lock);
		if (!lock)
			return;
		nfs4_lock_end(lock);
	}
}

static void drop_owners(struct nfs4_client *cl)
{
	struct nfs4_client_state *cs = &cl->state;
	struct nfs4_dead_owners dead = { NULL, NULL };

	pthread_mutex_lock(&cl->lock);
	for (uint32_t i = 0; i < cs->owner_buckets; i++) {
		while (cs->owner_hash[i])
			nfs4_owner_forget(cs->owner_hash[i], &dead);
	}
	nfs4_state_discharge(cl, cs->owner_buckets * sizeof(*cs->owner_hash));
	free(cs->owner_hash);
	cs->owner_hash = NULL;
	cs->owner_buckets = 0;
	nfs4_states_empty(cl);
	pthread_mutex_unlock(&cl->lock);
	nfs4_bury(&dead);
}

void nfs4_client_state_drop(struct nfs4_server *srv, struct nfs4_client *cl)
{
	struct nfs4_open *open;

	(void)srv;
	while ((open = any_open(cl))) {
		pthread_mutex_lock(&open->busy);
		drop_locks(cl, open);
		if (!open->st.gone)
			nfs4_open_end(open, false);
		pthread_mutex_unlock(&open->busy);
		nfs4_state_unref(&open->st);
	}
	drop_owners(cl);
}

/* An open that is not revoked, with a reference; NULL: there is none left. */
static struct nfs4_open *next_to_revoke(struct nfs4_client *cl)
{
	struct nfs4_open *open = NULL;
	struct nfs4_state *st;

	pthread_mutex_lock(&cl->lock);
	TAILQ_FOREACH(st, &cl->state.states, link)
	{
		if (!st->revoked) {
			open = nfs4_open_of(st);
			nfs4_state_ref(&open->st);
			break;
		}
	}
	pthread_mutex_unlock(&cl->lock);
	return open;
}

static void revoke(struct nfs4_client *cl, struct nfs4_open *open, int status)
{
	struct nfs4_client_state *cs = &cl->state;
	struct nfs4_lock *lock;

	pthread_mutex_lock(&cl->lock);
	if (!open->st.gone) {
		nfs4_state_revoke(cl, &open->st, status);
		TAILQ_REMOVE(&cs->states, &open->st, link); /* those to be revoked come first */
		TAILQ_INSERT_TAIL(&cs->states, &open->st, link);
	}
	LIST_FOREACH(lock, &open->locks, open_link)
	{
		nfs4_state_revoke(cl, &lock->st, status);
		TAILQ_REMOVE(&cs->states, &lock->st, link);
		TAILQ_INSERT_TAIL(&cs->states, &lock->st, link);
	}
	pthread_mutex_unlock(&cl->lock);
	LIST_FOREACH(lock, &open->locks, open_link)
	vfs_lock_drop_all(&lock->ranges);
	vfs_share_close(&open->share);
}

void nfs4_client_state_revoke(struct nfs4_server *srv, struct nfs4_client *cl, int status)
{
	struct nfs4_open *open;

	(void)srv;
	while ((open = next_to_revoke(cl))) {
		pthread_mutex_lock(&open->busy);
		revoke(cl, open, status);
		pthread_mutex_unlock(&open->busy);
		nfs4_state_unref(&open->st);
	}
}

bool nfs4_client_has_state(struct nfs4_client *cl)
{
	bool has;

	pthread_mutex_lock(&cl->lock);
	has = cl->state.opens + cl->state.locks > 0;
	pthread_mutex_unlock(&cl->lock);
	return has;
}

bool nfs4_client_has_revoked(struct nfs4_client *cl)
{
	return atomic_load_explicit(&cl->state.revoked, memory_order_relaxed) > 0;
}

static bool is_old(const struct nfs4_owner *o, uint32_t lease)
{
	return o && (uint32_t)nfs4_clients_now(o->client->srv) - o->since > lease;
}

/* The oldest that has not confirmed within a lease, for use; NULL: none. */
static struct nfs4_owner *old_unconfirmed(struct nfs4_client *cl, uint32_t lease)
{
	struct nfs4_owner *o;

	pthread_mutex_lock(&cl->lock);
	o = TAILQ_FIRST(&cl->state.unconfirmed);
	if (is_old(o, lease)) {
		TAILQ_REMOVE(&cl->state.unconfirmed, o, link);
		o->unconfirmed = false;
		o->seq_known = false; /* what comes next is as from a new one */
		nfs4_owner_use(o);
	} else {
		o = NULL;
	}
	pthread_mutex_unlock(&cl->lock);
	return o;
}

void nfs4_client_state_tick(struct nfs4_server *srv, struct nfs4_client *cl)
{
	struct nfs4_dead_owners dead = { NULL, NULL };
	const uint32_t lease = srv->cfg.lease_seconds;
	struct nfs4_owner *o;

	while ((o = old_unconfirmed(cl, lease))) {
		nfs4_owner_drop_kept(o);
		nfs4_owner_release(o);
	}
	pthread_mutex_lock(&cl->lock);
	while (is_old(TAILQ_FIRST(&cl->state.idle), lease))
		nfs4_owner_forget(TAILQ_FIRST(&cl->state.idle), &dead);
	pthread_mutex_unlock(&cl->lock);
	nfs4_bury(&dead);
}

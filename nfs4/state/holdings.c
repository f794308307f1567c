/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>

#include "nfs4/client/client_table.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/nfs4_server.h"
#include "nfs4/state/lock_waiter.h"
#include "nfs4/state/nfs4_deleg.h"
#include "nfs4/state/nfs4_layout.h"
#include "nfs4/state/owner.h"
#include "nfs4/state/state.h"

_Static_assert(_Alignof(struct nfs4_holdings) <= _Alignof(struct nfs4_client), "behind a client");

void nfs4_holdings_init(struct nfs4_holdings *held)
{
	nfs4_stateids_init(held);
	TAILQ_INIT(&held->idle);
	TAILQ_INIT(&held->unconfirmed);
	TAILQ_INIT(&held->states);
	nfs4_recalls_init(&held->recalls);
	nfs4_deleg_account_init(&held->deleg_account);
}

/* Any open, delegation or layout, with a reference; NULL if there is none. */
static struct nfs4_state *any_state(struct nfs4_client *cl)
{
	struct nfs4_state *st;

	pthread_mutex_lock(&cl->lock);
	cl->holdings->dropped = true;
	st = TAILQ_FIRST(&cl->holdings->states);
	if (st && st->kind == NFS4_STATE_LOCK)
		st = &nfs4_as_lock(st)->open->st;
	if (st)
		nfs4_state_ref(st);
	pthread_mutex_unlock(&cl->lock);
	return st;
}

/* Drops the open's locks. A revoked lock may be left when its open has left the tables. */
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
	struct nfs4_holdings *held = cl->holdings;
	struct nfs4_dead_owners dead = { NULL, NULL };

	pthread_mutex_lock(&cl->lock);
	for (uint32_t i = 0; i < held->owner_buckets; i++) {
		while (held->owner_hash[i])
			nfs4_owner_forget(held->owner_hash[i], &dead);
	}
	nfs4_state_discharge(cl, held->owner_buckets * sizeof(*held->owner_hash));
	free(held->owner_hash);
	held->owner_hash = NULL;
	held->owner_buckets = 0;
	nfs4_states_empty(cl);
	pthread_mutex_unlock(&cl->lock);
	nfs4_bury(&dead);
}

static void drop_open(struct nfs4_client *cl, struct nfs4_open *open)
{
	rn_lock_take(&open->busy);
	drop_locks(cl, open);
	if (!open->st.gone)
		nfs4_open_end(open, false);
	rn_lock_give(&open->busy);
}

void nfs4_holdings_drop(struct nfs4_client *cl)
{
	struct nfs4_state *st;

	while ((st = any_state(cl))) {
		if (st->kind == NFS4_STATE_DELEG)
			nfs4_deleg_end(nfs4_as_deleg(st));
		else if (st->kind == NFS4_STATE_LAYOUT)
			nfs4_layout_end(nfs4_as_layout(st));
		else
			drop_open(cl, nfs4_as_open(st));
		nfs4_state_unref(st);
	}
	drop_owners(cl);
	nfs4_lock_waiters_drop(cl);
}

/* opens, delegations and layouts that one walk of a client's states finds at most */
#define AT_ONCE 64u

static bool revocation_is_meant(struct nfs4_state *st, const struct nfs4_revocation *r)
{
	const uint32_t id = st->kind == NFS4_STATE_DELEG    ? nfs4_as_deleg(st)->export_id
			    : st->kind == NFS4_STATE_LAYOUT ? nfs4_as_layout(st)->export_id
							    : nfs4_as_open(st)->export_id;

	for (unsigned i = 0; i < r->n && r->exports; i++) {
		if (r->exports[i] == id)
			return true;
	}
	return !r->exports;
}

/* Locks are revoked and freed with their open, but for those that were revoked alone. */
static bool is_left_to_open(struct nfs4_state *st, const struct nfs4_revocation *r)
{
	return st->kind == NFS4_STATE_LOCK && (r || nfs4_as_lock(st)->open->st.revoked);
}

/* Finds some of the opens, delegations and layouts to revoke, with a reference each. r NULL: finds revoked
 * ones. */
static unsigned revocation_find(struct nfs4_client *cl, const struct nfs4_revocation *r,
				struct nfs4_state *found[AT_ONCE])
{
	struct nfs4_state *st;
	unsigned n = 0;

	pthread_mutex_lock(&cl->lock);
	TAILQ_FOREACH (st, &cl->holdings->states, link) {
		if (n == AT_ONCE)
			break;
		if ((st->revoked != 0) != (!r) || is_left_to_open(st, r))
			continue;
		if (r && !revocation_is_meant(st, r))
			continue;
		found[n++] = st;
		nfs4_state_ref(st);
	}
	pthread_mutex_unlock(&cl->lock);
	return n;
}

uint64_t nfs4_holdings_revoke(struct nfs4_client *cl, const struct nfs4_revocation *r)
{
	struct nfs4_state *found[AT_ONCE];
	uint64_t revoked = 0;
	unsigned n;

	while ((n = revocation_find(cl, r, found)) > 0) {
		for (unsigned i = 0; i < n; i++) {
			revoked += nfs4_revoke(found[i], r->status);
			nfs4_state_unref(found[i]);
		}
	}
	return revoked;
}

void nfs4_holdings_count(struct nfs4_client *cl, const struct nfs4_revocation *r,
			 struct nfs4_loss *out)
{
	const struct nfs4_holdings *held = cl->holdings;
	struct nfs4_state *st;

	pthread_mutex_lock(&cl->lock);
	if (!r->exports) {
		out->opens += held->live.opens;
		out->locks += held->live.locks;
		out->delegations += held->live.delegs;
		pthread_mutex_unlock(&cl->lock);
		return;
	}
	TAILQ_FOREACH (st, &held->states, link) {
		struct nfs4_state *owner =
			st->kind == NFS4_STATE_LOCK ? &nfs4_as_lock(st)->open->st : st;

		if (st->revoked != 0 || !revocation_is_meant(owner, r))
			continue;
		out->opens += st->kind == NFS4_STATE_OPEN;
		out->locks += st->kind == NFS4_STATE_LOCK && atomic_load(&nfs4_as_lock(st)->held);
		out->delegations += st->kind == NFS4_STATE_DELEG;
	}
	pthread_mutex_unlock(&cl->lock);
}

bool nfs4_holdings_busy(const struct nfs4_holdings *held)
{
	return held->opens + held->locks + held->delegs + held->layouts > 0;
}

bool nfs4_holdings_delegated(const struct nfs4_holdings *held)
{
	return held->delegs > 0;
}

bool nfs4_holdings_have_revoked(const struct nfs4_holdings *held, int status)
{
	return atomic_load_explicit(&held->revoked[nfs4_revoked_by(status)], memory_order_relaxed) >
	       0;
}

static bool idle_owner_is_old(const struct nfs4_owner *o, uint32_t lease)
{
	return o && (uint32_t)nfs4_clients_now(o->client->srv) - o->since > lease;
}

/* The oldest owner that has been unconfirmed for a lease, marked as used; or NULL. */
static struct nfs4_owner *old_unconfirmed(struct nfs4_client *cl, uint32_t lease)
{
	struct nfs4_owner *o;

	pthread_mutex_lock(&cl->lock);
	o = TAILQ_FIRST(&cl->holdings->unconfirmed);
	if (idle_owner_is_old(o, lease)) {
		TAILQ_REMOVE(&cl->holdings->unconfirmed, o, link);
		o->unconfirmed = false;
		o->seq_known = false; /* the next sequence number is taken as from a new owner */
		nfs4_owner_use(o);
	} else {
		o = NULL;
	}
	pthread_mutex_unlock(&cl->lock);
	return o;
}

static bool revoked_long_ago(struct nfs4_client *cl, uint32_t lease)
{
	bool are;

	if (!nfs4_holdings_have_revoked(cl->holdings, NFS4ERR_ADMIN_REVOKED) &&
	    !nfs4_holdings_have_revoked(cl->holdings, NFS4ERR_EXPIRED))
		return false;
	pthread_mutex_lock(&cl->lock);
	are = (uint32_t)nfs4_clients_now(cl->srv) - cl->holdings->revoked_at > lease;
	pthread_mutex_unlock(&cl->lock);
	return are;
}

/* Minor version 0: frees revoked state after a lease, when a client that uses it has noticed. */
static void forget_revoked(struct nfs4_client *cl, uint32_t lease)
{
	struct nfs4_state *found[AT_ONCE];
	unsigned n;

	while (!cl->sessions && revoked_long_ago(cl, lease) &&
	       (n = revocation_find(cl, NULL, found)) > 0) {
		for (unsigned i = 0; i < n; i++) {
			if (found[i]->kind == NFS4_STATE_DELEG)
				nfs4_deleg_end(nfs4_as_deleg(found[i]));
			else if (found[i]->kind == NFS4_STATE_LOCK)
				nfs4_lock_drop(nfs4_as_lock(found[i]));
			else
				nfs4_open_drop(nfs4_as_open(found[i]));
			nfs4_state_unref(found[i]);
		}
	}
}

void nfs4_holdings_tick(struct nfs4_client *cl)
{
	struct nfs4_dead_owners dead = { NULL, NULL };
	const uint32_t lease = cl->srv->cfg.lease_seconds;
	struct nfs4_owner *o;

	nfs4_lock_waiters_tick(cl);
	forget_revoked(cl, lease);
	while ((o = old_unconfirmed(cl, lease))) {
		nfs4_owner_drop_kept(o);
		nfs4_owner_release(o);
	}
	pthread_mutex_lock(&cl->lock);
	while (idle_owner_is_old(TAILQ_FIRST(&cl->holdings->idle), lease))
		nfs4_owner_forget(TAILQ_FIRST(&cl->holdings->idle), &dead);
	pthread_mutex_unlock(&cl->lock);
	nfs4_bury(&dead);
}

bool nfs4_client_has_state(struct nfs4_client *cl)
{
	bool has;

	pthread_mutex_lock(&cl->lock);
	has = nfs4_holdings_busy(cl->holdings);
	pthread_mutex_unlock(&cl->lock);
	return has;
}

enum nfs4_expire nfs4_client_expire_courtesy(struct nfs4_server *srv, struct nfs4_client *cl)
{
	struct nfs4_clients *all = srv->clients;
	enum nfs4_client_status status;

	pthread_mutex_lock(&all->lock);
	status = nfs4_client_status(cl);
	if (status == NFS4_CLIENT_COURTESY ||
	    (status == NFS4_CLIENT_ACTIVE && nfs4_client_lapse(all, cl))) {
		/* Expired first: a client that renewed after its record was deleted could not
		 * reclaim. */
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
	nfs4_holdings_drop(cl);
	return NFS4_DROPPED;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client's opens, locks and delegations by {owner, file}, with the counts and charges that change
 * with them.
 */
#include <errno.h>
#include <stdlib.h>

#include "nfs4/client/nfs4_client.h"
#include "nfs4/hash.h"
#include "nfs4/state/nfs4_deleg.h"
#include "nfs4/state/state.h"
#include "nfs4/state/stateid_table.h"
#include "nfs4/state/totals.h"

#define BUCKETS_MIN 16u

static uint32_t nfs4_state_bucket_of(const struct nfs4_holdings *held, const struct nfs4_owner *o,
				     const struct vfs_file *f)
{
	uint64_t h = nfs4_mix((uintptr_t)o) ^ (uintptr_t)f;

	return (uint32_t)nfs4_mix(h) & (held->state_buckets - 1);
}

struct nfs4_state *nfs4_state_by_file(struct nfs4_client *cl, const struct nfs4_owner *o,
				      const struct vfs_file *f)
{
	struct nfs4_holdings *held = cl->holdings;
	struct nfs4_state *st;

	if (held->state_buckets == 0)
		return NULL;
	st = held->state_hash[nfs4_state_bucket_of(held, o, f)];
	while (st && (st->owner != o || st->file != f))
		st = st->hash_next;
	return st;
}

struct nfs4_lock *nfs4_lock_find(struct nfs4_client *cl, const struct nfs4_owner *o,
				 const struct vfs_file *f)
{
	struct nfs4_state *st;

	pthread_mutex_lock(&cl->lock);
	st = nfs4_state_by_file(cl, o, f);
	if (st)
		nfs4_state_ref(st);
	pthread_mutex_unlock(&cl->lock);
	return st ? nfs4_as_lock(st) : NULL;
}

static void hash_insert(struct nfs4_holdings *held, struct nfs4_state *st)
{
	struct nfs4_state **at = &held->state_hash[nfs4_state_bucket_of(held, st->owner, st->file)];

	st->hash_next = *at;
	*at = st;
}

static void hash_remove(struct nfs4_holdings *held, struct nfs4_state *st)
{
	struct nfs4_state **at = &held->state_hash[nfs4_state_bucket_of(held, st->owner, st->file)];

	while (*at != st)
		at = &(*at)->hash_next;
	*at = st->hash_next;
}

/* Doubles the buckets when there are as many states; without memory the chains grow. */
static int nfs4_state_table_grow(struct nfs4_client *cl)
{
	struct nfs4_holdings *held = cl->holdings;
	uint32_t n = held->state_buckets > 0 ? 2 * held->state_buckets : BUCKETS_MIN;
	struct nfs4_state **fresh, **old = held->state_hash, *st;

	if (!nfs4_state_charge(cl, (n - held->state_buckets) * sizeof(*fresh)))
		return held->state_buckets > 0 ? 0 : -ENOMEM;
	fresh = calloc(n, sizeof(*fresh));
	if (!fresh) {
		nfs4_state_discharge(cl, (n - held->state_buckets) * sizeof(*fresh));
		return held->state_buckets > 0 ? 0 : -ENOMEM;
	}
	held->state_hash = fresh;
	held->state_buckets = n;
	TAILQ_FOREACH (st, &held->states, link) {
		if (!st->revoked)
			hash_insert(held, st);
	}
	free(old);
	return 0;
}

static size_t cost_of(struct nfs4_state *st)
{
	if (st->kind == NFS4_STATE_LOCK)
		return sizeof(struct nfs4_lock);
	if (st->kind == NFS4_STATE_DELEG)
		return sizeof(struct nfs4_deleg) + nfs4_as_deleg(st)->fh_len + NFS4_FILE_COST;
	return sizeof(struct nfs4_open) + nfs4_as_open(st)->fh_len + NFS4_FILE_COST;
}

static void nfs4_state_count(struct nfs4_client *cl, const struct nfs4_state *st, int by)
{
	struct nfs4_holdings *held = cl->holdings;

	switch ((enum nfs4_state_kind)st->kind) {
	case NFS4_STATE_OPEN:
		held->opens += (uint32_t)by;
		nfs4_totals_count(cl->srv, NFS4_TOTAL_OPENS, by);
		break;
	case NFS4_STATE_LOCK:
		held->locks += (uint32_t)by;
		nfs4_totals_count(cl->srv, NFS4_TOTAL_LOCKS, by);
		break;
	default:
		held->delegs += (uint32_t)by;
		nfs4_totals_count(cl->srv, NFS4_TOTAL_DELEGS, by);
	}
}

/* The same of states that are not revoked. Those of locks: nfs4_lock_count(). */
static void count_live(struct nfs4_holdings *held, const struct nfs4_state *st, int by)
{
	if (st->kind == NFS4_STATE_OPEN)
		held->live.opens += (uint32_t)by;
	else if (st->kind == NFS4_STATE_DELEG)
		held->live.delegs += (uint32_t)by;
}

void nfs4_lock_count(struct nfs4_lock *lock)
{
	const bool counts = atomic_load(&lock->held) && !lock->st.gone && !lock->st.revoked;

	lock->st.client->holdings->live.locks += (uint32_t)counts - (uint32_t)lock->counted;
	lock->counted = counts;
}

int nfs4_state_add(struct nfs4_client *cl, struct nfs4_state *st)
{
	struct nfs4_holdings *held = cl->holdings;
	int rc = 0;

	if (held->dropped)
		return -ESTALE;
	if (held->opens + held->locks + held->delegs >= held->state_buckets)
		rc = nfs4_state_table_grow(cl);
	if (rc == 0 && !nfs4_state_charge(cl, cost_of(st)))
		rc = -ENOMEM;
	if (rc != 0)
		return rc;
	rc = nfs4_stateid_take(cl, st);
	if (rc != 0) {
		nfs4_state_discharge(cl, cost_of(st));
		return rc;
	}
	st->slotted = true;
	hash_insert(held, st);
	TAILQ_INSERT_TAIL(&held->states, st, link);
	if (st->kind == NFS4_STATE_LOCK) {
		LIST_INSERT_HEAD(&nfs4_as_lock(st)->open->locks, nfs4_as_lock(st), open_link);
		LIST_INSERT_HEAD(&st->owner->locks, nfs4_as_lock(st), owner_link);
	}
	if (st->owner)
		st->owner->states++;
	nfs4_state_ref(st);
	nfs4_state_count(cl, st, 1);
	count_live(held, st, 1);
	return 0;
}

void nfs4_state_remove(struct nfs4_client *cl, struct nfs4_state *st, bool keep)
{
	struct nfs4_holdings *held = cl->holdings;

	st->gone = true;
	if (st->revoked) {
		atomic_fetch_sub(&held->revoked[nfs4_revoked_by((int)st->revoked)], 1);
	} else {
		hash_remove(held, st);
		count_live(held, st, -1);
	}
	TAILQ_REMOVE(&held->states, st, link);
	if (st->kind == NFS4_STATE_LOCK) {
		nfs4_lock_count(nfs4_as_lock(st));
		LIST_REMOVE(nfs4_as_lock(st), open_link);
		LIST_REMOVE(nfs4_as_lock(st), owner_link);
		nfs4_state_discharge(cl, nfs4_as_lock(st)->charged * (size_t)NFS4_RANGE_COST);
	}
	if (st->owner)
		st->owner->states--;
	nfs4_state_count(cl, st, -1);
	if (!keep)
		nfs4_state_forget(cl, st);
}

void nfs4_state_revoke(struct nfs4_client *cl, struct nfs4_state *st, int status)
{
	struct nfs4_holdings *held = cl->holdings;

	if (st->revoked)
		return;
	hash_remove(held, st);
	TAILQ_REMOVE(&held->states, st, link); /* states that are not revoked come first */
	TAILQ_INSERT_TAIL(&held->states, st, link);
	st->revoked = (uint32_t)status;
	count_live(held, st, -1);
	if (st->kind == NFS4_STATE_LOCK)
		nfs4_lock_count(nfs4_as_lock(st));
	atomic_fetch_add(&held->revoked[nfs4_revoked_by(status)], 1);
}

void nfs4_states_empty(struct nfs4_client *cl)
{
	struct nfs4_holdings *held = cl->holdings;

	nfs4_stateids_fini(cl);
	nfs4_state_discharge(cl, held->state_buckets * sizeof(*held->state_hash));
	free(held->state_hash);
	held->state_hash = NULL;
	held->state_buckets = 0;
}

void nfs4_state_forget(struct nfs4_client *cl, struct nfs4_state *st)
{
	if (!st->slotted)
		return;
	st->slotted = false;
	nfs4_stateid_free(cl->holdings, st->id);
	nfs4_state_discharge(cl, cost_of(st));
}

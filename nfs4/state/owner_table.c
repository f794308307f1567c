/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of a client's owners, by kind and name. */
#include "nfs4/state/owner.h"
#include "nfs4/state/state.h"

#include <stdlib.h>
#include <string.h>

#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/registry.h"
#include "nfs4/nfs4_private.h"

#define BUCKETS_MIN 8u

static uint32_t owner_table_hash(const struct nfs4_client *cl, const struct nfs4_owner_name *name)
{
	return (uint32_t)nfs4_client_hash(cl, name->kind, name->name, name->len);
}

static struct nfs4_owner **owner_table_bucket(struct nfs4_holdings *held, uint32_t hash)
{
	return &held->owner_hash[hash & (held->owner_buckets - 1)];
}

static struct nfs4_owner *owner_table_find(struct nfs4_holdings *held,
					   const struct nfs4_owner_name *name, uint32_t hash)
{
	struct nfs4_owner *o;

	if (held->owner_buckets == 0)
		return NULL;
	for (o = *owner_table_bucket(held, hash); o; o = o->hash_next) {
		if (o->hash == hash && o->kind == name->kind && o->len == name->len &&
		    memcmp(o->name, name->name, name->len) == 0)
			return o;
	}
	return NULL;
}

static void owner_table_insert(struct nfs4_holdings *held, struct nfs4_owner *o)
{
	struct nfs4_owner **at = owner_table_bucket(held, o->hash);

	o->hash_next = *at;
	*at = o;
}

static void rehash(struct nfs4_holdings *held, struct nfs4_owner **old, uint32_t n)
{
	struct nfs4_owner *o, *next;

	for (uint32_t i = 0; i < n; i++) {
		for (o = old[i]; o; o = next) {
			next = o->hash_next;
			owner_table_insert(held, o);
		}
	}
}

static bool owner_table_grow(struct nfs4_client *cl)
{
	struct nfs4_holdings *held = cl->holdings;
	uint32_t n = held->owner_buckets, twice = n > 0 ? 2 * n : BUCKETS_MIN;
	struct nfs4_owner **fresh, **old = held->owner_hash;

	if (!nfs4_state_charge(cl, (twice - n) * sizeof(*fresh)))
		return n > 0;
	fresh = calloc(twice, sizeof(*fresh));
	if (!fresh) {
		nfs4_state_discharge(cl, (twice - n) * sizeof(*fresh));
		return n > 0;
	}
	held->owner_hash = fresh;
	held->owner_buckets = twice;
	rehash(held, old, n);
	free(old);
	return true;
}

static struct nfs4_owner *new_owner(struct nfs4_client *cl, const struct nfs4_owner_name *name,
				    uint32_t hash)
{
	struct nfs4_holdings *held = cl->holdings;
	struct nfs4_owner *o;

	if (held->owners >= held->owner_buckets && !owner_table_grow(cl))
		return NULL;
	if (!nfs4_state_charge(cl, nfs4_owner_cost(name->len)))
		return NULL;
	o = nfs4_owner_new(cl, name);
	if (!o) {
		nfs4_state_discharge(cl, nfs4_owner_cost(name->len));
		return NULL;
	}
	o->in_table = true;
	o->hash = hash;
	owner_table_insert(held, o);
	held->owners++;
	nfs4_totals_count(cl->srv, NFS4_TOTAL_OWNERS, 1);
	return o;
}

/* Begins unconfirmed: the server may have forgotten the owner, and this OPEN be a late duplicate
 * (RFC 7530 section 9.1.11). A reclaim confirms the owner by itself (nfs4/open/open_share.c). */
static void begin_unconfirmed(struct nfs4_holdings *held, struct nfs4_owner *o)
{
	o->unconfirmed = true;
	o->since = (uint32_t)nfs4_clients_now(o->client->srv);
	TAILQ_INSERT_TAIL(&held->unconfirmed, o, link);
}

void nfs4_owner_use(struct nfs4_owner *o)
{
	if (o->idle) {
		o->idle = false;
		TAILQ_REMOVE(&o->client->holdings->idle, o, link);
		o->client->holdings->nidle--;
	}
	nfs4_owner_ref(o);
	o->users++;
}

int nfs4_owner_get(struct nfs4_compound *c, struct nfs4_client *cl,
		   const struct nfs4_owner_name *name, struct nfs4_owner **out)
{
	struct nfs4_holdings *held = cl->holdings;
	uint32_t hash = owner_table_hash(cl, name);
	struct nfs4_owner *o;
	int status = NFS4_OK;

	pthread_mutex_lock(&cl->lock);
	o = owner_table_find(held, name, hash);
	if (held->dropped) {
		status = NFS4ERR_EXPIRED;
	} else if (!o) {
		o = new_owner(cl, name, hash);
		if (!o)
			status = nfs4_state_no_memory(c);
		else if (c->minor == 0 && name->kind == NFS4_OPEN_OWNER)
			begin_unconfirmed(held, o);
	}
	if (status == NFS4_OK)
		nfs4_owner_use(o);
	pthread_mutex_unlock(&cl->lock);
	*out = status == NFS4_OK ? o : NULL;
	return status;
}

struct nfs4_owner *nfs4_owner_find(struct nfs4_client *cl, const struct nfs4_owner_name *name)
{
	struct nfs4_owner *o;

	pthread_mutex_lock(&cl->lock);
	o = owner_table_find(cl->holdings, name, owner_table_hash(cl, name));
	if (o)
		nfs4_owner_use(o);
	pthread_mutex_unlock(&cl->lock);
	return o;
}

void nfs4_owner_forget(struct nfs4_owner *o, struct nfs4_dead_owners *dead)
{
	struct nfs4_client *cl = o->client;
	struct nfs4_holdings *held = cl->holdings;
	struct nfs4_owner **at = owner_table_bucket(held, o->hash);

	while (*at != o)
		at = &(*at)->hash_next;
	*at = o->hash_next;
	if (o->unconfirmed)
		TAILQ_REMOVE(&held->unconfirmed, o, link);
	if (o->idle) {
		TAILQ_REMOVE(&held->idle, o, link);
		held->nidle--;
	}
	o->in_table = o->unconfirmed = o->idle = false;
	if (o->kept) {
		nfs4_state_forget(cl, &o->kept->st);
		/* The link is free: the open is in no hash table any more. */
		o->kept->st.hash_next = dead->kept;
		dead->kept = &o->kept->st;
		o->kept = NULL;
	}
	nfs4_state_discharge(cl, nfs4_owner_cost(o->len) + (o->replay ? o->replay->size : 0));
	held->owners--;
	nfs4_totals_count(cl->srv, NFS4_TOTAL_OWNERS, -1);
	o->hash_next = dead->first;
	dead->first = o;
}

void nfs4_bury(struct nfs4_dead_owners *dead)
{
	struct nfs4_owner *o, *next_owner;
	struct nfs4_state *st, *next;

	for (st = dead->kept; st; st = next) {
		next = st->hash_next;
		nfs4_state_unref(st);
	}
	for (o = dead->first; o; o = next_owner) {
		next_owner = o->hash_next;
		nfs4_owner_unref(o);
	}
}

void nfs4_owner_maybe_idle(struct nfs4_owner *o, struct nfs4_dead_owners *dead)
{
	struct nfs4_holdings *held = o->client->holdings;

	if (o->states > 0 || o->users > 0 || !o->in_table || o->idle)
		return;
	/* A lock-owner without stateids is freed. Linux restarts its sequence under the same name
	 * when its first LOCK was refused, and its last operation cannot be retransmitted. */
	if (!o->seq_known || held->dropped || o->kind == NFS4_LOCK_OWNER) {
		nfs4_owner_forget(o, dead);
		return;
	}
	if (o->unconfirmed)
		return; /* the list of unconfirmed owners has its own timeout */
	o->idle = true;
	o->since = (uint32_t)nfs4_clients_now(o->client->srv);
	TAILQ_INSERT_TAIL(&held->idle, o, link);
	if (++held->nidle > NFS4_IDLE_OWNERS_MAX)
		nfs4_owner_forget(TAILQ_FIRST(&held->idle), dead);
}

void nfs4_owner_release(struct nfs4_owner *o)
{
	struct nfs4_dead_owners dead = { NULL, NULL };
	struct nfs4_client *cl;

	if (!o)
		return;
	cl = o->client;
	nfs4_client_ref(cl);
	pthread_mutex_lock(&cl->lock);
	o->users--;
	nfs4_owner_maybe_idle(o, &dead);
	pthread_mutex_unlock(&cl->lock);
	nfs4_bury(&dead);
	nfs4_owner_unref(o);
	nfs4_client_put(cl);
}

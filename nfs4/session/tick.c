/* SPDX-License-Identifier: BSD-2-Clause */
/* Work of the client table once a second: expired leases, and clients that have been unconfirmed,
 * expired or courtesy clients for long enough. */
#include "lib/util.h"
#include "nfs4/session/forget.h"
#include "nfs4/client/client_lease.h"
#include "nfs4/session/make_room.h"
#include "nfs4/session/registry.h"
#include "nfs4/client/session.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/session/sequence.h"
#include "nfs4/state/holdings.h"

/* Time for which an expired client is remembered, in leases. */
#define EXPIRED_LEASES 4u
#define AT_ONCE 16u	 /* clients that one walk finds at most */
#define SLOT_RECALLS 16u /* CB_RECALL_SLOTs in a second at most */

/* Drops the state of expired clients whose records have been deleted since. The caller that wanted
 * the memory may not ask again. */
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

/* Removes the oldest expired clients. */
static void tick_expired(struct nfs4_clients *all)
{
	const uint64_t age = (uint64_t)EXPIRED_LEASES * all->srv->cfg.lease_seconds;
	struct nfs4_client *cl;

	while ((cl = nfs4_clients_oldest(all, &all->expired, age)) != NULL) {
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

	while ((cl = nfs4_clients_oldest(all, &all->unconfirmed, all->srv->cfg.lease_seconds)) !=
	       NULL)
		nfs4_client_forget(all, cl, NFS4_CLIENT_UNCONFIRMED);
}

/* Deletes the record of a client that has closed everything, so that grace does not wait for it
 * after a restart. */
static void retire_record(struct nfs4_client *cl)
{
	unsigned mark;

	if (nfs4_record_is_quiet(&cl->record, &mark) && !nfs4_client_has_state(cl))
		nfs4_record_retire(cl->srv, &cl->record, mark);
}

/* A lease timer has fired. ctx is struct nfs4_clients. */
static void lease_fire(void *ctx, struct nfs4_timer *t)
{
	struct nfs4_clients *all = ctx;
	struct nfs4_client *cl = rn_container_of(t, struct nfs4_client, lease);
	bool over = false;

	pthread_mutex_lock(&all->lock);
	if (nfs4_client_status(cl) == NFS4_CLIENT_ACTIVE) {
		over = nfs4_client_lapse(all, cl);
		if (!over)
			nfs4_client_become(all, cl, NFS4_CLIENT_ACTIVE); /* files it again */
	}
	pthread_mutex_unlock(&all->lock);
	/* An OPEN may renew it at this moment; the function checks for that. */
	if (over) {
		atomic_fetch_add(&all->lapsed, 1);
		retire_record(cl);
	}
	nfs4_client_put(cl);
}

/* Calls nfs4_holdings_tick for the clients of one id bucket. *recalls: CB_RECALL_SLOTs that may still be
 * sent. */
static void sweep_bucket(struct nfs4_clients *all, uint32_t bucket, unsigned *recalls)
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
		nfs4_holdings_tick(found[i]);
		retire_record(found[i]);
		if (*recalls > 0 && nfs4_client_recall_slots(found[i]))
			--*recalls;
		nfs4_client_put(found[i]);
	}
}

/* Sweeps all buckets within some seconds, several times in a lease. */
static void nfs4_clients_sweep(struct nfs4_clients *all)
{
	const uint32_t buckets = ID_PARTS * ID_BUCKETS;
	const uint32_t lease = all->srv->cfg.lease_seconds;
	const uint32_t n = buckets / (lease / 4 > 8 ? 8 : lease / 4 > 0 ? lease / 4 : 1) + 1;
	unsigned recalls = SLOT_RECALLS;

	for (uint32_t i = 0; i < n; i++)
		sweep_bucket(all, (all->swept + i) % buckets, &recalls);
	all->swept = (all->swept + n) % buckets;
}

void nfs4_clients_tick(struct nfs4_server *srv)
{
	struct nfs4_clients *all = srv->clients;

	nfs4_wheel_tick(&all->wheel, nfs4_clients_now(srv), lease_fire, all);
	tick_unconfirmed(all);
	while (nfs4_client_evict(all, nfs4_clients_oldest(all, &all->courtesy, COURTESY_SECONDS)) ==
	       NFS4_DROPPED)
		;
	tick_dropping(all);
	tick_expired(all);
	nfs4_clients_sweep(all);
}

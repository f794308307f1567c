/* SPDX-License-Identifier: BSD-2-Clause */
/* A client: references, its status, its lease. */
#include "nfs4/client/nfs4_client.h"

#include <stdlib.h>

#include "nfs4/client/cb_path.h"
#include "nfs4/client/client_host.h"
#include "nfs4/client/client_table.h"
#include "nfs4/client/session.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_private.h"
#include "rpc/principal.h"

void nfs4_client_ref(struct nfs4_client *cl)
{
	atomic_fetch_add_explicit(&cl->refs, 1, memory_order_relaxed);
}

void nfs4_client_put(struct nfs4_client *cl)
{
	struct nfs4_host *host;
	struct nfs4_server *srv;
	size_t cost;

	if (!cl || atomic_fetch_sub_explicit(&cl->refs, 1, memory_order_acq_rel) > 1)
		return;
	srv = cl->srv;
	host = cl->host;
	cost = cl->cost;
	nfs4_record_fini(srv, &cl->record);
	rpc_principal_put(cl->principal.name);
	free(cl->cs_reply);
	nfs4_callback_free(cl->callback);
	nfs4_callback_free(cl->update);
	pthread_mutex_destroy(&cl->lock);
	free(cl);
	nfs4_host_give(host, cost);
	nfs4_host_put(host);
}

void nfs4_client_call_begins(struct nfs4_client *cl, struct nfs4_compound *c)
{
	atomic_fetch_add(&cl->under_way, 1);
	c->client = cl;
	c->counts = &cl->counts;
}

void nfs4_client_call_ends(struct nfs4_compound *c)
{
	struct nfs4_client *cl = c->client;

	c->client = NULL;
	c->counts = NULL;
	if (!cl)
		return;
	/* First, as the lease may be over as soon as the call is not under way. */
	nfs4_client_renew(cl);
	atomic_fetch_sub(&cl->under_way, 1);
	nfs4_client_put(cl);
}

void nfs4_client_calls(struct nfs4_client *cl, struct nfs4_compound *c)
{
	nfs4_client_call_ends(c);
	nfs4_client_call_begins(cl, c);
	c->current.ctx.client = cl;
	c->saved.ctx.client = cl;
	nfs4_count(&cl->counts.calls, 1);
}

/*
 * A client's status, with its queue or timer for that status. A filed timer holds a reference of
 * the client, which the function that removes the timer puts: nfs4_client_become() or
 * lease_fire().
 */

uint64_t nfs4_clients_now(const struct nfs4_server *srv)
{
	const struct nfs4_clients *all = srv->clients;
	const uint64_t stands_at = atomic_load_explicit(&all->stands_at, memory_order_relaxed);

	return (stands_at ? stands_at : nfs4_now()) +
	       atomic_load_explicit(&all->skipped, memory_order_relaxed);
}

void nfs4_clients_stop_time(struct nfs4_server *srv)
{
	atomic_store(&srv->clients->stands_at, nfs4_now());
}

void nfs4_clients_skip_time(struct nfs4_server *srv, uint64_t seconds)
{
	atomic_fetch_add(&srv->clients->skipped, seconds);
}

/* One second is added because the time is rounded down. */
uint64_t nfs4_client_lease_end(const struct nfs4_client *cl)
{
	return nfs4_clients_now(cl->srv) + cl->srv->cfg.lease_seconds + 1;
}

static struct nfs4_client_queue *
nfs4_client_status_queue(struct nfs4_clients *all, enum nfs4_client_status status, uint32_t **count)
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
	queue = nfs4_client_status_queue(all, was, &count);
	if (queue) {
		TAILQ_REMOVE(queue, cl, aging);
		--*count;
	} else if (was == NFS4_CLIENT_ACTIVE) {
		all->nactive--;
		if (nfs4_wheel_cancel(&all->wheel, &cl->lease))
			nfs4_client_put(cl);
	}
	atomic_store(&cl->status, status); /* before lapse() in lease.c reads the time again */
	cl->since = nfs4_clients_now(all->srv);
	queue = nfs4_client_status_queue(all, status, &count);
	if (queue) {
		TAILQ_INSERT_TAIL(queue, cl, aging);
		++*count;
	} else if (status == NFS4_CLIENT_ACTIVE) {
		all->nactive++;
		nfs4_client_ref(cl);
		nfs4_wheel_add(&all->wheel, &cl->lease, nfs4_client_lease_end(cl));
	}
}

/* Leases: from active to courtesy to expired. Renewing is a store into the timer. */

/* Makes a courtesy client active again. */
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
	/* Either nfs4_client_lapse() sees the new time, or this load sees the new status. */
	return atomic_load(&cl->status) == NFS4_CLIENT_ACTIVE || revive(cl);
}

static bool lease_is_over(struct nfs4_client *cl)
{
	return atomic_load(&cl->lease.due) <= nfs4_clients_now(cl->srv) &&
	       atomic_load(&cl->under_way) == 0;
}

bool nfs4_client_has_lapsed(struct nfs4_client *cl)
{
	const enum nfs4_client_status status = nfs4_client_status(cl);

	return status == NFS4_CLIENT_COURTESY ||
	       (status == NFS4_CLIENT_ACTIVE && lease_is_over(cl));
}

bool nfs4_client_is_alive(struct nfs4_client *cl)
{
	return nfs4_client_status(cl) == NFS4_CLIENT_ACTIVE && !lease_is_over(cl);
}

bool nfs4_client_lapse(struct nfs4_clients *all, struct nfs4_client *cl)
{
	if (!lease_is_over(cl))
		return false;
	nfs4_client_become(all, cl, NFS4_CLIENT_COURTESY);
	if (lease_is_over(cl))
		return true;
	nfs4_client_become(all, cl, NFS4_CLIENT_ACTIVE); /* renewed in the meantime */
	return false;
}

uint32_t nfs4_clients_lapsed(const struct nfs4_server *srv)
{
	return atomic_load(&srv->clients->lapsed);
}

int nfs4_client_by_id(struct nfs4_server *srv, uint64_t clientid, struct nfs4_client **out)
{
	struct nfs4_client *cl = nfs4_client_get(srv->clients, clientid);
	enum nfs4_client_status status;

	*out = NULL;
	if (!cl)
		return NFS4ERR_STALE_CLIENTID;
	status = nfs4_client_status(cl);
	if (cl->sessions || status == NFS4_CLIENT_UNCONFIRMED || status == NFS4_CLIENT_GONE) {
		nfs4_client_put(cl);
		return NFS4ERR_STALE_CLIENTID;
	}
	if (!nfs4_client_renew(cl)) {
		nfs4_client_put(cl);
		return NFS4ERR_EXPIRED;
	}
	*out = cl;
	return NFS4_OK;
}

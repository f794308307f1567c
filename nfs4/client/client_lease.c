/* SPDX-License-Identifier: BSD-2-Clause */
/* Leases: from active to courtesy to expired. Renewing is a store into the timer. */
#include "nfs4/client/client_lease.h"

#include "nfs4/client/client_table.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/session.h"

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

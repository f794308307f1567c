/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "nfs4/client/client_table.h"
#include "nfs4/client/registry.h"
#include "nfs4/nfs4_server.h"
#include "nfs4/nfs4_view.h"
#include "nfs4/server.h"

/* Members of a client that are read under the table's lock and its own. */
struct guarded {
	struct sockaddr_in6 addr;
	char netid[NFS4_NETID_MAX];
	uint64_t since;
	uint32_t nsessions;
};

static void read_guarded(struct nfs4_client *cl, struct guarded *g)
{
	struct nfs4_clients *all = cl->srv->clients;

	pthread_mutex_lock(&all->lock);
	g->addr = cl->addr;
	memcpy(g->netid, cl->netid, sizeof(g->netid));
	g->since = cl->since;
	pthread_mutex_unlock(&all->lock);
	g->netid[sizeof(g->netid) - 1] = '\0';
	pthread_mutex_lock(&cl->lock);
	g->nsessions = cl->nsessions;
	pthread_mutex_unlock(&cl->lock);
}

static uint64_t span(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

/* False: it is gone. */
static bool set_status(struct nfs4_view_client *v, const struct nfs4_client *cl)
{
	switch (nfs4_client_status(cl)) {
	case NFS4_CLIENT_UNCONFIRMED:
		v->status = NFS4_VIEW_UNCONFIRMED;
		return true;
	case NFS4_CLIENT_ACTIVE:
		v->status = NFS4_VIEW_ACTIVE;
		return true;
	case NFS4_CLIENT_COURTESY:
		v->status = NFS4_VIEW_COURTESY;
		return true;
	case NFS4_CLIENT_EXPIRED:
		v->status = NFS4_VIEW_EXPIRED;
		return true;
	case NFS4_CLIENT_GONE:
		break;
	}
	return false;
}

static void show_one(struct nfs4_client *cl,
		     void (*show)(void *arg, const struct nfs4_view_client *c), void *arg)
{
	const uint64_t now = nfs4_clients_now(cl->srv);
	const struct nfs4_revocation all = { .exports = NULL };
	struct nfs4_loss held = { 0 };
	struct guarded g;

	read_guarded(cl, &g);
	cl->srv->holdings_hooks->count(cl, &all, &held);
	struct nfs4_view_client v = {
		.clientid = cl->clientid,
		.sessions = cl->sessions,
		.name = cl->ownerid,
		.name_len = cl->ownerid_len,
		.netid = g.netid,
		.flavor = cl->principal.flavor,
		.uid = cl->principal.uid,
		.since_s = span(g.since, now),
		.lease_s = span(now, atomic_load(&cl->lease.due)),
		.nsessions = g.nsessions,
		.opens = held.opens,
		.locks = held.locks,
		.delegations = held.delegations,
	};

	memcpy(v.address, &g.addr.sin6_addr, sizeof(v.address));
	if (set_status(&v, cl))
		show(arg, &v);
}

bool nfs4_view_clients(struct nfs4_server *s, uint32_t *after, unsigned most,
		       void (*show)(void *arg, const struct nfs4_view_client *c), void *arg)
{
	for (unsigned i = 0; i < most; i++) {
		struct nfs4_client *cl = nfs4_client_after(s, *after);

		if (!cl)
			return true;
		*after = cl->number;
		show_one(cl, show, arg);
		nfs4_client_put(cl);
	}
	return false;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "lib/util.h"
#include "nfs4/client/client_table.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/session.h"
#include "nfs4/nfs4_server.h"
#include "nfs4/nfs4_view.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/holdings.h"

static bool nfs4_view_has_conn(const struct nfs4_view_client *v, uint64_t conn)
{
	for (uint32_t i = 0; i < v->nconns; i++) {
		if (v->conn[i] == conn)
			return true;
	}
	return false;
}

/* Adds the connections that are bound to the session. */
static void add_conns(struct nfs4_view_client *v, struct nfs4_session *s)
{
	pthread_mutex_lock(&s->lock);
	const uint32_t n = (uint32_t)rn_min(s->nconns, NFS4_CONNS_PER_SESSION);

	for (uint32_t i = 0; i < n && v->nconns < NFS4_VIEW_CLIENT_CONNS; i++) {
		if (!nfs4_view_has_conn(v, s->conn[i]))
			v->conn[v->nconns++] = s->conn[i];
	}
	pthread_mutex_unlock(&s->lock);
}

static void read_sessions(struct nfs4_client *cl, struct nfs4_view_client *v)
{
	struct nfs4_session *s;

	pthread_mutex_lock(&cl->lock);
	v->nsessions = cl->nsessions;
	LIST_FOREACH (s, &cl->session_list, of_client)
		add_conns(v, s);
	pthread_mutex_unlock(&cl->lock);
	v->last_conn = atomic_load_explicit(&cl->origin.last_conn, memory_order_relaxed);
}

/* Members of a client that are read under the table's lock. */
struct guarded {
	struct sockaddr_in6 addr;
	char netid[NFS4_NETID_MAX];
	uint64_t since;
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

static void nfs4_view_show_client(struct nfs4_client *cl,
				  void (*show)(void *arg, const struct nfs4_view_client *c),
				  void *arg)
{
	const uint64_t now = nfs4_clients_now(cl->srv);
	const struct nfs4_revocation all = { .exports = NULL };
	struct nfs4_loss held = { 0 };
	struct guarded g;

	read_guarded(cl, &g);
	nfs4_holdings_count(cl, &all, &held);
	struct nfs4_view_client v = {
		.clientid = cl->clientid,
		.sessions = cl->sessions,
		.name = cl->ownerid,
		.name_len = cl->ownerid_len,
		.netid = g.netid,
		.flavor = cl->principal.flavor,
		.uid = cl->principal.uid,
		.principal = cl->principal.name,
		.machine = cl->protect.machine,
		.since_s = span(g.since, now),
		.lease_s = span(now, atomic_load(&cl->lease.due)),
		.counts = &cl->counts,
		.opens = held.opens,
		.locks = held.locks,
		.delegations = held.delegations,
	};

	read_sessions(cl, &v);
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
		nfs4_view_show_client(cl, show, arg);
		nfs4_client_put(cl);
	}
	return false;
}

void nfs4_view_client(struct nfs4_server *s, uint64_t clientid,
		      void (*show)(void *arg, const struct nfs4_view_client *c), void *arg)
{
	struct nfs4_client *cl = nfs4_client_get(s->clients, clientid);

	if (cl)
		nfs4_view_show_client(cl, show, arg);
	nfs4_client_put(cl);
}

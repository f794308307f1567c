/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients and sessions as an administrator sees them (nfs4/nfs4_view.h). */
#include <string.h>

#include "lib/util.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/client_table.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/session.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/nfs4_server.h"
#include "nfs4/nfs4_view.h"
#include "nfs4/session/session_private.h"
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

/* Sessions, for administrators. */

_Static_assert(NFS4_CONNS_PER_SESSION <= NFS4_VIEW_CONNS, "all stored connections are shown");
_Static_assert(NFS4_CB_CONNS <= NFS4_VIEW_CONNS, "all stored connections are shown");

/* The client's sessions, each with a reference. */
static unsigned nfs4_client_take_sessions(struct nfs4_client *cl,
					  struct nfs4_session *all[NFS4_SESSIONS_PER_CLIENT])
{
	struct nfs4_session *s;
	unsigned n = 0;

	pthread_mutex_lock(&cl->lock);
	LIST_FOREACH (s, &cl->session_list, of_client) {
		if (n == NFS4_SESSIONS_PER_CLIENT)
			break;
		nfs4_session_ref(s);
		all[n++] = s;
	}
	pthread_mutex_unlock(&cl->lock);
	return n;
}

static void set_limits(struct nfs4_view_channel *v, const struct nfs4_channel *ch)
{
	v->max_request = ch->max_request;
	v->max_reply = ch->max_reply;
	v->max_ops = ch->max_ops;
}

static enum nfs4_view_path path_state(const struct nfs4_cb_path *p, uint32_t flags)
{
	if (p->state == NFS4_CB_UNBOUND)
		return NFS4_VIEW_NO_PATH;
	if (p->fault)
		return NFS4_VIEW_FAULT;
	if (flags)
		return NFS4_VIEW_DOWN;
	return p->state == NFS4_CB_UP ? NFS4_VIEW_UP : NFS4_VIEW_UNTRIED;
}

/* Under the session's lock. */
static void copy_path(struct nfs4_view_session *v, const struct nfs4_cb_path *p)
{
	v->path = path_state(p, v->flags);
	v->waiting = p->nwaiting;
	v->back.slots = p->nslots;
	for (uint32_t i = 0; i < NFS4_CB_SLOTS; i++)
		v->back.busy += p->slot[i].busy;
	v->back.nconns = p->nconns;
	for (uint32_t i = 0; i < p->nconns; i++)
		v->back.conn[i] = rpc_backchannel_conn_id(p->conn[i]);
}

static void copy_guarded(struct nfs4_view_session *v, struct nfs4_session *s)
{
	pthread_mutex_lock(&s->lock);
	v->flags = nfs4_cb_flags(s);
	v->fore.slots = s->nslots;
	v->fore.busy = s->busy;
	v->fore.nconns = (uint32_t)rn_min(s->nconns, NFS4_CONNS_PER_SESSION);
	memcpy(v->fore.conn, s->conn, v->fore.nconns * sizeof(s->conn[0]));
	v->used = s->nused;
	v->target = s->target;
	v->cached = s->ncached;
	v->memory = s->cost;
	if (s->cb_path)
		copy_path(v, s->cb_path);
	pthread_mutex_unlock(&s->lock);
}

static void nfs4_session_show(struct nfs4_session *s, const struct nfs4_view_sessions *how)
{
	struct nfs4_client *cl = s->client;
	const uint64_t now = nfs4_clients_now(cl->srv);
	struct nfs4_view_session v = {
		.clientid = cl->clientid,
		.name = cl->ownerid,
		.name_len = cl->ownerid_len,
		.minor = s->minor,
		.age_s = now > s->made ? now - s->made : 0,
		.max_cached = s->fore.max_cached,
	};

	memcpy(v.id, s->id, sizeof(v.id));
	set_limits(&v.fore, &s->fore);
	set_limits(&v.back, &s->back);
	copy_guarded(&v, s);
	v.flags = nfs4_sequence_flags(s, v.flags, nfs4_client_status(cl) != NFS4_CLIENT_EXPIRED);
	how->show(how->arg, &v);
}

static void show_all(struct nfs4_client *cl, const struct nfs4_view_sessions *how)
{
	struct nfs4_session *all[NFS4_SESSIONS_PER_CLIENT];
	const unsigned n = nfs4_client_take_sessions(cl, all);

	for (unsigned i = 0; i < n; i++) {
		nfs4_session_show(all[i], how);
		nfs4_session_put(all[i]);
	}
}

bool nfs4_view_sessions(struct nfs4_server *s, uint32_t *after, unsigned most,
			const struct nfs4_view_sessions *how)
{
	struct nfs4_client *cl;

	if (how->clientid) {
		cl = nfs4_client_get(s->clients, how->clientid);
		if (cl)
			show_all(cl, how);
		nfs4_client_put(cl);
		return true;
	}
	for (unsigned i = 0; i < most; i++) {
		cl = nfs4_client_after(s, *after);
		if (!cl)
			return true;
		*after = cl->number;
		show_all(cl, how);
		nfs4_client_put(cl);
	}
	return false;
}

static bool is_back(struct nfs4_session *s, uint64_t conn)
{
	bool is = false;

	pthread_mutex_lock(&s->lock);
	for (uint32_t i = 0; s->cb_path && i < s->cb_path->nconns; i++)
		is = is || rpc_backchannel_conn_id(s->cb_path->conn[i]) == conn;
	pthread_mutex_unlock(&s->lock);
	return is;
}

bool nfs4_view_is_bound(struct nfs4_server *s, uint64_t clientid, uint64_t conn)
{
	struct nfs4_client *cl = nfs4_client_get(s->clients, clientid);
	struct nfs4_session *session;
	bool bound = false;

	if (!cl)
		return false;
	pthread_mutex_lock(&cl->lock);
	LIST_FOREACH (session, &cl->session_list, of_client)
		bound = bound || nfs4_session_is_bound(session, conn) || is_back(session, conn);
	pthread_mutex_unlock(&cl->lock);
	nfs4_client_put(cl);
	return bound;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths for calls to a client: the connection to an NFSv4.0 client, the back channel of a session. */
#include "nfs4/client/cb_path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/host.h"
#include "lib/util.h"
#include "nfs4/client/client_host.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/session.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_private.h"
#include "rpc/address.h"
#include "rpc/backchannel.h"
#include "rpc/principal.h"
#include "rpc/program.h"
#include "rpc/request.h"
#include "rpc/security.h"

/* Program numbers that no registered program has (RFC 5531 section 8.3). */
#define TRANSIENT_FIRST 0x40000000u
#define TRANSIENT_LAST 0x5fffffffu

/* A path that is down is probed again after this part of a lease, when the client renews. */
#define RETRY_PART 2u

/* True if the server calls that address for this caller. */
static bool get_route(const struct nfs4_compound *c, const struct nfs4_callback_args *a,
		      struct rpc_route *out)
{
	struct sockaddr_in6 peer = { 0 };
	char netid[NFS4_NETID_MAX];

	*out = (struct rpc_route){ 0 };
	nfs4_peer_address(c, &peer, netid);
	/* The server calls in plain text, which a client that asked for TLS has not agreed to. */
	if (rpc_conn_protection(c->req->conn) != RPC_PLAIN)
		return false;
	if (!c->server->cfg.dialer.dial || a->program < TRANSIENT_FIRST ||
	    a->program > TRANSIENT_LAST || !nfs4_parse_uaddr(a->netid, a->addr, &out->to) ||
	    memcmp(&out->to.sin6_addr, &peer.sin6_addr, sizeof(peer.sin6_addr)) != 0)
		return false;
	out->to.sin6_scope_id = peer.sin6_scope_id;
	rn_address_as_ipv6(&c->req->conn->local, &out->from);
	return true;
}

/*
 * A client that calls by RPCSEC_GSS believes no other calls (RFC 7530 section 3.2.3). It can have a context only as a service, which
 * is a principal with an instance. False: it is not called.
 */
static bool get_names(const struct nfs4_compound *c, struct nfs4_callback *cb)
{
	const struct rpc_cred *cred = &c->req->call.cred;
	const struct rpc_security *security = c->req->server->security;

	if (!cred->principal)
		return true;
	if (!strchr(cred->principal->name, '/') || !c->req->secured)
		return false;
	cb->me = security->called_as(c->req);
	cb->service = cred->sec - RPC_SEC_KRB5 + 1;
	return cb->me;
}

struct nfs4_callback *nfs4_callback_new(const struct nfs4_compound *c,
					const struct nfs4_callback_args *a)
{
	struct nfs4_callback *cb = calloc(1, sizeof(*cb));

	if (!cb)
		return NULL;
	cb->program = a->program;
	cb->ident = a->ident;
	cb->state =
		get_route(c, a, &cb->route) && get_names(c, cb) ? NFS4_CB_UNTRIED : NFS4_CB_UNBOUND;
	return cb;
}

static void cb_conn_hang_up(struct rpc_backchannel *conn)
{
	if (!conn)
		return;
	rpc_backchannel_hang_up(conn);
	rpc_backchannel_put(conn);
}

void nfs4_callback_free(struct nfs4_callback *cb)
{
	if (!cb)
		return;
	cb_conn_hang_up(cb->conn);
	rpc_cb_auth_put(cb->auth);
	rpc_principal_put(cb->me);
	free(cb);
}

size_t nfs4_callback_cost(const struct nfs4_compound *c)
{
	const size_t auth = c->req->call.cred.principal ? RPC_CB_AUTH_COST : 0;

	return 2 * sizeof(struct nfs4_callback) + rpc_backchannel_size() + auth;
}

struct nfs4_callback *nfs4_callback_replace(struct nfs4_client *cl)
{
	struct nfs4_callback *old;

	pthread_mutex_lock(&cl->lock);
	old = cl->callback;
	cl->callback = cl->update;
	cl->update = NULL;
	pthread_mutex_unlock(&cl->lock);
	return old;
}

/* The client's callback, if calls may be made. Under the client's lock. */
static struct nfs4_callback *callable(const struct nfs4_client *cl)
{
	struct nfs4_callback *cb = cl->callback;
	const enum nfs4_client_status status = nfs4_client_status(cl);

	if (!cb || cb->state == NFS4_CB_UNBOUND || cb->state == NFS4_CB_DOWN ||
	    status == NFS4_CLIENT_EXPIRED || status == NFS4_CLIENT_GONE)
		return NULL;
	return cb;
}

static bool cb_conn_is_open(const struct nfs4_callback *cb)
{
	return cb->conn && rpc_backchannel_is_open(cb->conn);
}

/* Fills out if there is an open connection. Under the client's lock. */
static bool target(const struct nfs4_callback *cb, struct rpc_cb_auth *auth,
		   struct nfs4_cb_target *out)
{
	if (!cb_conn_is_open(cb))
		return false;
	out->auth = rpc_cb_auth_ref(auth ? auth : cb->auth);
	out->conn = cb->conn;
	rpc_backchannel_ref(out->conn);
	out->program = cb->program;
	out->ident = cb->ident;
	return true;
}

/* Installs a connection that was made for that route, unless another thread has been faster. Takes
 * its reference. */
static int cb_conn_install(struct nfs4_client *cl, const struct rpc_route *route,
			   struct rpc_cb_auth *auth, struct rpc_backchannel *made,
			   struct nfs4_cb_target *out)
{
	struct nfs4_callback *cb;
	int rc = -ENOTCONN;

	pthread_mutex_lock(&cl->lock);
	cb = callable(cl);
	if (cb && rpc_route_equal(&cb->route, route)) {
		if (!cb_conn_is_open(cb)) {
			rpc_backchannel_put(cb->conn);
			cb->conn = made;
			made = NULL;
		}
		rc = target(cb, auth, out) ? 0 : -ENOTCONN;
	}
	pthread_mutex_unlock(&cl->lock);
	out->fresh = true;
	cb_conn_hang_up(made);
	return rc;
}

int nfs4_cb_conn_get(struct nfs4_client *cl, struct rpc_cb_auth *auth, struct nfs4_cb_target *out)
{
	const struct rpc_dialer *dialer = &cl->srv->cfg.dialer;
	struct rpc_backchannel *made = NULL;
	struct nfs4_callback *cb;
	struct rpc_route route;
	bool found = false;
	int rc = 0;

	*out = (struct nfs4_cb_target){ 0 };
	pthread_mutex_lock(&cl->lock);
	cb = callable(cl);
	if (!cb)
		rc = -ENOTCONN;
	else if (cb->me && !cb->auth && !auth)
		rc = -ENOKEY;
	if (rc == 0) {
		found = target(cb, auth, out);
		route = cb->route;
	}
	pthread_mutex_unlock(&cl->lock);
	if (rc != 0 || found)
		return rc;
	rc = dialer->dial(dialer->ctx, &route, &made);
	return rc != 0 ? rc : cb_conn_install(cl, &route, auth, made, out);
}

void nfs4_cb_conn_is(struct nfs4_client *cl, const struct rpc_backchannel *conn,
		     enum nfs4_cb_state state)
{
	struct rpc_backchannel *lost = NULL;
	struct rpc_cb_auth *auth = NULL;
	struct nfs4_callback *cb;

	pthread_mutex_lock(&cl->lock);
	cb = callable(cl);
	if (cb && (conn ? cb->conn == conn : !cb_conn_is_open(cb))) {
		if (state != NFS4_CB_UNTRIED || cb->state == NFS4_CB_TRYING)
			cb->state = state;
		if (state == NFS4_CB_DOWN) {
			lost = cb->conn;
			cb->conn = NULL;
			auth = cb->auth;
			cb->auth = NULL;
		}
	}
	pthread_mutex_unlock(&cl->lock);
	cb_conn_hang_up(lost);
	rpc_cb_auth_put(auth);
}

void nfs4_cb_conn_auth(struct nfs4_client *cl, const struct rpc_backchannel *conn,
		       struct rpc_cb_auth *auth)
{
	struct rpc_cb_auth *old = NULL;
	struct nfs4_callback *cb;

	pthread_mutex_lock(&cl->lock);
	cb = callable(cl);
	if (cb && cb->conn == conn && cb->me) {
		old = cb->auth;
		cb->auth = rpc_cb_auth_ref(auth);
	}
	pthread_mutex_unlock(&cl->lock);
	rpc_cb_auth_put(old);
}

void nfs4_cb_conn_no_auth(struct nfs4_client *cl)
{
	pthread_mutex_lock(&cl->lock);
	if (cl->callback && cl->callback->state == NFS4_CB_TRYING)
		cl->callback->state = NFS4_CB_DOWN;
	pthread_mutex_unlock(&cl->lock);
}

bool nfs4_cb_conn_initiation(struct nfs4_client *cl, struct rpc_cb_initiation *out)
{
	struct sockaddr_storage to = { 0 };
	const struct nfs4_callback *cb;
	bool needed;

	pthread_mutex_lock(&cl->lock);
	cb = callable(cl);
	needed = cb && cb->me;
	if (needed) {
		out->from = rpc_principal_ref(cb->me);
		out->to = rpc_principal_ref(cl->principal.name);
		out->service = cb->service;
		memcpy(&to, &cb->route.to, sizeof(cb->route.to));
		rn_host_of((const struct sockaddr *)&to, &out->host);
	}
	pthread_mutex_unlock(&cl->lock);
	return needed;
}

/* True if the context ends within two leases, so that a new one is made while the old one works. */
static bool is_ending(const struct nfs4_client *cl, const struct nfs4_callback *cb)
{
	return cb->state == NFS4_CB_UP && cb->auth &&
	       cb->auth->ops->seconds(cb->auth) < 2 * (uint64_t)cl->srv->cfg.lease_seconds;
}

bool nfs4_cb_conn_begin_probe(struct nfs4_client *cl)
{
	const uint64_t now = nfs4_clients_now(cl->srv);
	struct nfs4_callback *cb;
	bool due;

	pthread_mutex_lock(&cl->lock);
	cb = cl->callback;
	due = cb && (cb->state == NFS4_CB_UNTRIED ||
		     ((cb->state == NFS4_CB_DOWN || is_ending(cl, cb)) &&
		      now >= cb->tried + cl->srv->cfg.lease_seconds / RETRY_PART));
	if (due) {
		cb->state = NFS4_CB_TRYING;
		cb->tried = now;
	}
	pthread_mutex_unlock(&cl->lock);
	return due;
}

bool nfs4_cb_conn_is_down(struct nfs4_client *cl)
{
	bool down;

	pthread_mutex_lock(&cl->lock);
	down = !cl->callback || cl->callback->state == NFS4_CB_UNBOUND ||
	       cl->callback->state == NFS4_CB_DOWN;
	pthread_mutex_unlock(&cl->lock);
	return down;
}

void nfs4_cb_conn_drop(struct nfs4_client *cl)
{
	struct rpc_backchannel *conn = NULL;
	struct rpc_cb_auth *auth = NULL;

	pthread_mutex_lock(&cl->lock);
	if (cl->callback) {
		conn = cl->callback->conn;
		cl->callback->conn = NULL;
		auth = cl->callback->auth;
		cl->callback->auth = NULL;
		cl->callback->state = NFS4_CB_UNBOUND;
	}
	pthread_mutex_unlock(&cl->lock);
	cb_conn_hang_up(conn);
	rpc_cb_auth_put(auth);
}

static size_t auth_cost(const struct nfs4_cb_security *s)
{
	return s->auth ? s->auth->cost : 0;
}

bool nfs4_cb_path_new(struct nfs4_session *s, uint32_t minor, uint32_t program,
		      const struct nfs4_cb_security *security)
{
	struct nfs4_host *host = s->client->host;
	const size_t cost = sizeof(struct nfs4_cb_path) + auth_cost(security);
	struct nfs4_cb_path *p;

	if (!nfs4_host_take(host, cost, NFS4_TO_BEGIN))
		return false;
	p = calloc(1, sizeof(*p));
	if (!p) {
		nfs4_host_give(host, cost);
		return false;
	}
	p->minor = minor;
	p->program = program;
	p->security = *security;
	p->security.noffers = 0; /* their handles are the arguments' */
	rpc_cb_auth_ref(p->security.auth);
	p->nslots = (uint32_t)rn_min(s->back.max_requests, NFS4_CB_SLOTS);
	for (uint32_t i = 0; i < NFS4_CB_SLOTS; i++)
		p->slot[i].seqid = 1;
	TAILQ_INIT(&p->waiting);
	s->cb_path = p;
	s->cost += cost;
	return true;
}

static void cb_path_remove_conn(struct nfs4_session *s, uint32_t i)
{
	struct nfs4_cb_path *p = s->cb_path;

	rpc_backchannel_put(p->conn[i]);
	p->nconns--;
	for (; i < p->nconns; i++)
		p->conn[i] = p->conn[i + 1];
	s->cost -= rpc_backchannel_size();
	nfs4_host_give(s->client->host, rpc_backchannel_size());
}

void nfs4_cb_path_free(struct nfs4_session *s)
{
	if (!s->cb_path)
		return;
	while (s->cb_path->nconns > 0)
		cb_path_remove_conn(s, 0);
	nfs4_cb_security_clear(&s->cb_path->security);
	free(s->cb_path);
}

bool nfs4_cb_is_connected(struct nfs4_session *s)
{
	struct nfs4_cb_path *p = s->cb_path;

	for (uint32_t i = p->nconns; i > 0; i--) {
		if (!rpc_backchannel_is_open(p->conn[i - 1]))
			cb_path_remove_conn(s, i - 1);
	}
	return p->nconns > 0;
}

void nfs4_cb_unbind(struct nfs4_session *s, const struct rpc_backchannel *conn)
{
	struct nfs4_cb_path *p = s->cb_path;

	for (uint32_t i = p->nconns; i > 0; i--) {
		if (p->conn[i - 1] == conn)
			cb_path_remove_conn(s, i - 1);
	}
}

static bool cb_path_has_conn(const struct nfs4_cb_path *p, const struct rpc_conn *conn)
{
	for (uint32_t i = 0; i < p->nconns; i++) {
		if (rpc_backchannel_is_of(p->conn[i], conn))
			return true;
	}
	return false;
}

/* Adds a connection, and takes its reference over. False: no memory. */
static bool cb_path_add_conn(struct nfs4_session *s, struct rpc_backchannel *b)
{
	struct nfs4_cb_path *p = s->cb_path;

	if (!nfs4_host_take(s->client->host, rpc_backchannel_size(), NFS4_TO_BEGIN))
		return false;
	s->cost += rpc_backchannel_size();
	if (p->nconns == NFS4_CB_CONNS)
		cb_path_remove_conn(s, 0);
	p->conn[p->nconns++] = b;
	return true;
}

static bool cb_bind_locked(struct nfs4_session *s, struct rpc_conn *conn)
{
	struct rpc_backchannel *b = s->cb_path ? rpc_backchannel_get(conn) : NULL;
	struct nfs4_cb_path *p = s->cb_path;
	bool known, bound;

	if (!b)
		return false;
	nfs4_cb_is_connected(s);
	known = cb_path_has_conn(p, conn);
	bound = known || cb_path_add_conn(s, b);
	if (bound)
		atomic_store_explicit(&conn->session_client, s->client->clientid,
				      memory_order_relaxed);
	if (bound && (p->state == NFS4_CB_UNBOUND || p->state == NFS4_CB_DOWN))
		p->state = NFS4_CB_UNTRIED;
	if (known || !bound)
		rpc_backchannel_put(b);
	return bound;
}

bool nfs4_cb_bind(struct nfs4_session *s, struct rpc_conn *conn)
{
	pthread_mutex_lock(&s->lock);
	const bool bound = cb_bind_locked(s, conn);

	pthread_mutex_unlock(&s->lock);
	return bound;
}

void nfs4_cb_return(struct nfs4_session *s, struct rpc_conn *conn)
{
	struct nfs4_cb_path *p = s->cb_path;

	for (unsigned i = 0; p && i < NFS4_CB_CONNS; i++)
		if (p->returning[i] == conn->id) {
			p->returning[i] = 0;
			(void)cb_bind_locked(s, conn);
		}
}

bool nfs4_cb_is_bound(struct nfs4_session *s, const struct rpc_conn *conn)
{
	bool bound;

	if (!s->cb_path)
		return false;
	pthread_mutex_lock(&s->lock);
	bound = cb_path_has_conn(s->cb_path, conn);
	pthread_mutex_unlock(&s->lock);
	return bound;
}

void nfs4_cb_change(struct nfs4_session *s, uint32_t program,
		    const struct nfs4_cb_security *security)
{
	struct nfs4_cb_path *p = s->cb_path;
	struct rpc_cb_auth *old = NULL;
	size_t cost, before;

	if (!p)
		return;
	pthread_mutex_lock(&s->lock);
	p->program = program;
	cost = auth_cost(security);
	before = auth_cost(&p->security);
	if ((security->plain || security->auth) &&
	    (cost <= before || nfs4_host_take(s->client->host, cost - before, NFS4_TO_ANSWER))) {
		if (cost < before)
			nfs4_host_give(s->client->host, before - cost);
		s->cost += cost - before;
		old = p->security.auth;
		p->security = *security;
		p->security.noffers = 0;
		rpc_cb_auth_ref(p->security.auth);
		if (p->security.auth && p->state == NFS4_CB_DOWN)
			p->state = NFS4_CB_UNTRIED;
	}
	pthread_mutex_unlock(&s->lock);
	rpc_cb_auth_put(old);
}

static bool works(struct nfs4_session *s)
{
	const struct nfs4_cb_path *p = s->cb_path;

	if (p->security.auth && p->security.auth->ops->seconds(p->security.auth) == 0)
		return false;
	return !s->dead && !p->fault && p->state != NFS4_CB_UNBOUND && p->state != NFS4_CB_DOWN &&
	       nfs4_cb_is_connected(s);
}

bool nfs4_cb_works(struct nfs4_session *s)
{
	bool yes;

	if (!s->cb_path)
		return false;
	pthread_mutex_lock(&s->lock);
	yes = works(s);
	pthread_mutex_unlock(&s->lock);
	return yes;
}

/* The client is told a lease before the context ends, and again when it has ended. */
static uint32_t auth_flags(const struct nfs4_session *s)
{
	const struct rpc_cb_auth *auth = s->cb_path->security.auth;
	const uint64_t left = auth ? auth->ops->seconds(auth) : UINT64_MAX;

	if (left == 0)
		return SEQ4_STATUS_CB_GSS_CONTEXTS_EXPIRED;
	return left < s->client->srv->cfg.lease_seconds ? SEQ4_STATUS_CB_GSS_CONTEXTS_EXPIRING : 0;
}

uint32_t nfs4_cb_flags(struct nfs4_session *s)
{
	if (!s->cb_path || s->cb_path->state == NFS4_CB_UNBOUND)
		return 0;
	if (s->cb_path->fault)
		return SEQ4_STATUS_BACKCHANNEL_FAULT;
	return auth_flags(s) | (works(s) ? 0 : SEQ4_STATUS_CB_PATH_DOWN_SESSION);
}

bool nfs4_cb_begin_probe(struct nfs4_session *s)
{
	if (!s->cb_path || s->cb_path->state != NFS4_CB_UNTRIED || !works(s))
		return false;
	s->cb_path->state = NFS4_CB_TRYING;
	return true;
}

/* Ranks sessions by how likely a callback is to arrive; the highest is best. */
static int cb_path_rank(struct nfs4_session *s)
{
	int r = 0;

	if (!s->cb_path)
		return 0;
	pthread_mutex_lock(&s->lock);
	if (works(s))
		r = s->cb_path->state == NFS4_CB_UP ? 2 : 1;
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* A session that was just made comes last: the client may not know it yet, and would refuse the call. */
struct nfs4_session *nfs4_cb_session(struct nfs4_client *cl)
{
	struct nfs4_session *s, *best = NULL;
	int most = 0;

	pthread_mutex_lock(&cl->lock);
	LIST_FOREACH (s, &cl->session_list, of_client) {
		const int r = cb_path_rank(s);

		if (r > most) {
			most = r;
			best = s;
		}
	}
	if (best)
		nfs4_session_ref(best);
	pthread_mutex_unlock(&cl->lock);
	return best;
}

static bool cb_path_returns(struct nfs4_session *s)
{
	bool returns = false;

	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; s->cb_path && i < NFS4_CB_CONNS; i++)
		returns |= s->cb_path->returning[i] != 0;
	pthread_mutex_unlock(&s->lock);
	return returns;
}

bool nfs4_cb_returns(struct nfs4_client *cl)
{
	struct nfs4_session *s;
	bool returns = false;

	pthread_mutex_lock(&cl->lock);
	LIST_FOREACH (s, &cl->session_list, of_client)
		returns |= cb_path_returns(s);
	pthread_mutex_unlock(&cl->lock);
	return returns && !nfs4_cb_reaches(cl);
}

bool nfs4_cb_reaches(struct nfs4_client *cl)
{
	struct nfs4_session *s;
	bool yes;

	if (cl->sessions) {
		s = nfs4_cb_session(cl);
		yes = s != NULL;
		nfs4_session_put(s);
		return yes;
	}
	pthread_mutex_lock(&cl->lock);
	yes = cl->callback && cl->callback->state == NFS4_CB_UP;
	pthread_mutex_unlock(&cl->lock);
	return yes;
}

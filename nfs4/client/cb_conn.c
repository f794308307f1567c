/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/client/cb_conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4/client/client_address.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_private.h"
#include "rpc/address.h"
#include "rpc/backchannel.h"
#include "rpc/principal.h"
#include "rpc/program.h"
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
	nfs4_map_address(&c->req->conn->local, &out->from);
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

/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/client/cb_path.h"

#include <stdlib.h>

#include "lib/util.h"
#include "nfs4/client/cb_conn.h"
#include "nfs4/client/client_host.h"
#include "nfs4/client/session.h"
#include "nfs4/nfs4_private.h"
#include "rpc/request.h"

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

bool nfs4_cb_bind(struct nfs4_session *s, struct rpc_conn *conn)
{
	struct rpc_backchannel *b = s->cb_path ? rpc_backchannel_get(conn) : NULL;
	struct nfs4_cb_path *p = s->cb_path;
	bool known, bound;

	if (!b)
		return false;
	pthread_mutex_lock(&s->lock);
	nfs4_cb_is_connected(s);
	known = cb_path_has_conn(p, conn);
	bound = known || cb_path_add_conn(s, b);
	if (bound)
		atomic_store_explicit(&conn->session_client, s->client->clientid,
				      memory_order_relaxed);
	if (bound && (p->state == NFS4_CB_UNBOUND || p->state == NFS4_CB_DOWN))
		p->state = NFS4_CB_UNTRIED;
	pthread_mutex_unlock(&s->lock);
	if (known || !bound)
		rpc_backchannel_put(b);
	return bound;
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

/* How well callbacks are expected to arrive. */
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

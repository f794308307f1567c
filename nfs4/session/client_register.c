/* SPDX-License-Identifier: BSD-2-Clause */
/* Registration of an owner string, and callers that contest one. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "lib/log_ids.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/client_host.h"
#include "nfs4/client/client_table.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/recovery/grace.h"
#include "nfs4/session/session_private.h"
#include "nfs4/state/holdings.h"
#include "nfs4/told.h"
#include "rpc/address.h"
#include "rpc/principal.h"

/* Callers that ask for the owner string of another client, or of the same one at another address: who gets it, and when
 * (doc/design/nfs4-clients.md). */

/* Seconds between two log messages about refused callers. */
#define LOG_EVERY 60u

static bool contest_has_sessions(struct nfs4_client *cl)
{
	bool has;

	pthread_mutex_lock(&cl->lock);
	has = cl->nsessions > 0;
	pthread_mutex_unlock(&cl->lock);
	return has;
}

/* cl has, or asks for, the owner string of the client at holder. */
static void contest_log_refusal(struct nfs4_client *cl, const struct sockaddr_in6 *holder,
				const struct nfs4_compound *c)
{
	const uint64_t now = nfs4_clients_now(cl->srv);
	struct nfs4_clients *all = cl->srv->clients;
	char address[RPC_ADDRESS_TEXT], was[NFS4_UADDR_MAX], is[NFS4_UADDR_MAX];
	char owner[RN_LOG_TEXT];
	struct sockaddr_in6 addr = { 0 };
	char netid[NFS4_NETID_MAX];

	if (all->refusal_logged > 0 && now < all->refusal_logged + LOG_EVERY)
		return;
	all->refusal_logged = now;
	nfs4_peer_address(c, &addr, netid);
	nfs4_uaddr(&addr, is);
	rpc_address_text(&c->req->conn->peer, address);
	nfs4_uaddr(holder, was);
	rn_log_text(owner, sizeof(owner), cl->ownerid, cl->ownerid_len);
	const struct rn_log_event event = { .id = RN_ID_CLIENT_CONFLICT, .client = address };

	rn_log_event(
		cl->srv->cfg.log, RN_NOTICE, &event,
		"client %s may not register as \"%s\", the name of the client at %s: two machines "
		"have one name, or one takes the other's",
		is, owner, was);
}

/* The caller may be the same client with a new address. If so, the lease of the old one runs out.
 * If the old one renews after this call, it is another client. */
static int contest_refusal(struct nfs4_client *cl)
{
	const uint64_t now = nfs4_clients_now(cl->srv), lease = cl->srv->cfg.lease_seconds + 1;
	const uint64_t renewed = atomic_load(&cl->lease.due) - lease;
	struct nfs4_origin *o = &cl->origin;

	if (o->contested == 0 || now > o->contested + lease) {
		o->contested = now;
		return NFS4ERR_DELAY;
	}
	return renewed > o->contested ? NFS4ERR_CLID_INUSE : NFS4ERR_DELAY;
}

int nfs4_client_contest(struct nfs4_client *cl, const struct nfs4_compound *c)
{
	const bool principal = nfs4_may_manage(c, cl);
	const bool own = nfs4_origin_is(cl, c);

	if ((principal && own) || nfs4_client_status(cl) != NFS4_CLIENT_ACTIVE ||
	    nfs4_client_has_lapsed(cl))
		return NFS4_OK;
	/* Only the machine credential replaces what it protects, with state or without (RFC 8881 section 18.35.3). */
	if (!principal && cl->protect.machine) {
		contest_log_refusal(cl, &cl->addr, c);
		return NFS4ERR_CLID_INUSE;
	}
	if (!nfs4_client_has_state(cl) && (own || !contest_has_sessions(cl)))
		return NFS4_OK;
	contest_log_refusal(cl, &cl->addr, c);
	return principal ? contest_refusal(cl) : NFS4ERR_CLID_INUSE;
}

int nfs4_client_contest_record(struct nfs4_client *fresh, const struct nfs4_compound *c)
{
	struct sockaddr_in6 holder = { 0 };

	if (nfs4_record_may_register(fresh->srv, &fresh->record, holder.sin6_addr.s6_addr))
		return NFS4_OK;
	contest_log_refusal(fresh, &holder, c);
	return NFS4ERR_DELAY;
}

/* Registration of clients: made and added unconfirmed, then confirmed. */

/* Most unconfirmed clients. A proper client confirms after one round trip, so more of them are a
 * flood: those of the host with most are removed. */
#define UNCONFIRMED_MAX 4096u

struct nfs4_client *nfs4_client_new(struct nfs4_compound *c, const struct nfs4_client_init *init)
{
	struct nfs4_clients *all = c->server->clients;
	const size_t size =
		sizeof(struct nfs4_client) + sizeof(struct nfs4_holdings) + init->ownerid_len;
	const size_t cost = size + (init->sessions ? 0 : nfs4_callback_cost(c));
	struct sockaddr_in6 addr = { 0 };
	char netid[NFS4_NETID_MAX];
	struct nfs4_client *cl;
	struct nfs4_host *host;

	nfs4_peer_address(c, &addr, netid);
	host = nfs4_host_get(all->hosts, &addr);
	if (!host || !nfs4_clients_take(all, host, cost, NFS4_TO_BEGIN)) {
		nfs4_host_put(host);
		return NULL;
	}
	cl = calloc(1, size);
	if (!cl) {
		nfs4_host_give(host, cost);
		nfs4_host_put(host);
		return NULL;
	}
	cl->host = host;
	cl->srv = c->server;
	cl->sessions = init->sessions;
	memcpy(cl->verifier, init->verifier, sizeof(cl->verifier));
	cl->principal = nfs4_principal_of(c);
	rpc_principal_ref(cl->principal.name);
	nfs4_origin_init(cl, c);
	cl->holdings = (struct nfs4_holdings *)(cl + 1);
	nfs4_holdings_init(cl->holdings);
	cl->ownerid = (uint8_t *)(cl->holdings + 1);
	cl->ownerid_len = init->ownerid_len;
	memcpy(cl->ownerid, init->ownerid, init->ownerid_len);
	cl->cost = cost;
	atomic_init(&cl->refs, 1);
	atomic_init(&cl->status, NFS4_CLIENT_UNCONFIRMED);
	pthread_mutex_init(&cl->lock, NULL);
	nfs4_timer_init(&cl->lease);
	nfs4_record_init(&cl->record, cl->ownerid, cl->ownerid_len, cl->verifier, cl->sessions);
	nfs4_origin_record(cl, c);
	LIST_INIT(&cl->session_list);
	cl->addr = addr;
	memcpy(cl->netid, netid, sizeof(cl->netid));
	return cl;
}

struct nfs4_client *nfs4_client_enter(struct nfs4_clients *all, struct nfs4_client *cl)
{
	struct nfs4_client *oldest = NULL;

	if (all->nunconfirmed >= UNCONFIRMED_MAX)
		oldest = nfs4_client_overflow(all);
	nfs4_client_insert(all, cl);
	return oldest;
}

int nfs4_client_confirm(struct nfs4_compound *c, struct nfs4_client *cl,
			struct nfs4_client_queue *old)
{
	struct nfs4_clients *all = c->server->clients;
	const struct nfs4_client_init who = {
		.ownerid = cl->ownerid,
		.ownerid_len = cl->ownerid_len,
		.sessions = cl->sessions,
	};
	struct nfs4_client *other = nfs4_client_find(all, &who), *next;
	int status = other ? nfs4_client_contest(other, c) : NFS4_OK;

	TAILQ_INIT(old);
	if (status != NFS4_OK)
		return status;
	cl->was_confirmed = true;
	nfs4_client_become(all, cl, NFS4_CLIENT_ACTIVE);
	for (other = LIST_FIRST(nfs4_owner_bucket(all, cl->ownerid, cl->ownerid_len)); other;
	     other = next) {
		next = LIST_NEXT(other, by_owner);
		if (other == cl || !nfs4_client_owner_is(other, &who))
			continue;
		nfs4_client_detach(all, other);
		TAILQ_INSERT_TAIL(old, other, aging);
	}
	return NFS4_OK;
}

void nfs4_client_log_confirmed(struct nfs4_compound *c, const struct nfs4_client *cl)
{
	char owner[RN_LOG_TEXT];
	struct nfs4_told t;
	const struct rn_log_event event = {
		.id = RN_ID_CLIENT_REGISTERED,
		.client = t.client,
		.operation = c->op ? c->op->name : NULL,
	};

	if (!nfs4_told_begin(c, RN_INFO, &t))
		return;
	rn_log_text(owner, sizeof(owner), cl->ownerid, cl->ownerid_len);
	rn_log_event(c->server->cfg.log, RN_INFO, &event,
		     "%s: client 0x%016" PRIx64 " (\"%s\") has registered, by %s over %s", t.client,
		     cl->clientid, owner, cl->sessions ? "NFSv4.1 or 4.2" : "NFSv4.0",
		     c->req->conn->ops->netid);
	nfs4_told_end(c, &t);
}

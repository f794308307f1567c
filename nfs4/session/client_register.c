/* SPDX-License-Identifier: BSD-2-Clause */
/* Registration of clients: made and added unconfirmed, then confirmed. */
#include "nfs4/session/client_register.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log_ids.h"
#include "lib/log.h"
#include "nfs4/client/client_address.h"
#include "nfs4/client/cb_conn.h"
#include "nfs4/session/contest.h"
#include "nfs4/session/make_room.h"
#include "nfs4/client/origin.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/told.h"
#include "nfs4/state/holdings.h"
#include "rpc/principal.h"

/* Unconfirmed clients at most. A proper client confirms after one round trip, so more of them are a
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

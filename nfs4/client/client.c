/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/client/client.h"

#include <stdlib.h>
#include <string.h>

#include "nfs4/client/table.h"
#include "nfs4/compound.h"

struct nfs4_client *nfs4_client_new(struct nfs4_compound *c, const struct nfs4_client_init *init)
{
	struct nfs4_clients *all = c->server->clients;
	const struct nfs4_holdings_hooks *hooks = c->server->holdings_hooks;
	const size_t cost = sizeof(struct nfs4_client) + hooks->size + init->ownerid_len;
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
	cl = calloc(1, cost);
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
	nfs4_origin_init(cl, c);
	cl->holdings = (struct nfs4_holdings *)(cl + 1);
	hooks->init(cl->holdings);
	cl->ownerid = (uint8_t *)cl->holdings + hooks->size;
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
	free(cl->cs_reply);
	free(cl->callback);
	free(cl->update);
	pthread_mutex_destroy(&cl->lock);
	free(cl);
	nfs4_host_give(host, cost);
	nfs4_host_put(host);
}

bool nfs4_client_has_state(struct nfs4_client *cl)
{
	bool has;

	pthread_mutex_lock(&cl->lock);
	has = cl->srv->holdings_hooks->busy(cl->holdings);
	pthread_mutex_unlock(&cl->lock);
	return has;
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

static void drop_sessions(struct nfs4_client *cl)
{
	struct nfs4_session *s;

	do {
		pthread_mutex_lock(&cl->lock);
		s = LIST_FIRST(&cl->session_list);
		if (s)
			nfs4_session_leave(s);
		pthread_mutex_unlock(&cl->lock);
		nfs4_session_put(s);
	} while (s);
}

void nfs4_client_destroy(struct nfs4_client *cl)
{
	if (!cl)
		return;
	drop_sessions(cl);
	cl->srv->holdings_hooks->drop(cl);
	nfs4_client_put(cl);
}

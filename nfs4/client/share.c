/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who makes room where there is none left: whoever has most. A client that has nothing open and no
 * request under way loses its client id and sessions, which it gets anew when it comes back; what
 * is open or locked is never taken from one whose lease is good.
 */
#include "nfs4/client/table.h"

/* Clients of a host that one look goes through. */
#define LOOK_MOST 64u

static bool is_quiet(struct nfs4_client *cl)
{
	const enum nfs4_client_status status = nfs4_client_status(cl);
	struct nfs4_session *s;
	bool quiet;

	if (status != NFS4_CLIENT_ACTIVE && status != NFS4_CLIENT_UNCONFIRMED)
		return false;
	if (atomic_load(&cl->record.ended) != atomic_load(&cl->record.begun))
		return false;
	pthread_mutex_lock(&cl->lock);
	quiet = !cl->creating && !cl->srv->holdings_hooks->busy(cl->holdings);
	LIST_FOREACH (s, &cl->session_list, of_client)
		quiet = quiet && !nfs4_session_busy(s, NULL);
	pthread_mutex_unlock(&cl->lock);
	return quiet;
}

/* Out of the table, with the table's reference; NULL: none of those looked at. */
static struct nfs4_client *take_quiet(struct nfs4_clients *all, struct nfs4_host *h)
{
	struct nfs4_host_clients *queue = nfs4_host_clients(h);
	struct nfs4_client *cl = NULL;

	pthread_mutex_lock(&all->lock);
	for (unsigned i = 0; i < LOOK_MOST; i++) {
		cl = TAILQ_FIRST(queue);
		if (!cl || is_quiet(cl))
			break;
		TAILQ_REMOVE(queue, cl, of_host);
		TAILQ_INSERT_TAIL(queue, cl, of_host);
		cl = NULL;
	}
	if (cl)
		nfs4_client_detach(all, cl);
	pthread_mutex_unlock(&all->lock);
	return cl;
}

bool nfs4_clients_shed(struct nfs4_clients *all, enum nfs4_measure what, size_t mine)
{
	struct nfs4_host *h = nfs4_hosts_greediest(all->hosts, what, mine);
	struct nfs4_client *cl;

	if (!h)
		return false;
	cl = take_quiet(all, h);
	nfs4_host_put(h);
	if (!cl)
		return false;
	if (cl->was_confirmed)
		nfs4_record_forget(all->srv, &cl->record);
	nfs4_client_destroy(cl);
	return true;
}

struct nfs4_client *nfs4_client_overflow(struct nfs4_clients *all)
{
	struct nfs4_host *h = nfs4_hosts_greediest(all->hosts, NFS4_UNCONFIRMED, 0);
	struct nfs4_client *cl;

	TAILQ_FOREACH (cl, &all->unconfirmed, aging) {
		if (cl->host == h)
			break;
	}
	nfs4_host_put(h);
	if (cl)
		nfs4_client_detach(all, cl);
	return cl;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client's status, with its queue or timer for that status. A filed timer holds a reference of
 * the client, which the function that removes the timer puts: nfs4_client_become() or
 * lease_fire().
 */
#include "nfs4/client/client_table.h"
#include "nfs4/client/client_host.h"
#include "nfs4/client/nfs4_client.h"

uint64_t nfs4_clients_now(const struct nfs4_server *srv)
{
	return nfs4_now() + atomic_load_explicit(&srv->clients->skipped, memory_order_relaxed);
}

void nfs4_clients_skip_time(struct nfs4_server *srv, uint64_t seconds)
{
	atomic_fetch_add(&srv->clients->skipped, seconds);
}

/* One second is added because the time is rounded down. */
uint64_t nfs4_client_lease_end(const struct nfs4_client *cl)
{
	return nfs4_clients_now(cl->srv) + cl->srv->cfg.lease_seconds + 1;
}

static struct nfs4_client_queue *
nfs4_client_status_queue(struct nfs4_clients *all, enum nfs4_client_status status, uint32_t **count)
{
	switch (status) {
	case NFS4_CLIENT_UNCONFIRMED:
		*count = &all->nunconfirmed;
		return &all->unconfirmed;
	case NFS4_CLIENT_COURTESY:
		*count = &all->ncourtesy;
		return &all->courtesy;
	case NFS4_CLIENT_EXPIRED:
		*count = &all->nexpired;
		return &all->expired;
	case NFS4_CLIENT_ACTIVE:
	case NFS4_CLIENT_GONE:
		break;
	}
	return NULL;
}

void nfs4_client_become(struct nfs4_clients *all, struct nfs4_client *cl,
			enum nfs4_client_status status)
{
	enum nfs4_client_status was = nfs4_client_status(cl);
	struct nfs4_client_queue *queue;
	uint32_t *count;

	if (was == NFS4_CLIENT_UNCONFIRMED)
		nfs4_host_count(cl->host, NFS4_UNCONFIRMED, -1);
	queue = nfs4_client_status_queue(all, was, &count);
	if (queue) {
		TAILQ_REMOVE(queue, cl, aging);
		--*count;
	} else if (was == NFS4_CLIENT_ACTIVE) {
		all->nactive--;
		if (nfs4_wheel_cancel(&all->wheel, &cl->lease))
			nfs4_client_put(cl);
	}
	atomic_store(&cl->status, status); /* before lapse() in lease.c reads the time again */
	cl->since = nfs4_clients_now(all->srv);
	queue = nfs4_client_status_queue(all, status, &count);
	if (queue) {
		TAILQ_INSERT_TAIL(queue, cl, aging);
		++*count;
	} else if (status == NFS4_CLIENT_ACTIVE) {
		all->nactive++;
		nfs4_client_ref(cl);
		nfs4_wheel_add(&all->wheel, &cl->lease, nfs4_client_lease_end(cl));
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/session/registry.h"

#include <errno.h>
#include <stdlib.h>

#include "nfs4/client/client_table.h"
#include "nfs4/session/forget.h"
#include "nfs4/client/client_host.h"
#include "nfs4/client/client_lease.h"

static void init_part(struct id_part *p)
{
	pthread_mutex_init(&p->lock, NULL);
	for (unsigned i = 0; i < ID_BUCKETS; i++) {
		LIST_INIT(&p->clients[i]);
		LIST_INIT(&p->sessions[i]);
	}
}

int nfs4_clients_new(struct nfs4_server *srv)
{
	struct nfs4_clients *all = calloc(1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	all->hosts = nfs4_hosts_new(srv->cfg.budget);
	if (!all->hosts) {
		free(all);
		return -ENOMEM;
	}
	all->srv = srv;
	pthread_mutex_init(&all->lock, NULL);
	nfs4_wheel_init(&all->wheel, nfs4_now());
	crypto_shorthash_keygen(all->id_key);
	TAILQ_INIT(&all->unconfirmed);
	TAILQ_INIT(&all->courtesy);
	TAILQ_INIT(&all->expired);
	for (unsigned i = 0; i < OWNER_BUCKETS; i++)
		LIST_INIT(&all->by_owner[i]);
	for (unsigned i = 0; i < ID_PARTS; i++)
		init_part(&all->part[i]);
	nfs4_server_id(all);
	srv->clients = all;
	return 0;
}

static void free_all_of(struct nfs4_clients *all, struct nfs4_client_list *list)
{
	struct nfs4_client *cl;

	while ((cl = LIST_FIRST(list)) != NULL) {
		if (nfs4_client_has_lapsed(cl))
			nfs4_record_lapsed(all->srv, &cl->record);
		nfs4_client_detach(all, cl);
		nfs4_client_destroy(cl);
	}
}

void nfs4_clients_free(struct nfs4_clients *all)
{
	if (!all)
		return;
	for (unsigned i = 0; i < OWNER_BUCKETS; i++)
		free_all_of(all, &all->by_owner[i]);
	nfs4_wheel_fini(&all->wheel);
	for (unsigned i = 0; i < ID_PARTS; i++)
		pthread_mutex_destroy(&all->part[i].lock);
	pthread_mutex_destroy(&all->lock);
	nfs4_hosts_free(all->hosts);
	free(all);
}

void nfs4_clients_held(struct nfs4_clients *all, struct nfs4_held *out)
{
	pthread_mutex_lock(&all->lock);
	out->clients = (uint64_t)all->nactive + all->ncourtesy + all->nexpired;
	out->courtesy_clients = all->ncourtesy;
	pthread_mutex_unlock(&all->lock);
	out->sessions = atomic_load_explicit(&all->nsessions, memory_order_relaxed);
	out->slots = atomic_load_explicit(&all->nslots, memory_order_relaxed);
	out->cached_replies = atomic_load_explicit(&all->ncached, memory_order_relaxed);
}

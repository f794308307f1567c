/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4/client/table.h"
#include "nfs4/compound.h"
#include "nfs4/hash.h"

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

static struct nfs4_client_list *owner_bucket(struct nfs4_clients *all, const uint8_t *ownerid,
					     uint32_t len)
{
	uint64_t h;

	crypto_shorthash((uint8_t *)&h, ownerid, len, all->srv->hash_key);
	return &all->by_owner[h % OWNER_BUCKETS];
}

uint64_t nfs4_client_hash(const struct nfs4_client *cl, uint64_t what, const uint8_t *name,
			  uint32_t len)
{
	uint64_t h;

	crypto_shorthash((uint8_t *)&h, name, len, cl->srv->hash_key);
	return nfs4_mix(h ^ nfs4_mix(what));
}

static bool owner_is(const struct nfs4_client *cl, const struct nfs4_client_init *who)
{
	return cl->sessions == who->sessions && cl->ownerid_len == who->ownerid_len &&
	       memcmp(cl->ownerid, who->ownerid, who->ownerid_len) == 0;
}

struct nfs4_client *nfs4_client_find(struct nfs4_clients *all, const struct nfs4_client_init *who)
{
	struct nfs4_client *cl;

	LIST_FOREACH (cl, owner_bucket(all, who->ownerid, who->ownerid_len), by_owner) {
		enum nfs4_client_status status = nfs4_client_status(cl);

		if (status != NFS4_CLIENT_EXPIRED && status != NFS4_CLIENT_UNCONFIRMED &&
		    owner_is(cl, who))
			return cl;
	}
	return NULL;
}

struct nfs4_client *nfs4_client_waiting(struct nfs4_clients *all,
					const struct nfs4_client_init *who,
					const struct nfs4_host *host)
{
	struct nfs4_client *cl;

	LIST_FOREACH (cl, owner_bucket(all, who->ownerid, who->ownerid_len), by_owner) {
		if (nfs4_client_status(cl) == NFS4_CLIENT_UNCONFIRMED && cl->host == host &&
		    owner_is(cl, who))
			return cl;
	}
	return NULL;
}

static struct id_part *part_of(struct nfs4_clients *all, uint32_t number)
{
	return &all->part[number % ID_PARTS];
}

static struct nfs4_client_list *id_bucket(struct nfs4_clients *all, uint32_t number)
{
	return &part_of(all, number)->clients[number / ID_PARTS % ID_BUCKETS];
}

struct nfs4_client *nfs4_client_by_number(struct nfs4_server *srv, uint32_t number)
{
	struct nfs4_clients *all = srv->clients;
	struct id_part *part = part_of(all, number);
	struct nfs4_client *cl;

	pthread_mutex_lock(&part->lock);
	LIST_FOREACH (cl, id_bucket(all, number), by_id) {
		if (cl->number == number)
			break;
	}
	if (cl)
		nfs4_client_ref(cl);
	pthread_mutex_unlock(&part->lock);
	return cl;
}

struct nfs4_client *nfs4_client_get(struct nfs4_clients *all, uint64_t clientid)
{
	const uint32_t number = (uint32_t)clientid;

	/* What was made by another run is none, either. */
	if (nfs4_make_clientid(all, number) != clientid)
		return NULL;
	return nfs4_client_by_number(all->srv, number);
}

/* After 2^32 clients numbers come again, but none that is in use. */
static uint32_t free_number(struct nfs4_clients *all)
{
	struct nfs4_client *used;
	uint32_t number;

	do {
		number = nfs4_next_number(all);
		used = nfs4_client_by_number(all->srv, number);
		nfs4_client_put(used);
	} while (used || number == 0);
	return number;
}

struct nfs4_client *nfs4_client_enter(struct nfs4_clients *all, struct nfs4_client *cl)
{
	struct nfs4_client *oldest = NULL;
	struct id_part *part;

	if (all->nunconfirmed >= UNCONFIRMED_MAX)
		oldest = nfs4_client_overflow(all);
	nfs4_host_count(cl->host, NFS4_UNCONFIRMED, 1);
	cl->number = free_number(all);
	cl->clientid = nfs4_make_clientid(all, cl->number);
	cl->since = nfs4_clients_now(all->srv);
	TAILQ_INSERT_TAIL(&all->unconfirmed, cl, aging);
	all->nunconfirmed++;
	TAILQ_INSERT_TAIL(nfs4_host_clients(cl->host), cl, of_host);
	LIST_INSERT_HEAD(owner_bucket(all, cl->ownerid, cl->ownerid_len), cl, by_owner);
	part = part_of(all, cl->number);
	pthread_mutex_lock(&part->lock);
	LIST_INSERT_HEAD(id_bucket(all, cl->number), cl, by_id);
	pthread_mutex_unlock(&part->lock);
	return oldest;
}

void nfs4_client_detach(struct nfs4_clients *all, struct nfs4_client *cl)
{
	struct id_part *part = part_of(all, cl->number);

	nfs4_client_become(all, cl, NFS4_CLIENT_GONE);
	LIST_REMOVE(cl, by_owner);
	TAILQ_REMOVE(nfs4_host_clients(cl->host), cl, of_host);
	pthread_mutex_lock(&part->lock);
	LIST_REMOVE(cl, by_id);
	pthread_mutex_unlock(&part->lock);
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
	for (other = LIST_FIRST(owner_bucket(all, cl->ownerid, cl->ownerid_len)); other;
	     other = next) {
		next = LIST_NEXT(other, by_owner);
		if (other == cl || !owner_is(other, &who))
			continue;
		nfs4_client_detach(all, other);
		TAILQ_INSERT_TAIL(old, other, aging);
	}
	return NFS4_OK;
}

void nfs4_clients_forget(struct nfs4_server *srv, struct nfs4_client_queue *old)
{
	struct nfs4_client *cl;

	while ((cl = TAILQ_FIRST(old)) != NULL) {
		TAILQ_REMOVE(old, cl, aging);
		/* An unconfirmed one has no record; that of its owner is another client's. */
		if (cl->was_confirmed)
			nfs4_record_forget(srv, &cl->record);
		nfs4_client_destroy(cl);
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of clients: by owner string, and by number. */
#include "nfs4/client/client_table.h"

#include <string.h>

#include "nfs4/client/client_host.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/hash.h"

struct nfs4_client_list *nfs4_owner_bucket(struct nfs4_clients *all, const uint8_t *ownerid,
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

bool nfs4_client_owner_is(const struct nfs4_client *cl, const struct nfs4_client_init *who)
{
	return cl->sessions == who->sessions && cl->ownerid_len == who->ownerid_len &&
	       memcmp(cl->ownerid, who->ownerid, who->ownerid_len) == 0;
}

struct nfs4_client *nfs4_client_find(struct nfs4_clients *all, const struct nfs4_client_init *who)
{
	struct nfs4_client *cl;

	LIST_FOREACH (cl, nfs4_owner_bucket(all, who->ownerid, who->ownerid_len), by_owner) {
		enum nfs4_client_status status = nfs4_client_status(cl);

		if (status != NFS4_CLIENT_EXPIRED && status != NFS4_CLIENT_UNCONFIRMED &&
		    nfs4_client_owner_is(cl, who))
			return cl;
	}
	return NULL;
}

struct nfs4_client *nfs4_client_waiting(struct nfs4_clients *all,
					const struct nfs4_client_init *who,
					const struct nfs4_host *host)
{
	struct nfs4_client *cl;

	LIST_FOREACH (cl, nfs4_owner_bucket(all, who->ownerid, who->ownerid_len), by_owner) {
		if (nfs4_client_status(cl) == NFS4_CLIENT_UNCONFIRMED && cl->host == host &&
		    nfs4_client_owner_is(cl, who))
			return cl;
	}
	return NULL;
}

static struct id_part *nfs4_client_part_of(struct nfs4_clients *all, uint32_t number)
{
	return &all->part[number % ID_PARTS];
}

static struct nfs4_client_list *id_bucket(struct nfs4_clients *all, uint32_t number)
{
	return &nfs4_client_part_of(all, number)->clients[number / ID_PARTS % ID_BUCKETS];
}

struct nfs4_client *nfs4_client_by_number(struct nfs4_server *srv, uint32_t number)
{
	struct nfs4_clients *all = srv->clients;
	struct id_part *part = nfs4_client_part_of(all, number);
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

	/* An id of another run is unknown, too. */
	if (nfs4_make_clientid(all, number) != clientid)
		return NULL;
	return nfs4_client_by_number(all->srv, number);
}

/* Numbers recur after 2^32 clients; those in use are skipped. */
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

void nfs4_client_insert(struct nfs4_clients *all, struct nfs4_client *cl)
{
	struct id_part *part;

	nfs4_host_count(cl->host, NFS4_UNCONFIRMED, 1);
	cl->number = free_number(all);
	cl->clientid = nfs4_make_clientid(all, cl->number);
	cl->since = nfs4_clients_now(all->srv);
	TAILQ_INSERT_TAIL(&all->unconfirmed, cl, aging);
	all->nunconfirmed++;
	TAILQ_INSERT_TAIL(nfs4_host_clients(cl->host), cl, of_host);
	LIST_INSERT_HEAD(nfs4_owner_bucket(all, cl->ownerid, cl->ownerid_len), cl, by_owner);
	part = nfs4_client_part_of(all, cl->number);
	pthread_mutex_lock(&part->lock);
	LIST_INSERT_HEAD(id_bucket(all, cl->number), cl, by_id);
	pthread_mutex_unlock(&part->lock);
}

void nfs4_client_detach(struct nfs4_clients *all, struct nfs4_client *cl)
{
	struct id_part *part = nfs4_client_part_of(all, cl->number);

	nfs4_client_become(all, cl, NFS4_CLIENT_GONE);
	LIST_REMOVE(cl, by_owner);
	TAILQ_REMOVE(nfs4_host_clients(cl->host), cl, of_host);
	pthread_mutex_lock(&part->lock);
	LIST_REMOVE(cl, by_id);
	pthread_mutex_unlock(&part->lock);
}

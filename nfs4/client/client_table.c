/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of clients, and the numbers and tags by which they are found. */
#include "nfs4/client/client_table.h"

#include <string.h>

#include "nfs4/client/client_host.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/nfs4_private.h"

/*
 * Numbers and tags that cannot be guessed. With AUTH_SYS a caller that names a client id, session
 * id or stateid acts for its client, so each of them is worth as much as a password.
 *
 * A client's number is a counter behind a permutation with a random key for each run. It finds the
 * client without a search, is unique within a run, and reveals nothing about the numbers of other
 * clients. Client ids and stateids also carry a tag of 32 bits, a keyed hash of what they name. So
 * a guess must hit 64 bits, and no answer tells that half of them were right.
 */

#define ROUNDS 4u

/* Kind of the hashed values, so that a tag of one kind is not valid for another. */
enum nfs4_tag_kind { TAG_ROUND, TAG_CLIENT, TAG_STATEID };

static uint64_t keyed(const struct nfs4_clients *all, uint32_t kind, uint32_t a, uint32_t b)
{
	const uint32_t in[4] = { kind, a, b, 0 };
	uint64_t h;

	crypto_shorthash((uint8_t *)&h, (const uint8_t *)in, sizeof(in), all->id_key);
	return h;
}

/* A Feistel network over two halves of 16 bits. */
static uint32_t permute(const struct nfs4_clients *all, uint32_t v)
{
	uint32_t left = v >> 16, right = v & 0xffffu;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		const uint32_t f = (uint32_t)keyed(all, TAG_ROUND, i, right) & 0xffffu;
		const uint32_t was = right;

		right = left ^ f;
		left = was;
	}
	return left << 16 | right;
}

/* nfs4/client/client_table.c. The next free number, any of 32 bits; all->lock is held. */
static uint32_t nfs4_next_number(struct nfs4_clients *all)
{
	return permute(all, ++all->last_number);
}

static uint64_t nfs4_make_clientid(const struct nfs4_clients *all, uint32_t number)
{
	return keyed(all, TAG_CLIENT, number, 0) << 32 | number;
}

uint32_t nfs4_stateid_tag(const struct nfs4_server *srv, uint32_t number, uint32_t id)
{
	return (uint32_t)keyed(srv->clients, TAG_STATEID, number, id);
}

/* The table of clients: by owner string, and by number. */

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
	nfs4_client_insert_as(all, cl, free_number(all));
}

void nfs4_client_insert_as(struct nfs4_clients *all, struct nfs4_client *cl, uint32_t number)
{
	struct id_part *part;

	nfs4_host_count(cl->host, NFS4_UNCONFIRMED, 1);
	cl->number = number;
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

/* A walk over all clients in an order that does not change while clients come and go: by bucket, then by number. */

/* The client of a bucket with the least number above that one, with a reference; or NULL. */
static struct nfs4_client *nfs4_client_above(struct nfs4_clients *all, uint32_t bucket,
					     uint64_t number)
{
	struct id_part *part = &all->part[bucket % ID_PARTS];
	struct nfs4_client *cl, *least = NULL;

	pthread_mutex_lock(&part->lock);
	LIST_FOREACH (cl, &part->clients[bucket / ID_PARTS], by_id) {
		if (cl->number > number && (!least || cl->number < least->number))
			least = cl;
	}
	if (least)
		nfs4_client_ref(least);
	pthread_mutex_unlock(&part->lock);
	return least;
}

struct nfs4_client *nfs4_client_after(struct nfs4_server *srv, uint32_t number)
{
	const uint32_t buckets = ID_PARTS * ID_BUCKETS;
	uint32_t bucket = number % buckets;
	struct nfs4_client *cl = nfs4_client_above(srv->clients, bucket, number);

	/* Number 0, which no client has, begins the walk with the first bucket. */
	while (!cl && ++bucket < buckets)
		cl = nfs4_client_above(srv->clients, bucket, 0);
	return cl;
}

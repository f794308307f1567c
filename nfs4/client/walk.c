/* SPDX-License-Identifier: BSD-2-Clause */
/* A walk over all clients in an order that does not change while clients come and go: by bucket, then by number. */
#include "nfs4/client/client_table.h"

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

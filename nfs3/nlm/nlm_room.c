/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs3/nlm/nlm_room.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "lib/host.h"

struct nlm_room_host {
	LIST_ENTRY(nlm_room_host) link;
	struct rn_host host;
	size_t used; /* not 0 */
};

void nlm_room_init(struct nlm_room *r, size_t max)
{
	*r = (struct nlm_room){ .max = max };
	randombytes_buf(r->key, sizeof(r->key));
}

static unsigned nlm_room_bucket(const struct nlm_room *r, const struct rn_host *host)
{
	uint64_t h;

	crypto_shorthash((uint8_t *)&h, (const uint8_t *)host, sizeof(*host), r->key);
	return h % NLM_ROOM_BUCKETS;
}

static struct nlm_room_host *nlm_room_find(const struct nlm_room *r, const struct rpc_address *addr)
{
	struct nlm_room_host *h;
	struct rn_host host;

	rn_host_of_mapped(addr->bytes, addr->scope, &host);
	LIST_FOREACH (h, &r->hosts[nlm_room_bucket(r, &host)], link) {
		if (rn_host_equal(&h->host, &host))
			break;
	}
	return h;
}

static bool nlm_room_fits_bytes(const struct nlm_room *r, size_t has, size_t bytes)
{
	const size_t for_all = r->max - r->max / 4, after = r->used + bytes;

	if (has + bytes <= r->max / 1024)
		return after <= r->max;
	return after <= for_all && has + bytes <= for_all - after;
}

size_t nlm_room_has(const struct nlm_room *r, const struct rpc_address *addr)
{
	const struct nlm_room_host *h = nlm_room_find(r, addr);

	return h ? h->used : 0;
}

bool nlm_room_fits(const struct nlm_room *r, const struct rpc_address *addr, size_t bytes)
{
	return nlm_room_fits_bytes(r, nlm_room_has(r, addr), bytes);
}

bool nlm_room_take(struct nlm_room *r, const struct rpc_address *addr, size_t bytes)
{
	struct nlm_room_host *h = nlm_room_find(r, addr);

	if (!nlm_room_fits_bytes(r, h ? h->used : 0, bytes))
		return false;
	if (!h) {
		h = calloc(1, sizeof(*h));
		if (!h)
			return false;
		rn_host_of_mapped(addr->bytes, addr->scope, &h->host);
		LIST_INSERT_HEAD(&r->hosts[nlm_room_bucket(r, &h->host)], h, link);
	}
	h->used += bytes;
	r->used += bytes;
	return true;
}

void nlm_room_change(struct nlm_room *r, const struct rpc_address *addr, size_t take, size_t give)
{
	struct nlm_room_host *h = nlm_room_find(r, addr);

	h->used += take - give;
	r->used += take - give;
	if (h->used > 0)
		return;
	LIST_REMOVE(h, link);
	free(h);
}

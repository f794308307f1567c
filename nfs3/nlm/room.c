/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs3/nlm/room.h"

#include <netinet/in.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

struct nlm_room_host {
	LIST_ENTRY(nlm_room_host) link;
	uint8_t addr[16];
	size_t used; /* not 0 */
};

void nlm_room_init(struct nlm_room *r, size_t max)
{
	*r = (struct nlm_room){ .max = max };
	randombytes_buf(r->key, sizeof(r->key));
}

/* The part of an address that its host cannot choose. */
static void host_part(const uint8_t addr[16], uint8_t out[16])
{
	struct in6_addr in6;

	memcpy(&in6, addr, sizeof(in6));
	memcpy(out, addr, 16);
	if (!IN6_IS_ADDR_V4MAPPED(&in6))
		memset(out + 8, 0, 8);
}

static unsigned bucket(const struct nlm_room *r, const uint8_t host[16])
{
	uint64_t h;

	crypto_shorthash((uint8_t *)&h, host, 16, r->key);
	return h % NLM_ROOM_BUCKETS;
}

static struct nlm_room_host *find(const struct nlm_room *r, const uint8_t addr[16])
{
	struct nlm_room_host *h;
	uint8_t host[16];

	host_part(addr, host);
	LIST_FOREACH (h, &r->hosts[bucket(r, host)], link) {
		if (memcmp(h->addr, host, sizeof(host)) == 0)
			break;
	}
	return h;
}

static bool fits(const struct nlm_room *r, size_t has, size_t bytes)
{
	return r->used + bytes <= r->max && has + bytes <= r->max - r->used - bytes;
}

size_t nlm_room_has(const struct nlm_room *r, const uint8_t addr[16])
{
	const struct nlm_room_host *h = find(r, addr);

	return h ? h->used : 0;
}

bool nlm_room_fits(const struct nlm_room *r, const uint8_t addr[16], size_t bytes)
{
	return fits(r, nlm_room_has(r, addr), bytes);
}

bool nlm_room_take(struct nlm_room *r, const uint8_t addr[16], size_t bytes)
{
	struct nlm_room_host *h = find(r, addr);

	if (!fits(r, h ? h->used : 0, bytes))
		return false;
	if (!h) {
		h = calloc(1, sizeof(*h));
		if (!h)
			return false;
		host_part(addr, h->addr);
		LIST_INSERT_HEAD(&r->hosts[bucket(r, h->addr)], h, link);
	}
	h->used += bytes;
	r->used += bytes;
	return true;
}

void nlm_room_change(struct nlm_room *r, const uint8_t addr[16], size_t take, size_t give)
{
	struct nlm_room_host *h = find(r, addr);

	h->used += take - give;
	r->used += take - give;
	if (h->used > 0)
		return;
	LIST_REMOVE(h, link);
	free(h);
}

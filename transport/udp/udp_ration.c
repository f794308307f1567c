/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/udp/udp_ration.h"

#include "lib/clock.h"
#include "lib/host.h"

void udp_ration_init(struct udp_ration *r)
{
	pthread_mutex_init(&r->lock, NULL);
	crypto_shorthash_keygen(r->key);
}

void udp_ration_fini(struct udp_ration *r)
{
	pthread_mutex_destroy(&r->lock);
}

bool udp_ration_take(struct udp_ration *r, const struct sockaddr_storage *peer, bool handle,
		     uint32_t bytes, uint64_t now_ns)
{
	const uint32_t most = handle ? UDP_RATION_HANDLE : UDP_RATION;
	const uint64_t second = now_ns / RN_NS_PER_SECOND;
	struct rn_host host;
	uint64_t hash;

	rn_host_of((const struct sockaddr *)peer, &host);
	crypto_shorthash((uint8_t *)&hash, (const uint8_t *)&host, sizeof(host), r->key);
	struct udp_ration_cell *c = &r->cell[hash % UDP_RATION_CELLS];
	pthread_mutex_lock(&r->lock);
	if (c->second != second)
		*c = (struct udp_ration_cell){ .second = second };
	const bool may = bytes <= most - c->bytes[handle];
	if (may)
		c->bytes[handle] += bytes;
	pthread_mutex_unlock(&r->lock);
	return may;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of what datagrams may cause: replies to whom they name, and questions to name services. */
#include "transport/udp/udp_ration.h"

#include <string.h>

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

	rn_host_of((const struct sockaddr *)peer, &host);
	struct udp_ration_cell *c = &r->cell[rn_host_hash(&host, r->key) % UDP_RATION_CELLS];
	pthread_mutex_lock(&r->lock);
	if (c->second != second)
		*c = (struct udp_ration_cell){ .second = second };
	const bool may = bytes <= most - c->bytes[handle];
	if (may)
		c->bytes[handle] += bytes;
	pthread_mutex_unlock(&r->lock);
	return may;
}

void udp_asked_init(struct udp_asked *a)
{
	memset(a, 0, sizeof(*a));
	pthread_mutex_init(&a->lock, NULL);
	crypto_shorthash_keygen(a->key);
}

void udp_asked_fini(struct udp_asked *a)
{
	pthread_mutex_destroy(&a->lock);
}

static uint64_t udp_asked_hash(const struct udp_asked *a, const struct rpc_address *addr)
{
	uint64_t h;

	crypto_shorthash((uint8_t *)&h, (const uint8_t *)addr, sizeof(*addr), a->key);
	return h % UDP_ASKED_CELLS;
}

/* Under the lock: the cell of the host's network. */
static struct udp_asked_cell *network_of(struct udp_asked *a, const struct sockaddr_storage *peer)
{
	struct rn_host network;

	rn_network_of((const struct sockaddr *)peer, &network);
	return &a->network[rn_host_hash(&network, a->key) % UDP_ASKED_CELLS];
}

static bool udp_asked_is_known(const struct udp_asked *a, const struct rpc_address *addr)
{
	return rpc_address_equal(&a->admitted[udp_asked_hash(a, addr)], addr);
}

static bool has_left(struct udp_asked_cell *c, uint32_t most, uint64_t second)
{
	if (c->second != second)
		*c = (struct udp_asked_cell){ .second = second };
	return c->questions < most;
}

bool udp_asked_may(struct udp_asked *a, const struct sockaddr_storage *peer, uint64_t now_ns)
{
	const uint64_t second = now_ns / RN_NS_PER_SECOND;
	struct rpc_address addr;

	rpc_address_of(peer, &addr);
	pthread_mutex_lock(&a->lock);
	const bool may = udp_asked_is_known(a, &addr) ||
			 (has_left(network_of(a, peer), UDP_ASKED_NETWORK, second) &&
			  has_left(&a->all, UDP_ASKED_ALL, second));
	pthread_mutex_unlock(&a->lock);
	return may;
}

void udp_asked_got(struct udp_asked *a, const struct sockaddr_storage *peer, enum rpc_admission is,
		   uint64_t now_ns)
{
	const uint64_t second = now_ns / RN_NS_PER_SECOND;
	struct rpc_address addr;

	if (is != RPC_ADMITTED && is != RPC_UNKNOWN)
		return;
	rpc_address_of(peer, &addr);
	pthread_mutex_lock(&a->lock);
	if (is == RPC_ADMITTED) {
		a->admitted[udp_asked_hash(a, &addr)] = addr;
	} else if (!udp_asked_is_known(a, &addr)) {
		struct udp_asked_cell *c = network_of(a, peer);

		has_left(c, UDP_ASKED_NETWORK, second);
		has_left(&a->all, UDP_ASKED_ALL, second);
		c->questions++;
		a->all.questions++;
	}
	pthread_mutex_unlock(&a->lock);
}

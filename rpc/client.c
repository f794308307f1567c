/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table is asked only when a connection begins or ends. Its hash is keyed, so that nobody
 * can choose addresses (IPv6 leaves a lot of choice) that all fall into one bucket.
 */
#include "rpc/client.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define BUCKETS 1024u /* a power of two */

LIST_HEAD(client_list, rpc_client);

struct rpc_clients {
	pthread_mutex_t lock;
	uint8_t seed[crypto_shorthash_KEYBYTES];
	unsigned count;
	struct client_list bucket[BUCKETS];
};

struct rpc_clients *rpc_clients_new(void)
{
	struct rpc_clients *all = calloc(1, sizeof(*all));

	if (all == NULL)
		return NULL;
	/* Without randomness so early, the table works with what it has. */
	(void)!getrandom(all->seed, sizeof(all->seed), GRND_NONBLOCK);
	pthread_mutex_init(&all->lock, NULL);
	return all;
}

void rpc_clients_free(struct rpc_clients *all)
{
	if (all == NULL)
		return;
	pthread_mutex_destroy(&all->lock);
	free(all);
}

static struct rpc_client_key key_of(const struct sockaddr_storage *peer)
{
	struct rpc_client_key key = { 0 };

	if (peer->ss_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)peer;

		memcpy(key.addr, &in6->sin6_addr, sizeof(key.addr));
		if (IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr))
			key.scope = in6->sin6_scope_id;
	} else {
		const struct sockaddr_in *in = (const struct sockaddr_in *)peer;

		key.addr[10] = key.addr[11] = 0xff;
		memcpy(key.addr + 12, &in->sin_addr, 4);
	}
	return key;
}

static struct client_list *bucket_of(struct rpc_clients *all, const struct rpc_client_key *key)
{
	uint8_t bytes[sizeof(key->addr) + sizeof(key->scope)]; /* without padding */
	uint64_t h;

	memcpy(bytes, key->addr, sizeof(key->addr));
	memcpy(bytes + sizeof(key->addr), &key->scope, sizeof(key->scope));
	crypto_shorthash((uint8_t *)&h, bytes, sizeof(bytes), all->seed);
	return &all->bucket[h & (BUCKETS - 1)];
}

static bool same(const struct rpc_client_key *a, const struct rpc_client_key *b)
{
	return memcmp(a->addr, b->addr, sizeof(a->addr)) == 0 && a->scope == b->scope;
}

static struct rpc_client *client_new(struct rpc_clients *all, const struct rpc_client_key *key)
{
	struct rpc_client *client = calloc(1, sizeof(*client));

	if (client == NULL)
		return NULL;
	client->key = *key;
	client->all = all;
	atomic_init(&client->conns, 0);
	rn_payload_account_init(&client->memory);
	rn_payload_account_init(&client->requests);
	for (unsigned i = 0; i < RPC_LANES; i++)
		rn_fq_flow_init(&client->calls[i]);
	rn_fq_flow_init(&client->arrivals);
	for (unsigned i = 0; i < RPC_LOOPS_MAX; i++)
		rn_fq_flow_init(&client->loop[i].flow);
	all->count++;
	return client;
}

struct rpc_client *rpc_client_get(struct rpc_clients *all, const struct sockaddr_storage *peer)
{
	const struct rpc_client_key key = key_of(peer);
	struct client_list *list = bucket_of(all, &key);
	struct rpc_client *client;

	pthread_mutex_lock(&all->lock);
	LIST_FOREACH(client, list, link)
	{
		if (same(&client->key, &key))
			break;
	}
	if (client == NULL && (client = client_new(all, &key)) != NULL)
		LIST_INSERT_HEAD(list, client, link);
	if (client != NULL)
		client->conns++;
	pthread_mutex_unlock(&all->lock);
	return client;
}

void rpc_client_put(struct rpc_client *client)
{
	if (client == NULL)
		return;
	struct rpc_clients *all = client->all;

	pthread_mutex_lock(&all->lock);
	const bool last = --client->conns == 0;
	if (last) {
		LIST_REMOVE(client, link);
		all->count--;
	}
	pthread_mutex_unlock(&all->lock);
	if (last)
		free(client);
}

unsigned rpc_clients_count(struct rpc_clients *all)
{
	pthread_mutex_lock(&all->lock);
	const unsigned n = all->count;
	pthread_mutex_unlock(&all->lock);
	return n;
}

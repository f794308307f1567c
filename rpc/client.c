/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of clients. It is searched only when a connection begins or ends. Its hash is keyed, so
 * that nobody can choose addresses (IPv6 leaves a lot of choice) that all fall into one bucket. */
#include "rpc/client.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "rpc/conns.h"

#define BUCKETS 1024u /* a power of two */

LIST_HEAD(client_list, rpc_client);

/* A client that was slow, kept after its connections have ended. */
struct slow {
	uint64_t hash; /* keyed hash: nobody can look for an address with the same one */
	uint64_t until;
};

/* The usage of a client without connections. */
struct past {
	struct rn_host key;
	struct rpc_usage usage; /* last_ns 0: the entry is free */
};

struct rpc_clients {
	struct rpc_conns *conns;
	pthread_mutex_t lock;
	uint8_t seed[16];
	unsigned count;
	struct client_list bucket[BUCKETS];
	struct slow slow[BUCKETS]; /* indexed by hash; a later client replaces an earlier one */
	struct past past[BUCKETS]; /* the same */
	struct rpc_usage others;   /* of those that were replaced */
	uint64_t nothers;
};

struct rpc_clients *rpc_clients_new(void)
{
	struct rpc_clients *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	all->conns = rpc_conns_new();
	if (!all->conns) {
		free(all);
		return NULL;
	}
	/* Without randomness this early, the table works with the key it has. */
	(void)!getrandom(all->seed, sizeof(all->seed), GRND_NONBLOCK);
	pthread_mutex_init(&all->lock, NULL);
	return all;
}

void rpc_clients_free(struct rpc_clients *all)
{
	if (!all)
		return;
	rpc_conns_free(all->conns);
	pthread_mutex_destroy(&all->lock);
	free(all);
}

static uint64_t rpc_client_hash(const struct rpc_clients *all, const struct rn_host *key)
{
	return rn_host_hash(key, all->seed);
}

static uint64_t rpc_usage_get(const _Atomic uint64_t *n)
{
	return atomic_load_explicit(n, memory_order_relaxed);
}

static void rpc_usage_add_all(struct rpc_usage *to, const struct rpc_usage *from)
{
	const uint64_t last = rpc_usage_get(&from->last_ns);

	rpc_usage_add(&to->errors, rpc_usage_get(&from->errors));
	rpc_usage_add(&to->bytes_read, rpc_usage_get(&from->bytes_read));
	rpc_usage_add(&to->bytes_written, rpc_usage_get(&from->bytes_written));
	for (unsigned i = 0; i < RPC_USAGE_PROCS; i++)
		rpc_usage_add(&to->proc[i], rpc_usage_get(&from->proc[i]));
	if (last > rpc_usage_get(&to->last_ns))
		atomic_store_explicit(&to->last_ns, last, memory_order_relaxed);
}

static bool is_used(const struct rpc_usage *u)
{
	return rpc_usage_get(&u->last_ns) > 0;
}

/* Gives a new client the usage of its connections before. Under the lock. */
static void rpc_past_usage_restore(struct rpc_client *client, struct past *past)
{
	if (!is_used(&past->usage) || !rn_host_equal(&past->key, &client->key))
		return;
	rpc_usage_add_all(&client->usage, &past->usage);
	memset(past, 0, sizeof(*past));
}

/* Keeps the usage of a client that goes. Under the lock. */
static void rpc_past_usage_keep(struct rpc_clients *all, const struct rpc_client *client,
				struct past *past)
{
	if (!is_used(&client->usage))
		return;
	if (is_used(&past->usage)) {
		rpc_usage_add_all(&all->others, &past->usage);
		all->nothers++;
	}
	memset(past, 0, sizeof(*past));
	past->key = client->key;
	rpc_usage_add_all(&past->usage, &client->usage);
}

static struct rpc_client *client_new(struct rpc_clients *all, const struct rn_host *key)
{
	struct rpc_client *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	client->key = *key;
	client->all = all;
	atomic_init(&client->conns, 0);
	rn_payload_account_init(&client->memory);
	rn_payload_account_init(&client->requests);
	for (unsigned i = 0; i < RPC_FS_QUEUES; i++)
		rn_fq_flow_init(&client->calls[i]);
	rn_fq_flow_init(&client->arrivals);
	for (unsigned i = 0; i < RPC_LOOPS_MAX; i++)
		rn_fq_flow_init(&client->loop[i].flow);
	all->count++;
	return client;
}

struct rpc_client *rpc_client_get(struct rpc_clients *all, const struct sockaddr_storage *peer)
{
	struct rn_host key;
	struct client_list *list;
	struct rpc_client *client;

	rn_host_of((const struct sockaddr *)peer, &key);
	const uint64_t hash = rpc_client_hash(all, &key);
	list = &all->bucket[hash & (BUCKETS - 1)];
	pthread_mutex_lock(&all->lock);
	LIST_FOREACH (client, list, link) {
		if (rn_host_equal(&client->key, &key))
			break;
	}
	if (!client && (client = client_new(all, &key)) != NULL) {
		const struct slow *slow = &all->slow[hash & (BUCKETS - 1)];

		if (slow->hash == hash)
			atomic_init(&client->slow_until, slow->until);
		rpc_past_usage_restore(client, &all->past[hash & (BUCKETS - 1)]);
		LIST_INSERT_HEAD(list, client, link);
	}
	if (client)
		client->conns++;
	pthread_mutex_unlock(&all->lock);
	return client;
}

void rpc_client_put(struct rpc_client *client)
{
	if (!client)
		return;
	struct rpc_clients *all = client->all;

	pthread_mutex_lock(&all->lock);
	const bool last = --client->conns == 0;
	if (last) {
		LIST_REMOVE(client, link);
		rpc_past_usage_keep(all, client,
				    &all->past[rpc_client_hash(all, &client->key) & (BUCKETS - 1)]);
		all->count--;
	}
	pthread_mutex_unlock(&all->lock);
	if (last)
		free(client);
}

void rpc_client_is_slow(struct rpc_client *client, uint64_t now)
{
	struct rpc_clients *all = client->all;
	const uint64_t hash = rpc_client_hash(all, &client->key);
	const uint64_t until = now + RPC_SLOW_SECONDS * 1000000000ull;

	atomic_store_explicit(&client->slow_until, until, memory_order_relaxed);
	pthread_mutex_lock(&all->lock);
	all->slow[hash & (BUCKETS - 1)] = (struct slow){ hash, until };
	pthread_mutex_unlock(&all->lock);
}

unsigned rpc_clients_count(struct rpc_clients *all)
{
	pthread_mutex_lock(&all->lock);
	const unsigned n = all->count;
	pthread_mutex_unlock(&all->lock);
	return n;
}

struct rpc_conns *rpc_clients_conns(struct rpc_clients *all)
{
	return all->conns;
}

static void copy_usage(struct rpc_usage_view *v, const struct rn_host *key, unsigned conns,
		       const struct rpc_usage *usage)
{
	memset(v, 0, sizeof(*v));
	v->host = *key;
	v->network = rn_host_is_network(key);
	v->connections = conns;
	rpc_usage_add_all(&v->usage, usage);
}

/* True if the client comes behind after, and before the best one so far (NULL: there is none). */
static bool rpc_usage_key_is_better(const struct rn_host *key, const struct rn_host *after,
				    const struct rn_host *best)
{
	return (!after || memcmp(key, after, sizeof(*key)) > 0) &&
	       (!best || memcmp(key, best, sizeof(*key)) < 0);
}

/* Copies the first client of a bucket behind that address (NULL: the first). Under the lock. */
static bool rpc_client_bucket_next(struct rpc_clients *all, uint64_t bucket,
				   const struct rn_host *after, struct rpc_usage_view *out)
{
	const struct past *past = &all->past[bucket];
	const struct rpc_client *client, *best = NULL;

	LIST_FOREACH (client, &all->bucket[bucket], link) {
		if (is_used(&client->usage) &&
		    rpc_usage_key_is_better(&client->key, after, best ? &best->key : NULL))
			best = client;
	}
	if (is_used(&past->usage) &&
	    rpc_usage_key_is_better(&past->key, after, best ? &best->key : NULL)) {
		copy_usage(out, &past->key, 0, &past->usage);
		return true;
	}
	if (best)
		copy_usage(out, &best->key, rpc_client_conns(best), &best->usage);
	return best != NULL;
}

bool rpc_usage_next(struct rpc_clients *all, const struct rn_host *after,
		    struct rpc_usage_view *out)
{
	uint64_t bucket = after ? rpc_client_hash(all, after) & (BUCKETS - 1) : 0;
	bool found;

	pthread_mutex_lock(&all->lock);
	found = rpc_client_bucket_next(all, bucket, after, out);
	while (!found && ++bucket < BUCKETS)
		found = rpc_client_bucket_next(all, bucket, NULL, out);
	pthread_mutex_unlock(&all->lock);
	return found;
}

bool rpc_usage_find(struct rpc_clients *all, const struct sockaddr_storage *peer,
		    struct rpc_usage_view *out)
{
	struct rn_host key;
	const struct rpc_client *client;
	bool found = false;

	rn_host_of((const struct sockaddr *)peer, &key);
	const uint64_t bucket = rpc_client_hash(all, &key) & (BUCKETS - 1);
	const struct past *past = &all->past[bucket];

	pthread_mutex_lock(&all->lock);
	LIST_FOREACH (client, &all->bucket[bucket], link) {
		if (!is_used(&client->usage) || !rn_host_equal(&client->key, &key))
			continue;
		copy_usage(out, &key, rpc_client_conns(client), &client->usage);
		found = true;
	}
	if (!found && is_used(&past->usage) && rn_host_equal(&past->key, &key)) {
		copy_usage(out, &key, 0, &past->usage);
		found = true;
	}
	pthread_mutex_unlock(&all->lock);
	return found;
}

uint64_t rpc_usage_others(struct rpc_clients *all, struct rpc_usage *out)
{
	memset(out, 0, sizeof(*out));
	pthread_mutex_lock(&all->lock);
	rpc_usage_add_all(out, &all->others);
	const uint64_t n = all->nothers;
	pthread_mutex_unlock(&all->lock);
	return n;
}

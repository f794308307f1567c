/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/client/client_host.h"

#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/budget.h"
#include "lib/host.h"

#define BUCKETS 1024u /* a power of two */
/* Parts of the budget: what each host gets even if little is left, and the reserve for that. */
#define LITTLE_PART 512u
#define KEPT_BACK_PART 16u

LIST_HEAD(host_list, nfs4_host);

struct nfs4_hosts {
	pthread_mutex_t lock; /* a leaf */
	struct rn_budget *budget;
	/* Random, so that clients cannot aim at one bucket */
	uint8_t seed[crypto_shorthash_KEYBYTES];
	struct host_list bucket[BUCKETS];
};

struct nfs4_host {
	struct nfs4_hosts *all;
	struct rn_host key;
	LIST_ENTRY(nfs4_host) link; /* under the table's lock */
	unsigned refs;		    /* under the table's lock, too */
	_Atomic size_t has[NFS4_MEASURES];
	struct nfs4_host_clients clients; /* under the lock of the table of clients */
};

struct nfs4_hosts *nfs4_hosts_new(struct rn_budget *budget)
{
	struct nfs4_hosts *all = calloc(1, sizeof(*all));

	if (!all)
		return NULL;
	pthread_mutex_init(&all->lock, NULL);
	all->budget = budget;
	crypto_shorthash_keygen(all->seed);
	return all;
}

void nfs4_hosts_free(struct nfs4_hosts *all)
{
	if (!all)
		return;
	pthread_mutex_destroy(&all->lock);
	free(all);
}

static struct host_list *nfs4_host_bucket(struct nfs4_hosts *all, const struct rn_host *key)
{
	uint64_t h;

	crypto_shorthash((uint8_t *)&h, (const uint8_t *)key, sizeof(*key), all->seed);
	return &all->bucket[h & (BUCKETS - 1)];
}

static struct nfs4_host *host_new(struct nfs4_hosts *all, const struct rn_host *key)
{
	struct nfs4_host *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->all = all;
	h->key = *key;
	for (unsigned i = 0; i < NFS4_MEASURES; i++)
		atomic_init(&h->has[i], 0);
	TAILQ_INIT(&h->clients);
	LIST_INSERT_HEAD(nfs4_host_bucket(all, key), h, link);
	return h;
}

struct nfs4_host *nfs4_host_get(struct nfs4_hosts *all, const struct sockaddr_in6 *addr)
{
	struct rn_host key;
	struct nfs4_host *h;

	rn_host_of((const struct sockaddr *)addr, &key);
	pthread_mutex_lock(&all->lock);
	LIST_FOREACH (h, nfs4_host_bucket(all, &key), link) {
		if (rn_host_equal(&h->key, &key))
			break;
	}
	if (!h)
		h = host_new(all, &key);
	if (h)
		h->refs++;
	pthread_mutex_unlock(&all->lock);
	return h;
}

void nfs4_host_put(struct nfs4_host *h)
{
	struct nfs4_hosts *all;
	bool last;

	if (!h)
		return;
	all = h->all;
	pthread_mutex_lock(&all->lock);
	last = --h->refs == 0;
	if (last)
		LIST_REMOVE(h, link);
	pthread_mutex_unlock(&all->lock);
	if (last)
		free(h);
}

const struct rn_host *nfs4_host_key(const struct nfs4_host *h)
{
	return &h->key;
}

static size_t nfs4_host_budget_left(const struct nfs4_host *h)
{
	const struct rn_budget *b = h->all->budget;
	const size_t used = atomic_load_explicit(&b->used, memory_order_relaxed);

	return used < b->max ? b->max - used : 0;
}

size_t nfs4_host_has(const struct nfs4_host *h, enum nfs4_measure what)
{
	return atomic_load_explicit(&h->has[what], memory_order_relaxed);
}

void nfs4_host_count(struct nfs4_host *h, enum nfs4_measure what, int by)
{
	atomic_fetch_add_explicit(&h->has[what], (size_t)by, memory_order_relaxed);
}

struct nfs4_host *nfs4_hosts_greediest(struct nfs4_hosts *all, enum nfs4_measure what, size_t than)
{
	struct nfs4_host *h, *most = NULL;

	pthread_mutex_lock(&all->lock);
	for (unsigned i = 0; i < BUCKETS; i++) {
		LIST_FOREACH (h, &all->bucket[i], link) {
			if (nfs4_host_has(h, what) <= than)
				continue;
			than = nfs4_host_has(h, what);
			most = h;
		}
	}
	if (most)
		most->refs++;
	pthread_mutex_unlock(&all->lock);
	return most;
}

struct nfs4_host_clients *nfs4_host_clients(struct nfs4_host *h)
{
	return &h->clients;
}

bool nfs4_host_fits(const struct nfs4_host *h, size_t bytes, enum nfs4_use use)
{
	const size_t mine = nfs4_host_has(h, NFS4_BYTES) + bytes;
	size_t max;

	if (!h->all->budget)
		return true;
	max = h->all->budget->max;
	if (mine <= max / LITTLE_PART && bytes <= nfs4_host_budget_left(h))
		return true;
	if (mine <= nfs4_host_budget_left(h) &&
	    bytes + max / KEPT_BACK_PART <= nfs4_host_budget_left(h))
		return true;
	return use != NFS4_TO_HOLD && bytes + h->all->budget->max / 8 <= nfs4_host_budget_left(h);
}

bool nfs4_host_has_its_share(const struct nfs4_host *h, size_t bytes)
{
	return !nfs4_host_fits(h, bytes, NFS4_TO_HOLD) && bytes <= nfs4_host_budget_left(h) &&
	       nfs4_host_has(h, NFS4_BYTES) > h->all->budget->max / 8;
}

bool nfs4_host_take(struct nfs4_host *h, size_t bytes, enum nfs4_use use)
{
	struct rn_budget *b = h->all->budget;

	if (!nfs4_host_fits(h, bytes, use) || (b && !rn_budget_take(b, bytes)))
		return false;
	atomic_fetch_add_explicit(&h->has[NFS4_BYTES], bytes, memory_order_relaxed);
	return true;
}

void nfs4_host_give(struct nfs4_host *h, size_t bytes)
{
	atomic_fetch_sub_explicit(&h->has[NFS4_BYTES], bytes, memory_order_relaxed);
	if (h->all->budget)
		rn_budget_give(h->all->budget, bytes);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/exports_peers.h"

#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "conf/exports_addr.h"

/* Slots of a set, and locks: set n has lock n % STRIPES. */
enum { WAYS = 8, STRIPES = 64 };

struct answer {
	bool known;
	int client;
	uint64_t until;	    /* the answer is fresh before this time */
	uint64_t old_until; /* usable before this time, while it cannot be renewed */
};

struct slot {
	struct exp_addr addr; /* len is 0 in a free slot */
	bool busy;
	uint64_t used; /* 1 + the time of the last use; 0: never, so free slots are claimed first */
	/* one for each export, and a spare, as the size must not be 0; NULL until first used */
	struct answer *answers;
	struct exp_peer_name name;
};

struct stripe {
	pthread_mutex_t lock;
	pthread_cond_t done;
};

struct exp_peers {
	unsigned n_exports;
	unsigned n_sets;
	uint8_t key[crypto_shorthash_KEYBYTES];
	struct slot *slots; /* n_sets * WAYS */
	struct stripe stripes[STRIPES];
};

int exp_peers_new(unsigned n_exports, unsigned max_peers, struct exp_peers **peers)
{
	struct exp_peers *made = calloc(1, sizeof(*made));

	if (!made)
		return -ENOMEM;
	made->n_exports = n_exports;
	crypto_shorthash_keygen(made->key);
	made->n_sets = max_peers / WAYS ? max_peers / WAYS : 1;
	made->slots = calloc((size_t)made->n_sets * WAYS, sizeof(*made->slots));
	if (!made->slots) {
		free(made);
		return -ENOMEM;
	}
	for (unsigned i = 0; i < STRIPES; i++) {
		pthread_mutex_init(&made->stripes[i].lock, NULL);
		pthread_cond_init(&made->stripes[i].done, NULL);
	}
	*peers = made;
	return 0;
}

void exp_peers_free(struct exp_peers *peers)
{
	if (!peers)
		return;
	for (size_t i = 0; i < (size_t)peers->n_sets * WAYS; i++)
		free(peers->slots[i].answers);
	for (unsigned i = 0; i < STRIPES; i++) {
		pthread_cond_destroy(&peers->stripes[i].done);
		pthread_mutex_destroy(&peers->stripes[i].lock);
	}
	free(peers->slots);
	free(peers);
}

/* The key is random, so that nobody can choose addresses that evict a certain other peer. */
static unsigned exp_peers_set_of(const struct exp_peers *peers, const struct exp_addr *addr)
{
	uint64_t hash;

	crypto_shorthash((uint8_t *)&hash, addr->bytes, addr->len, peers->key);
	return (unsigned)(hash % peers->n_sets);
}

static struct slot *exp_peers_find_slot(struct exp_peers *peers, unsigned set,
					const struct exp_addr *addr)
{
	struct slot *slots = &peers->slots[(size_t)set * WAYS];

	for (unsigned i = 0; i < WAYS; i++)
		if (slots[i].addr.len && exp_addr_equal(&slots[i].addr, addr))
			return &slots[i];
	return NULL;
}

/* Empties a free slot or the least recently used one for addr. NULL if all of the set are being
 * worked on, or there is no memory. */
static struct slot *claim_slot(struct exp_peers *peers, unsigned set, const struct exp_addr *addr)
{
	struct slot *slots = &peers->slots[(size_t)set * WAYS];
	struct slot *best = NULL;

	for (unsigned i = 0; i < WAYS; i++) {
		if (slots[i].busy)
			continue;
		if (!best || slots[i].used < best->used)
			best = &slots[i];
	}
	if (!best)
		return NULL;
	if (!best->answers)
		best->answers = calloc(peers->n_exports + 1, sizeof(*best->answers));
	if (!best->answers)
		return NULL;
	memset(best->answers, 0, (peers->n_exports + 1) * sizeof(*best->answers));
	memset(&best->name, 0, sizeof(best->name));
	best->addr = *addr;
	return best;
}

/* The caller holds the stripe's lock. True if the ticket is filled, false if another thread works
 * on the address and there is no older answer. */
static bool try_begin(struct exp_peers *peers, const struct exp_addr *addr, uint64_t now,
		      struct exp_peers_ticket *ticket)
{
	struct slot *slot = exp_peers_find_slot(peers, ticket->set, addr);
	struct answer *answer;

	if (!slot)
		slot = claim_slot(peers, ticket->set, addr);
	if (!slot) {
		ticket->state = EXP_PEERS_UNCACHED;
		return true;
	}
	slot->used = now + 1;
	answer = &slot->answers[ticket->export_index];
	ticket->has_client =
		answer->known && answer->client != EXP_CLIENT_UNKNOWN && now < answer->old_until;
	ticket->client = ticket->has_client ? answer->client : EXP_CLIENT_UNKNOWN;
	if (answer->known && now < answer->until) {
		ticket->state = EXP_PEERS_HIT;
		return true;
	}
	if (slot->busy) {
		ticket->state = ticket->has_client ? EXP_PEERS_HIT : EXP_PEERS_BUSY;
		return ticket->has_client;
	}
	slot->busy = true;
	ticket->state = EXP_PEERS_RESOLVE;
	ticket->slot = slot;
	ticket->name = slot->name;
	return true;
}

void exp_peers_begin(struct exp_peers *peers, const struct exp_addr *addr, unsigned export_index,
		     uint64_t now, bool wait, struct exp_peers_ticket *ticket)
{
	unsigned set = exp_peers_set_of(peers, addr);
	struct stripe *stripe = &peers->stripes[set % STRIPES];

	ticket->peers = peers;
	ticket->set = set;
	ticket->slot = NULL;
	ticket->export_index = export_index;
	ticket->client = EXP_CLIENT_UNKNOWN;
	ticket->has_client = false;
	ticket->name.known = false;
	pthread_mutex_lock(&stripe->lock);
	while (!try_begin(peers, addr, now, ticket) && wait)
		pthread_cond_wait(&stripe->done, &stripe->lock);
	pthread_mutex_unlock(&stripe->lock);
}

/* Locks the stripe of the ticket's slot and returns the slot. NULL, without the lock, if the ticket
 * has no slot to fill. */
static struct slot *lock_slot(struct exp_peers_ticket *ticket)
{
	if (ticket->state != EXP_PEERS_RESOLVE)
		return NULL;
	pthread_mutex_lock(&ticket->peers->stripes[ticket->set % STRIPES].lock);
	return ticket->slot;
}

/* Ends the work on the slot: keeps the name, wakes the threads that wait, and unlocks the stripe. */
static void finish_slot(struct exp_peers_ticket *ticket, struct slot *slot)
{
	struct stripe *stripe = &ticket->peers->stripes[ticket->set % STRIPES];

	slot->name = ticket->name;
	slot->busy = false;
	pthread_cond_broadcast(&stripe->done);
	pthread_mutex_unlock(&stripe->lock);
}

void exp_peers_end(struct exp_peers_ticket *ticket, uint64_t until, uint64_t old_until)
{
	struct slot *slot = lock_slot(ticket);

	if (!slot)
		return;
	slot->answers[ticket->export_index] = (struct answer){
		.known = true, .client = ticket->client, .until = until, .old_until = old_until
	};
	finish_slot(ticket, slot);
}

void exp_peers_give_up(struct exp_peers_ticket *ticket, uint64_t until)
{
	struct slot *slot = lock_slot(ticket);
	struct answer *answer;

	if (!slot)
		return;
	answer = &slot->answers[ticket->export_index];
	if (!ticket->has_client)
		*answer = (struct answer){ .known = true, .client = EXP_CLIENT_UNKNOWN };
	answer->until =
		until < answer->old_until || !ticket->has_client ? until : answer->old_until;
	finish_slot(ticket, slot);
}

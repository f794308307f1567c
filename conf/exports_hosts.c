/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of hosts: the system's resolver, what is kept of its answers for a peer, and for a name in the exports. */
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "conf/exports.h"
#include "conf/exports_private.h"
#include "lib/clock.h"
#include "lib/error.h"

/* libc walks one netgroup at a time in a process; the lock protects that state of libc, so it
 * belongs to no resolver. */
static pthread_mutex_t netgroups_lock = PTHREAD_MUTEX_INITIALIZER;

static int eai_errno(int eai)
{
	switch (eai) {
	case 0:
		return 0;
	case EAI_NONAME:
	case EAI_NODATA:
	case EAI_ADDRFAMILY:
		return -ENOENT;
	case EAI_MEMORY:
		return -ENOMEM;
	case EAI_AGAIN:
		return -RN_ELATER;
	default:
		return -EIO;
	}
}

static int system_reverse(void *arg, const struct exp_addr *addr, char name[EXP_NAME_MAX])
{
	struct sockaddr_storage sa;

	(void)arg;
	exp_addr_to_sockaddr(addr, &sa);
	return eai_errno(getnameinfo((struct sockaddr *)&sa, sizeof(sa), name, EXP_NAME_MAX, NULL,
				     0, NI_NAMEREQD));
}

static int system_forward(void *arg, const char *name, struct exp_addr *addrs, unsigned max)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM };
	struct addrinfo *list;
	unsigned n = 0;
	int rc = eai_errno(getaddrinfo(name, NULL, &hints, &list));

	(void)arg;
	if (rc)
		return rc;
	for (struct addrinfo *ai = list; ai && n < max; ai = ai->ai_next)
		if (exp_addr_from_sockaddr(ai->ai_addr, &addrs[n]))
			n++;
	freeaddrinfo(list);
	return (int)n;
}

/*
 * The group is walked, as innetgr(3) would take an entry with an empty host for every machine;
 * exports(5) says that such entries are ignored.
 */
static int system_in_netgroup(void *arg, const char *group, const char *const *names, unsigned n)
{
	char *host, *user, *domain;
	char buf[1024];
	int found = 0;

	(void)arg;
	pthread_mutex_lock(&netgroups_lock);
	setnetgrent(group);
	while (!found && getnetgrent_r(&host, &user, &domain, buf, sizeof(buf)) == 1) {
		if (!host || !*host || !strcmp(host, "-"))
			continue;
		for (unsigned i = 0; i < n && !found; i++)
			found = !strcasecmp(host, names[i]);
	}
	endnetgrent();
	pthread_mutex_unlock(&netgroups_lock);
	return found;
}

static int system_has_netgroup(void *arg, const char *group)
{
	char *host, *user, *domain;
	char buf[1024];

	(void)arg;
	pthread_mutex_lock(&netgroups_lock);
	setnetgrent(group);
	int found = getnetgrent_r(&host, &user, &domain, buf, sizeof(buf)) == 1;

	endnetgrent();
	pthread_mutex_unlock(&netgroups_lock);
	return found;
}

static uint64_t system_now(void *arg)
{
	(void)arg;
	return rn_now_ms();
}

void exp_resolver_system(struct exp_resolver *resolver)
{
	*resolver = (struct exp_resolver){
		.reverse = system_reverse,
		.forward = system_forward,
		.in_netgroup = system_in_netgroup,
		.has_netgroup = system_has_netgroup,
		.now = system_now,
	};
}

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

/* Longest round of look-ups. With the name servers down each takes seconds; a thread must not wait
 * for a whole access list. */
enum { ROUND_BUDGET_MS = 5000 };
/* Time after which a look-up under way on another thread is asked for again. */
enum { SOON_MS = 500 };

struct host {
	const char *name; /* owned by the table */
	bool known;
	bool busy;
	bool failed; /* the last look-up failed; addrs are from the one before it */
	unsigned n;
	uint64_t until;
	struct exp_addr addrs[EXP_MAX_ADDRS];
};

struct exp_hosts {
	pthread_mutex_t lock;
	pthread_cond_t done;
	unsigned n;
	struct host *hosts; /* sorted by name */
};

bool exp_round_may_ask(struct exp_round *round)
{
	uint64_t now = round->resolver->now(round->resolver->arg);

	if (now - round->start < ROUND_BUDGET_MS)
		return true;
	exp_round_failed(round, now);
	return false;
}

void exp_round_until(struct exp_round *round, uint64_t until)
{
	if (until < round->until)
		round->until = until;
}

void exp_round_failed(struct exp_round *round, uint64_t now)
{
	round->uncertain = true;
	exp_round_until(round, now + round->fail_ttl_ms);
}

static int exp_host_by_name(const void *a, const void *b)
{
	return strcmp(((const struct host *)a)->name, ((const struct host *)b)->name);
}

static size_t count_names(const struct exp_table *table, struct host *hosts)
{
	size_t n = 0;

	for (unsigned i = 0; i < table->n_exports; i++) {
		const struct exp_export *export = &table->exports[i];

		for (unsigned j = 0; j < export->n_clients; j++) {
			const struct exp_client *client = &export->clients[j];

			if (client->kind != EXP_CLIENT_HOST || !client->name)
				continue;
			if (hosts)
				hosts[n].name = client->name;
			n++;
		}
	}
	return n;
}

int exp_hosts_new(const struct exp_table *table, struct exp_hosts **hosts)
{
	size_t n = count_names(table, NULL);
	struct exp_hosts *made = calloc(1, sizeof(*made));

	if (!made)
		return -ENOMEM;
	made->hosts = calloc(n + 1, sizeof(*made->hosts));
	if (!made->hosts) {
		free(made);
		return -ENOMEM;
	}
	pthread_mutex_init(&made->lock, NULL);
	pthread_cond_init(&made->done, NULL);
	count_names(table, made->hosts);
	if (n)
		qsort(made->hosts, n, sizeof(*made->hosts), exp_host_by_name);
	for (size_t i = 0; i < n; i++)
		if (!i || exp_host_by_name(&made->hosts[i], &made->hosts[made->n - 1]))
			made->hosts[made->n++] = made->hosts[i];
	*hosts = made;
	return 0;
}

void exp_hosts_free(struct exp_hosts *hosts)
{
	if (!hosts)
		return;
	pthread_cond_destroy(&hosts->done);
	pthread_mutex_destroy(&hosts->lock);
	free(hosts->hosts);
	free(hosts);
}

static void exp_host_store(struct host *host, const struct exp_addr *addrs, int n, uint64_t now,
			   const struct exp_round *round)
{
	if (n == -ENOENT)
		n = 0;
	host->failed = n < 0;
	host->until = now + (host->failed ? round->fail_ttl_ms : round->ttl_ms);
	if (n >= 0) {
		host->n = n > EXP_MAX_ADDRS ? EXP_MAX_ADDRS : (unsigned)n;
		memcpy(host->addrs, addrs, host->n * sizeof(*addrs));
	}
	host->known = true;
}

/* Called and returns with the lock held, but releases it in between. */
static void exp_host_look_up(struct exp_hosts *hosts, struct host *host, struct exp_round *round)
{
	const struct exp_resolver *resolver = round->resolver;
	struct exp_addr addrs[EXP_MAX_ADDRS];
	int n;

	host->busy = true;
	pthread_mutex_unlock(&hosts->lock);
	n = resolver->forward(resolver->arg, host->name, addrs, EXP_MAX_ADDRS);
	pthread_mutex_lock(&hosts->lock);
	exp_host_store(host, addrs, n, resolver->now(resolver->arg), round);
	host->busy = false;
	pthread_cond_broadcast(&hosts->done);
}

static bool exp_host_is_fresh(const struct host *host, const struct exp_round *round)
{
	return host->known && round->resolver->now(round->resolver->arg) < host->until;
}

/* With the lock: bring the host up to date, as far as possible. */
static void exp_host_refresh(struct exp_hosts *hosts, struct host *host, struct exp_round *round)
{
	while (!exp_host_is_fresh(host, round)) {
		if (host->busy && round->alone)
			return;
		if (host->busy) {
			pthread_cond_wait(&hosts->done, &hosts->lock);
			continue;
		}
		if (!exp_round_may_ask(round))
			return;
		exp_host_look_up(hosts, host, round);
		return;
	}
}

/* With the lock: true if the host's addresses are still valid. */
static int check_known(const struct host *host, struct exp_round *round)
{
	const struct exp_resolver *resolver = round->resolver;
	const uint64_t now = resolver->now(resolver->arg);

	if (host->known && !host->failed && now < host->until) {
		exp_round_until(round, host->until);
		return 0;
	}
	exp_round_failed(round, now);
	if (host->busy)
		exp_round_until(round, now + SOON_MS);
	return -RN_EUNNAMED;
}

int exp_hosts_has(struct exp_hosts *hosts, const char *name, const struct exp_addr *addr,
		  struct exp_round *round)
{
	struct host key = { .name = name };
	struct host *host = bsearch(&key, hosts->hosts, hosts->n, sizeof(key), exp_host_by_name);
	int has;

	if (!host)
		return 0;
	pthread_mutex_lock(&hosts->lock);
	exp_host_refresh(hosts, host, round);
	has = check_known(host, round);
	for (unsigned i = 0; i < host->n && has == 0; i++)
		has = exp_addr_equal(&host->addrs[i], addr);
	pthread_mutex_unlock(&hosts->lock);
	return has;
}

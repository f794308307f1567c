/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/exports_hosts.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "conf/exports_addr.h"
#include "lib/error.h"

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

/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/workers/standing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/log.h"
#include "lib/log_ids.h"
#include "rpc/address.h"

#define HOSTS_MAX 8192u
#define BUCKETS 4096u /* a power of two */

/* Seconds for which an answer is used. Names may come to mean other hosts at any time; costly
 * look-ups are cached for longer in conf/exports_match. */
static const unsigned keep_seconds[] = {
	[RPC_UNKNOWN] = 1,
	[RPC_STRANGER] = 5,
	[RPC_FORMER] = 1,
	[RPC_ADMITTED] = 15,
};

/* A connection's word: generation of the exports, second until which the answer is valid, and
 * standing in the low bits. Zero, in a new connection, belongs to no generation. */
#define WORD_STANDING ((1u << RPC_STANDING_BITS) - 1)
#define WORD_UNTIL_SHIFT RPC_STANDING_BITS
#define WORD_UNTIL_BITS 30
#define WORD_GENERATION_SHIFT 32

struct host {
	LIST_ENTRY(host) link;
	TAILQ_ENTRY(host) age;
	struct rpc_address addr;
	uint64_t former_until; /* second when it was last admitted; 0: it is admitted now */
};
LIST_HEAD(host_list, host);
TAILQ_HEAD(host_ages, host);

struct standing {
	struct standing_config cfg;
	struct rn_log_hosts told;
	uint8_t hash_key[crypto_shorthash_KEYBYTES];
	pthread_mutex_t lock; /* guards the members below; a leaf */
	struct host_list bucket[BUCKETS];
	struct host_ages ages; /* the one unseen for longest first */
	unsigned nhosts;
};

struct standing *standing_new(const struct standing_config *cfg)
{
	struct standing *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->cfg = *cfg;
	rn_log_hosts_init(&s->told);
	crypto_shorthash_keygen(s->hash_key);
	pthread_mutex_init(&s->lock, NULL);
	TAILQ_INIT(&s->ages);
	return s;
}

static void standing_drop_host(struct standing *s, struct host *h)
{
	LIST_REMOVE(h, link);
	TAILQ_REMOVE(&s->ages, h, age);
	s->nhosts--;
	free(h);
}

void standing_free(struct standing *s)
{
	struct host *h;

	if (!s)
		return;
	while ((h = TAILQ_FIRST(&s->ages)))
		standing_drop_host(s, h);
	rn_log_hosts_fini(&s->told);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static struct host_list *standing_bucket_of(struct standing *s, const struct rpc_address *addr)
{
	uint64_t h;

	crypto_shorthash((uint8_t *)&h, (const uint8_t *)addr, sizeof(*addr), s->hash_key);
	return &s->bucket[h & (BUCKETS - 1)];
}

static struct host *standing_find_host(struct host_list *list, const struct rpc_address *addr)
{
	struct host *h;

	LIST_FOREACH (h, list, link)
		if (rpc_address_equal(&h->addr, addr))
			break;
	return h;
}

/* Without memory the host counts as a stranger earlier. */
static void standing_remember(struct standing *s, const struct rpc_address *addr)
{
	struct host_list *list = standing_bucket_of(s, addr);
	struct host *h = standing_find_host(list, addr);

	if (h) {
		TAILQ_REMOVE(&s->ages, h, age);
	} else {
		h = calloc(1, sizeof(*h));
		if (!h)
			return;
		if (s->nhosts == HOSTS_MAX)
			standing_drop_host(s, TAILQ_FIRST(&s->ages));
		h->addr = *addr;
		LIST_INSERT_HEAD(list, h, link);
		s->nhosts++;
	}
	h->former_until = 0;
	TAILQ_INSERT_TAIL(&s->ages, h, age);
}

/* The standing of a host that no export admits. */
static enum rpc_standing standing_of_refused(struct standing *s, const struct rpc_address *addr,
					     uint64_t now)
{
	struct host *h = standing_find_host(standing_bucket_of(s, addr), addr);

	if (!h)
		return RPC_STRANGER;
	if (!h->former_until)
		h->former_until = now + s->cfg.lease_seconds;
	if (now < h->former_until)
		return RPC_FORMER;
	standing_drop_host(s, h);
	return RPC_STRANGER;
}

static enum rpc_standing standing_look(struct standing *s, const struct sockaddr_storage *peer,
				       uint64_t now)
{
	enum rpc_standing standing = RPC_UNKNOWN;
	struct rpc_address addr;
	int rc = exports_admit(s->cfg.exports, (const struct sockaddr *)peer);

	if (rc == -RN_EUNNAMED)
		return standing;
	rpc_address_of(peer, &addr);
	pthread_mutex_lock(&s->lock);
	if (!rc) {
		standing_remember(s, &addr);
		standing = RPC_ADMITTED;
	} else {
		standing = standing_of_refused(s, &addr, now);
	}
	pthread_mutex_unlock(&s->lock);
	return standing;
}

static void standing_log_change(struct standing *s, const struct rpc_conn *conn,
				enum rpc_standing was, enum rpc_standing is, uint64_t now)
{
	char name[RPC_ADDRESS_TEXT];
	const struct rn_log_event event = { .id = RN_ID_HOST_REFUSED, .client = name };
	struct rn_host host;
	unsigned left_out;

	if (was == is || (is != RPC_STRANGER && is != RPC_FORMER))
		return;
	rn_host_of((const struct sockaddr *)&conn->peer, &host);
	if (!rn_log_hosts_pass(&s->told, &host, now * 1000000000u, &left_out))
		return;
	rpc_address_text(&conn->peer, name);
	rn_log_event(s->cfg.log, RN_NOTICE, &event, "%s: no export admits this host%s", name,
		     is == RPC_FORMER ? " any more: it may give back what it holds" : ": refused");
	if (left_out)
		rn_notice(s->cfg.log, "%u more such messages are not shown", left_out);
}

enum rpc_standing standing_of(void *standing, struct rpc_conn *conn)
{
	struct standing *s = standing;
	const uint64_t now = rn_now_coarse_seconds();
	const uint64_t generation = exports_generation(s->cfg.exports);
	const uint64_t word = atomic_load_explicit(&conn->standing, memory_order_relaxed);
	const uint64_t until = (word >> WORD_UNTIL_SHIFT) & ((1u << WORD_UNTIL_BITS) - 1);
	enum rpc_standing is;

	if (word >> WORD_GENERATION_SHIFT == generation && now < until)
		return (enum rpc_standing)(word & WORD_STANDING);
	is = standing_look(s, &conn->peer, now);
	standing_log_change(s, conn, (enum rpc_standing)(word & WORD_STANDING), is, now);
	atomic_store_explicit(&conn->standing,
			      generation << WORD_GENERATION_SHIFT |
				      (now + keep_seconds[is]) << WORD_UNTIL_SHIFT | is,
			      memory_order_relaxed);
	return is;
}

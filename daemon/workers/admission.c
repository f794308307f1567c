/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/workers/admission.h"

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
	[RPC_RECENT] = 1,
	[RPC_ADMITTED] = 15,
};

/* A connection's word: generation of the exports, second until which the answer is valid, and
 * admission in the low bits. Zero, in a new connection, belongs to no generation. */
#define WORD_ADMISSION ((1u << RPC_ADMISSION_BITS) - 1)
#define WORD_UNTIL_SHIFT RPC_ADMISSION_BITS
#define WORD_UNTIL_BITS 30
#define WORD_GENERATION_SHIFT 32

struct host {
	LIST_ENTRY(host) link;
	TAILQ_ENTRY(host) age;
	struct rpc_address addr;
	uint64_t recent_until; /* second when it was last admitted; 0: it is admitted now */
};
LIST_HEAD(host_list, host);
TAILQ_HEAD(host_ages, host);

struct admission {
	struct admission_config cfg;
	struct rn_log_hosts told;
	uint8_t hash_key[crypto_shorthash_KEYBYTES];
	pthread_mutex_t lock; /* guards the members below; a leaf */
	struct host_list bucket[BUCKETS];
	struct host_ages ages; /* the one unseen for longest first */
	unsigned nhosts;
};

struct admission *admission_new(const struct admission_config *cfg)
{
	struct admission *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->cfg = *cfg;
	rn_log_hosts_init(&s->told);
	crypto_shorthash_keygen(s->hash_key);
	pthread_mutex_init(&s->lock, NULL);
	TAILQ_INIT(&s->ages);
	return s;
}

static void admission_drop_host(struct admission *s, struct host *h)
{
	LIST_REMOVE(h, link);
	TAILQ_REMOVE(&s->ages, h, age);
	s->nhosts--;
	free(h);
}

void admission_free(struct admission *s)
{
	struct host *h;

	if (!s)
		return;
	while ((h = TAILQ_FIRST(&s->ages)))
		admission_drop_host(s, h);
	rn_log_hosts_fini(&s->told);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static struct host_list *admission_bucket_of(struct admission *s, const struct rpc_address *addr)
{
	uint64_t h;

	crypto_shorthash((uint8_t *)&h, (const uint8_t *)addr, sizeof(*addr), s->hash_key);
	return &s->bucket[h & (BUCKETS - 1)];
}

static struct host *admission_find_host(struct host_list *list, const struct rpc_address *addr)
{
	struct host *h;

	LIST_FOREACH (h, list, link)
		if (rpc_address_equal(&h->addr, addr))
			break;
	return h;
}

/* Without memory the host counts as a stranger earlier. */
static void admission_remember(struct admission *s, const struct rpc_address *addr)
{
	struct host_list *list = admission_bucket_of(s, addr);
	struct host *h = admission_find_host(list, addr);

	if (h) {
		TAILQ_REMOVE(&s->ages, h, age);
	} else {
		h = calloc(1, sizeof(*h));
		if (!h)
			return;
		if (s->nhosts == HOSTS_MAX)
			admission_drop_host(s, TAILQ_FIRST(&s->ages));
		h->addr = *addr;
		LIST_INSERT_HEAD(list, h, link);
		s->nhosts++;
	}
	h->recent_until = 0;
	TAILQ_INSERT_TAIL(&s->ages, h, age);
}

/* The admission of a host that no export admits. */
static enum rpc_admission admission_of_refused(struct admission *s, const struct rpc_address *addr,
					       uint64_t now)
{
	struct host *h = admission_find_host(admission_bucket_of(s, addr), addr);

	if (!h)
		return RPC_STRANGER;
	if (!h->recent_until)
		h->recent_until = now + s->cfg.lease_seconds;
	if (now < h->recent_until)
		return RPC_RECENT;
	admission_drop_host(s, h);
	return RPC_STRANGER;
}

static enum rpc_admission admission_look(struct admission *s, const struct sockaddr_storage *peer,
					 uint64_t now)
{
	enum rpc_admission admission = RPC_UNKNOWN;
	struct rpc_address addr;
	int rc = exports_admit(s->cfg.exports, (const struct sockaddr *)peer);

	if (rc == -RN_EUNNAMED)
		return admission;
	rpc_address_of(peer, &addr);
	pthread_mutex_lock(&s->lock);
	if (!rc) {
		admission_remember(s, &addr);
		admission = RPC_ADMITTED;
	} else {
		admission = admission_of_refused(s, &addr, now);
	}
	pthread_mutex_unlock(&s->lock);
	return admission;
}

static void admission_log_change(struct admission *s, const struct rpc_conn *conn,
				 enum rpc_admission was, enum rpc_admission is, uint64_t now)
{
	char name[RPC_ADDRESS_TEXT];
	const struct rn_log_event event = { .id = RN_ID_HOST_REFUSED, .client = name };
	struct rn_host host;
	unsigned left_out;

	if (was == is || (is != RPC_STRANGER && is != RPC_RECENT))
		return;
	rn_host_of((const struct sockaddr *)&conn->peer, &host);
	if (!rn_log_hosts_pass(&s->told, &host, now * 1000000000u, &left_out))
		return;
	rpc_address_text(&conn->peer, name);
	rn_log_event(s->cfg.log, RN_NOTICE, &event, "%s: no export admits this host%s", name,
		     is == RPC_RECENT ? " any more: it may give back what it holds" : ": refused");
	if (left_out)
		rn_notice(s->cfg.log, "%u more such messages are not shown", left_out);
}

enum rpc_admission admission_of(void *admission, struct rpc_conn *conn)
{
	struct admission *s = admission;
	const uint64_t now = rn_now_coarse_seconds();
	const uint64_t generation = exports_generation(s->cfg.exports);
	const uint64_t word = atomic_load_explicit(&conn->admission, memory_order_relaxed);
	const uint64_t until = (word >> WORD_UNTIL_SHIFT) & ((1u << WORD_UNTIL_BITS) - 1);
	enum rpc_admission is;

	if (word >> WORD_GENERATION_SHIFT == generation && now < until)
		return (enum rpc_admission)(word & WORD_ADMISSION);
	is = admission_look(s, &conn->peer, now);
	admission_log_change(s, conn, (enum rpc_admission)(word & WORD_ADMISSION), is, now);
	atomic_store_explicit(&conn->admission,
			      generation << WORD_GENERATION_SHIFT |
				      (now + keep_seconds[is]) << WORD_UNTIL_SHIFT | is,
			      memory_order_relaxed);
	return is;
}

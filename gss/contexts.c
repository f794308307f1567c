/* SPDX-License-Identifier: BSD-2-Clause */
#include "gss/contexts.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "gss/hosts.h"
#include "gss/mech.h"
#include "lib/clock.h"
#include "rpc/principal.h"

/* The bit of a number is its remainder by the window's size. Numbers are above 0 from the first call that raises
 * `highest`; 0 itself has a bit like any other. */

static void gss_window_clear(struct gss_window *w, uint32_t seq)
{
	w->used[seq % GSS_WINDOW / 64] &= ~(UINT64_C(1) << seq % 64);
}

static bool gss_window_set(struct gss_window *w, uint32_t seq)
{
	uint64_t *word = &w->used[seq % GSS_WINDOW / 64];
	const uint64_t bit = UINT64_C(1) << seq % 64;
	const bool was = *word & bit;

	*word |= bit;
	return !was;
}

bool gss_window_take(struct gss_window *w, uint32_t seq)
{
	if (seq > w->highest) {
		if (seq - w->highest >= GSS_WINDOW)
			memset(w->used, 0, sizeof(w->used));
		else
			for (uint32_t s = w->highest + 1; s <= seq; s++)
				gss_window_clear(w, s);
		w->highest = seq;
	} else if (w->highest - seq >= GSS_WINDOW) {
		return false;
	}
	return gss_window_set(w, seq);
}

#define BUCKETS 4096u
#define EVICT_LOOK 64u /* least used contexts that eviction looks at */
#define SWEEP 4u       /* old contexts that each new one clears away, at most */

LIST_HEAD(bucket, gss_context);

struct gss_contexts {
	pthread_mutex_t lock; /* guards everything here, and the contexts' own links */
	unsigned max, established, half;
	unsigned grown_max, grown;
	uint64_t evicted;
	uint64_t (*now)(void);
	_Atomic uint64_t skipped;
	uint8_t key[crypto_shorthash_KEYBYTES];
	struct gss_use_list used, half_made; /* least used, and oldest, first */
	struct gss_use_list by_growth;
	struct bucket buckets[BUCKETS];
	struct gss_hosts hosts;
};

struct gss_contexts *gss_contexts_new(unsigned max, unsigned grown)
{
	struct gss_contexts *t = sodium_init() < 0 ? NULL : calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	if (!gss_hosts_init(&t->hosts, max)) {
		free(t);
		return NULL;
	}
	t->max = max;
	t->grown_max = grown;
	t->now = rn_now_ns;
	TAILQ_INIT(&t->used);
	TAILQ_INIT(&t->half_made);
	TAILQ_INIT(&t->by_growth);
	crypto_shorthash_keygen(t->key);
	pthread_mutex_init(&t->lock, NULL);
	return t;
}

void gss_contexts_set_clock(struct gss_contexts *t, uint64_t (*now)(void))
{
	t->now = now;
}

uint64_t gss_contexts_skipped(const struct gss_contexts *t)
{
	return atomic_load_explicit(&t->skipped, memory_order_acquire);
}

uint64_t gss_contexts_now(const struct gss_contexts *t)
{
	return t->now() + gss_contexts_skipped(t);
}

void gss_contexts_skip(struct gss_contexts *t, unsigned seconds)
{
	atomic_fetch_add_explicit(&t->skipped, seconds * RN_NS_PER_SECOND, memory_order_acq_rel);
}

struct gss_context *gss_context_new(struct gss_mech_ctx *mech)
{
	struct gss_context *c = calloc(1, sizeof(*c));

	if (!c) {
		gss_mech_ctx_free(mech);
		return NULL;
	}
	atomic_init(&c->refs, 1);
	pthread_mutex_init(&c->lock, NULL);
	gss_copies_init(&c->copies, mech);
	return c;
}

void gss_context_put(struct gss_context *c)
{
	if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) > 1)
		return;
	gss_copies_fini(&c->copies);
	rpc_principal_put(c->principal);
	rpc_principal_put(c->called);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static uint64_t gss_contexts_hash(const struct gss_contexts *t, const uint8_t bytes[16])
{
	uint64_t h;

	crypto_shorthash((uint8_t *)&h, bytes, 16, t->key);
	return h;
}

static struct bucket *gss_contexts_bucket_of(struct gss_contexts *t,
					     const uint8_t handle[GSS_HANDLE_SIZE])
{
	return &t->buckets[gss_contexts_hash(t, handle) % BUCKETS];
}

static void gss_contexts_count(struct gss_contexts *t, struct gss_context *c)
{
	*(c->established ? &t->established : &t->half) += 1;
	gss_hosts_add(&t->hosts, c->host, c->established);
}

static void not_grown(struct gss_contexts *t, struct gss_context *c)
{
	if (!c->grown)
		return;
	TAILQ_REMOVE(&t->by_growth, c, by_growth);
	c->grown = false;
	t->grown--;
}

/* Under the lock. The table's reference is the caller's afterwards. */
static void gss_contexts_unlist(struct gss_contexts *t, struct gss_context *c)
{
	LIST_REMOVE(c, of_bucket);
	TAILQ_REMOVE(c->established ? &t->used : &t->half_made, c, by_use);
	if (c->established)
		TAILQ_REMOVE(&c->host->used, c, of_host);
	*(c->established ? &t->established : &t->half) -= 1;
	gss_hosts_drop(&t->hosts, c->host, c->established);
	not_grown(t, c);
	c->listed = false;
	c->host = NULL;
}

static void gss_contexts_drop(struct gss_contexts *t, struct gss_context *c)
{
	gss_contexts_unlist(t, c);
	gss_context_put(c);
}

static bool gss_context_is_over(const struct gss_context *c, uint64_t now)
{
	const uint64_t idle =
		(c->established ? GSS_IDLE_SECONDS : GSS_HALF_SECONDS) * RN_NS_PER_SECOND;

	return now > c->used_ns + idle || (c->established && now > c->ends_ns);
}

static void gss_contexts_sweep(struct gss_contexts *t, struct gss_use_list *list, uint64_t now)
{
	struct gss_context *c;

	for (unsigned i = 0; i < SWEEP; i++) {
		c = TAILQ_FIRST(list);
		if (!c || !gss_context_is_over(c, now))
			return;
		gss_contexts_drop(t, c);
	}
}

/* The oldest half-made context of a host that has at least that many. Of none if no host has. */
static struct gss_context *oldest_half(const struct gss_contexts *t, unsigned least)
{
	struct gss_context *c;

	TAILQ_FOREACH (c, &t->half_made, by_use)
		if (c->host->half >= least)
			return c;
	return NULL;
}

/* Evicts the oldest half-made context of that host, or if host is NULL of one with most. The new context is counted already, and not in
 * the list yet, so it is not the one that goes. */
static void evict_half(struct gss_contexts *t, const struct gss_host *host)
{
	struct gss_context *c = NULL;

	for (unsigned least = GSS_HALF_HOST; !host && !c && least > 0; least--)
		c = oldest_half(t, least);
	if (host)
		TAILQ_FOREACH (c, &t->half_made, by_use)
			if (c->host == host)
				break;
	if (!c)
		return;
	gss_contexts_drop(t, c);
	t->evicted++;
}

/* A context of the host with most: if several hosts have as many, the least used one among those that come first. */
static void evict_established(struct gss_contexts *t)
{
	const struct gss_host *largest = gss_hosts_largest(&t->hosts);
	struct gss_context *c;
	unsigned n = 0;

	TAILQ_FOREACH (c, &t->used, by_use) {
		if (c->host->established == largest->established)
			break;
		if (++n == EVICT_LOOK) {
			c = TAILQ_FIRST(&largest->used);
			break;
		}
	}
	if (!c)
		c = TAILQ_FIRST(&largest->used);
	if (!c)
		return;
	gss_contexts_drop(t, c);
	t->evicted++;
}

/* Under the lock. c is counted already. */
static void gss_contexts_make_room(struct gss_contexts *t, const struct gss_context *c,
				   const struct gss_host *host, uint64_t now)
{
	gss_contexts_sweep(t, &t->used, now);
	gss_contexts_sweep(t, &t->half_made, now);
	if (c->established && t->established > t->max)
		evict_established(t);
	else if (!c->established && host->half > GSS_HALF_HOST)
		evict_half(t, host);
	else if (!c->established && t->half > GSS_HALF_MAX)
		evict_half(t, NULL);
}

bool gss_contexts_add(struct gss_contexts *t, struct gss_context *c, const struct rn_host *from)
{
	const uint64_t now = gss_contexts_now(t);
	struct gss_host *host;

	randombytes_buf(c->handle, sizeof(c->handle));
	pthread_mutex_lock(&t->lock);
	host = gss_hosts_get(&t->hosts, from);
	if (host) {
		/* Counted first, so that its last context's eviction does not free the host. */
		c->host = host;
		gss_contexts_count(t, c);
		gss_contexts_make_room(t, c, host, now);
		c->used_ns = now;
		c->listed = true;
		atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
		LIST_INSERT_HEAD(gss_contexts_bucket_of(t, c->handle), c, of_bucket);
		TAILQ_INSERT_TAIL(c->established ? &t->used : &t->half_made, c, by_use);
		if (c->established)
			TAILQ_INSERT_TAIL(&host->used, c, of_host);
	}
	pthread_mutex_unlock(&t->lock);
	return host;
}

struct gss_context *gss_contexts_find(struct gss_contexts *t, const uint8_t *handle, uint32_t len)
{
	struct gss_context *c;

	if (len != GSS_HANDLE_SIZE)
		return NULL;
	pthread_mutex_lock(&t->lock);
	LIST_FOREACH (c, gss_contexts_bucket_of(t, handle), of_bucket) {
		if (memcmp(c->handle, handle, GSS_HANDLE_SIZE) == 0)
			break;
	}
	if (c) {
		atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
		if (c->established) {
			c->used_ns = gss_contexts_now(t);
			TAILQ_REMOVE(&t->used, c, by_use);
			TAILQ_INSERT_TAIL(&t->used, c, by_use);
			TAILQ_REMOVE(&c->host->used, c, of_host);
			TAILQ_INSERT_TAIL(&c->host->used, c, of_host);
		}
	}
	pthread_mutex_unlock(&t->lock);
	return c;
}

void gss_contexts_remove(struct gss_contexts *t, struct gss_context *c)
{
	pthread_mutex_lock(&t->lock);
	const bool was = c->listed;
	if (was)
		gss_contexts_unlist(t, c);
	pthread_mutex_unlock(&t->lock);
	if (was)
		gss_context_put(c);
}

bool gss_contexts_may_grow(struct gss_contexts *t, struct gss_context *c)
{
	struct gss_context *oldest = NULL;
	bool may;

	pthread_mutex_lock(&t->lock);
	const uint64_t now = gss_contexts_now(t);

	may = c->listed && c->established && t->grown_max > 0 &&
	      (c->grown_ns == 0 || now > c->grown_ns + GSS_GROW_SECONDS * RN_NS_PER_SECOND);
	if (may) {
		c->grown_ns = now;
		not_grown(t, c);
		if (t->grown == t->grown_max) {
			oldest = TAILQ_FIRST(&t->by_growth);
			not_grown(t, oldest);
			atomic_fetch_add_explicit(&oldest->refs, 1, memory_order_relaxed);
		}
		c->grown = true;
		t->grown++;
		TAILQ_INSERT_TAIL(&t->by_growth, c, by_growth);
	}
	pthread_mutex_unlock(&t->lock);
	if (oldest)
		gss_copies_shrink(&oldest->copies);
	gss_context_put(oldest);
	return may;
}

bool gss_contexts_is_grown(struct gss_contexts *t, struct gss_context *c)
{
	pthread_mutex_lock(&t->lock);
	const bool grown = c->grown;
	pthread_mutex_unlock(&t->lock);
	return grown;
}

void gss_contexts_stats(struct gss_contexts *t, struct gss_contexts_stats *out)
{
	pthread_mutex_lock(&t->lock);
	*out = (struct gss_contexts_stats){ t->established, t->half, t->grown, t->evicted };
	pthread_mutex_unlock(&t->lock);
}

void gss_contexts_free(struct gss_contexts *t)
{
	struct gss_context *c;

	if (!t)
		return;
	while ((c = TAILQ_FIRST(&t->used)) || (c = TAILQ_FIRST(&t->half_made)))
		gss_contexts_drop(t, c);
	gss_hosts_fini(&t->hosts);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

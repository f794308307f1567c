/* SPDX-License-Identifier: BSD-2-Clause */
#include "gss/contexts.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "gss/mech.h"
#include "lib/clock.h"
#include "lib/util.h"
#include "rpc/principal.h"
#include "rpc/request.h"

/* The bit of a number is its remainder by the window's size. Clients begin with 1, as a rule; 0 has a bit like any other, and is never late. */

static uint64_t *gss_window_word(struct gss_window *w, uint32_t seq)
{
	return &w->used[seq % GSS_WINDOW / 64];
}

static bool gss_window_has(struct gss_window *w, uint32_t seq)
{
	return *gss_window_word(w, seq) >> seq % 64 & 1;
}

static bool gss_window_take_late(struct gss_window *w, uint32_t seq)
{
	for (unsigned i = 0; seq != 0 && i < GSS_LATE; i++)
		if (w->late[i] == seq) {
			w->late[i] = 0;
			return true;
		}
	return false;
}

/* Makes room from the lowest number. */
static void gss_window_put_late(struct gss_window *w, uint32_t seq)
{
	uint32_t *to = w->late;

	for (unsigned i = 1; *to != 0 && i < GSS_LATE; i++)
		if (w->late[i] < *to)
			to = &w->late[i];
	*to = seq;
}

/* Moves the window up to seq. Numbers that leave it without having come are kept as late. */
static void gss_window_move(struct gss_window *w, uint32_t seq)
{
	const uint32_t was = w->highest;
	const uint32_t last = seq > GSS_WINDOW ? rn_min(seq - GSS_WINDOW, was) : 0;

	for (uint32_t s = was >= GSS_WINDOW ? was - GSS_WINDOW + 1 : 1; s <= last; s++)
		if (!gss_window_has(w, s))
			gss_window_put_late(w, s);
	for (uint32_t i = 0; i < GSS_WINDOW && i < seq - was; i++)
		*gss_window_word(w, seq - i) &= ~(UINT64_C(1) << (seq - i) % 64);
	w->highest = seq;
}

bool gss_window_take(struct gss_window *w, uint32_t seq)
{
	if (seq > w->highest)
		gss_window_move(w, seq);
	else if (w->highest - seq >= GSS_WINDOW)
		return gss_window_take_late(w, seq);
	if (gss_window_has(w, seq))
		return false;
	*gss_window_word(w, seq) |= UINT64_C(1) << seq % 64;
	return true;
}

#define BUCKETS 4096u
#define SWEEP 4u /* old contexts that each new one clears away, at most */

LIST_HEAD(bucket, gss_context);

struct gss_contexts {
	pthread_mutex_t lock; /* guards everything here, and the contexts' own links */
	unsigned grown_max, grown;
	uint64_t (*now)(void);
	_Atomic uint64_t skipped;
	uint8_t key[crypto_shorthash_KEYBYTES];
	struct gss_use_list used, half_made; /* least used, and oldest, first */
	struct gss_use_list by_growth;
	struct bucket buckets[BUCKETS];
	struct rn_quota established, half; /* contexts of the two lists */
};

struct gss_contexts *gss_contexts_new(unsigned max, unsigned grown)
{
	struct gss_contexts *t = sodium_init() < 0 ? NULL : calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	rn_quota_init(&t->established, max, 0);
	rn_quota_init(&t->half, GSS_HALF_MAX, GSS_HALF_HOST);
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

void gss_host_of(const struct rpc_conn *conn, struct rn_host *host)
{
	if (conn->ops->datagrams)
		memset(host, 0xff, sizeof(*host));
	else
		rn_host_of((const struct sockaddr *)&conn->peer, host);
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

static struct rn_quota *gss_contexts_quota(struct gss_contexts *t, const struct gss_context *c)
{
	return c->established ? &t->established : &t->half;
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
	rn_quota_remove(gss_contexts_quota(t, c), &c->place);
	not_grown(t, c);
	c->listed = false;
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

/* Under the lock. Takes c into its quota; others make room. */
static bool gss_contexts_take_in(struct gss_contexts *t, struct gss_context *c,
				 const struct rn_host *from)
{
	struct rn_quota *q = gss_contexts_quota(t, c);
	struct rn_quota_item *old;

	while ((old = rn_quota_in_the_way(q, from, true, 1)) != NULL)
		gss_contexts_drop(t, rn_container_of(old, struct gss_context, place));
	return rn_quota_add(q, from, true, &c->place, 1);
}

bool gss_contexts_restore(struct gss_contexts *t, struct gss_context *c, const struct rn_host *from,
			  uint64_t idle_ns)
{
	const uint64_t now = gss_contexts_now(t);

	pthread_mutex_lock(&t->lock);
	gss_contexts_sweep(t, &t->used, now);
	gss_contexts_sweep(t, &t->half_made, now);
	const bool taken = gss_contexts_take_in(t, c, from);

	if (taken) {
		c->from = *from;
		c->used_ns = now - rn_min(now, idle_ns);
		c->listed = true;
		atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
		LIST_INSERT_HEAD(gss_contexts_bucket_of(t, c->handle), c, of_bucket);
		TAILQ_INSERT_TAIL(c->established ? &t->used : &t->half_made, c, by_use);
	}
	pthread_mutex_unlock(&t->lock);
	return taken;
}

bool gss_contexts_add(struct gss_contexts *t, struct gss_context *c, const struct rn_host *from)
{
	randombytes_buf(c->handle, sizeof(c->handle));
	return gss_contexts_restore(t, c, from, 0);
}

void gss_contexts_each(struct gss_contexts *t, void (*fn)(void *arg, struct gss_context *c),
		       void *arg)
{
	struct gss_context *c;

	pthread_mutex_lock(&t->lock);
	TAILQ_FOREACH (c, &t->used, by_use)
		fn(arg, c);
	pthread_mutex_unlock(&t->lock);
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
			rn_quota_renew(&t->established, &c->place);
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
	*out = (struct gss_contexts_stats){
		.established = (unsigned)t->established.used,
		.half = (unsigned)t->half.used,
		.grown = t->grown,
		.evicted = t->established.pushed_out + t->half.pushed_out,
	};
	pthread_mutex_unlock(&t->lock);
}

void gss_contexts_free(struct gss_contexts *t)
{
	struct gss_context *c;

	if (!t)
		return;
	while ((c = TAILQ_FIRST(&t->used)) || (c = TAILQ_FIRST(&t->half_made)))
		gss_contexts_drop(t, c);
	rn_quota_fini(&t->established);
	rn_quota_fini(&t->half);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

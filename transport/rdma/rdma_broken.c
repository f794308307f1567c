/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/rdma/rdma_broken.h"

#include <string.h>

#include "lib/util.h"

#define AGE_NS (RR_BROKEN_SECONDS * 1000000000ull)

void rr_broken_init(struct rr_broken *b)
{
	memset(b, 0, sizeof(*b));
	pthread_mutex_init(&b->lock, NULL);
	rn_quota_init(&b->quota, RR_BROKEN_CALLS, RR_BROKEN_OF_HOST);
	crypto_onetimeauth_keygen(b->key);
}

static void add_words(crypto_onetimeauth_state *s, uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t words[] = { a, b, c };

	crypto_onetimeauth_update(s, (const uint8_t *)words, sizeof(words));
}

static void add_segment(crypto_onetimeauth_state *s, const struct rr_segment *seg)
{
	add_words(s, seg->handle, seg->length, seg->offset);
}

static void rr_broken_sum_chunk(crypto_onetimeauth_state *s, const struct rr_header *h,
				const struct rr_write_chunk *c)
{
	add_words(s, c->nsegs, 0, 0);
	for (unsigned i = 0; i < c->nsegs; i++)
		add_segment(s, &h->seg[c->first + i]);
}

/* As in rpc/drc.c, Poly1305 is a sum under a secret key that is never disclosed. */
static void sum_lists(const struct rr_broken *b, const struct rr_header *h,
		      uint8_t sum[crypto_onetimeauth_BYTES])
{
	crypto_onetimeauth_state s;

	crypto_onetimeauth_init(&s, b->key);
	add_words(&s, h->proc, h->nreads, (uint64_t)h->nwrites << 1 | h->has_reply);
	for (unsigned i = 0; i < h->nreads; i++) {
		add_words(&s, h->read[i].position, 0, 0);
		add_segment(&s, &h->read[i].target);
	}
	for (unsigned i = 0; i < h->nwrites; i++)
		rr_broken_sum_chunk(&s, h, &h->write[i]);
	if (h->has_reply)
		rr_broken_sum_chunk(&s, h, &h->reply);
	crypto_onetimeauth_final(&s, sum);
}

static bool is_of(const struct rr_broken_call *c, const struct rpc_address *client)
{
	return rpc_address_equal(&c->client, client);
}

static bool rr_broken_is_old(const struct rr_broken_call *c, uint64_t now)
{
	return !c->since_ns || now > c->since_ns + AGE_NS;
}

/* Under the lock. */
static void rr_broken_forget(struct rr_broken *b, struct rr_broken_call *c)
{
	rn_quota_remove(&b->quota, &c->place);
	c->since_ns = 0;
}

/* Under the lock. Its place counts as its host's. NULL: no memory. */
static struct rr_broken_call *rr_broken_enter(struct rr_broken *b, const struct rr_broken_call *new,
					      uint64_t now)
{
	struct rr_broken_call *c = b->call;
	struct rn_quota_item *old;
	struct rn_host host;

	rn_host_of_mapped(new->client.bytes, new->client.scope, &host);
	for (unsigned i = 0; i < RR_BROKEN_CALLS; i++)
		if (b->call[i].since_ns && rr_broken_is_old(&b->call[i], now))
			rr_broken_forget(b, &b->call[i]);
	while ((old = rn_quota_in_the_way(&b->quota, &host, true, 1)) != NULL)
		rr_broken_forget(b, rn_container_of(old, struct rr_broken_call, place));
	while (c->since_ns)
		c++;
	*c = *new;
	return rn_quota_add(&b->quota, &host, true, &c->place, 1) ? c : NULL;
}

/* Under the lock. */
static struct rr_broken_call *rr_broken_find(struct rr_broken *b, const struct rr_broken_call *like,
					     uint64_t now)
{
	for (unsigned i = 0; i < b->n; i++) {
		struct rr_broken_call *c = &b->call[i];

		if (!rr_broken_is_old(c, now) && c->xid == like->xid && is_of(c, &like->client) &&
		    memcmp(c->sum, like->sum, sizeof(c->sum)) == 0)
			return c;
	}
	return NULL;
}

void rr_broken_add(struct rr_broken *b, const struct rpc_address *client,
		   const struct rr_header *call, enum rr_blame blame, uint64_t now)
{
	struct rr_broken_call new = { .client = *client, .xid = call->xid };

	sum_lists(b, call, new.sum);
	pthread_mutex_lock(&b->lock);
	struct rr_broken_call *c = rr_broken_find(b, &new, now);

	if (c)
		rn_quota_renew(&b->quota, &c->place);
	else
		c = rr_broken_enter(b, &new, now);
	if (c) {
		c->blame += blame;
		c->since_ns = now;
		b->n = (unsigned)rn_max(b->n, (size_t)(c - b->call) + 1);
	}
	pthread_mutex_unlock(&b->lock);
}

bool rr_broken_has(struct rr_broken *b, const struct rpc_address *client,
		   const struct rr_header *call, uint64_t now)
{
	struct rr_broken_call like = { .client = *client, .xid = call->xid };

	if (atomic_load_explicit(&b->n, memory_order_relaxed) == 0 ||
	    (!call->nreads && !call->nwrites && !call->has_reply))
		return false;
	sum_lists(b, call, like.sum);
	pthread_mutex_lock(&b->lock);
	const struct rr_broken_call *c = rr_broken_find(b, &like, now);
	const bool has = c && c->blame >= RR_PROVEN;

	while (b->n && rr_broken_is_old(&b->call[b->n - 1], now))
		b->n--;
	pthread_mutex_unlock(&b->lock);
	return has;
}

void rr_broken_fini(struct rr_broken *b)
{
	for (unsigned i = 0; i < RR_BROKEN_CALLS; i++)
		if (b->call[i].since_ns)
			rr_broken_forget(b, &b->call[i]);
	rn_quota_fini(&b->quota);
	pthread_mutex_destroy(&b->lock);
}

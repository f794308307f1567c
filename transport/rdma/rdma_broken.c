/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/rdma/rdma_broken.h"

#include <string.h>

#define AGE_NS (RR_BROKEN_SECONDS * 1000000000ull)

void rr_broken_init(struct rr_broken *b)
{
	memset(b, 0, sizeof(*b));
	pthread_mutex_init(&b->lock, NULL);
	crypto_onetimeauth_keygen(b->key);
}

void rr_broken_fini(struct rr_broken *b)
{
	pthread_mutex_destroy(&b->lock);
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

/*
 * A free place, or the client's oldest if it has its share, or the oldest of all. Under the lock.
 */
static struct rr_broken_call *place_for(struct rr_broken *b, const struct rpc_address *client,
					uint64_t now)
{
	struct rr_broken_call *none = NULL, *own = NULL, *oldest = &b->call[0];
	unsigned n = 0;

	for (unsigned i = 0; i < RR_BROKEN_CALLS; i++) {
		struct rr_broken_call *c = &b->call[i];

		if (rr_broken_is_old(c, now)) {
			none = none ? none : c;
			continue;
		}
		if (c->since_ns < oldest->since_ns)
			oldest = c;
		if (!is_of(c, client))
			continue;
		n++;
		if (!own || c->since_ns < own->since_ns)
			own = c;
	}
	if (n >= RR_BROKEN_OF_CLIENT)
		return own;
	return none ? none : oldest;
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
	struct rr_broken_call new = { .client = *client, .xid = call->xid, .since_ns = now };

	sum_lists(b, call, new.sum);
	pthread_mutex_lock(&b->lock);
	struct rr_broken_call *c = rr_broken_find(b, &new, now);
	const unsigned before = c ? c->blame : 0;

	if (!c)
		c = place_for(b, client, now);
	*c = new;
	c->blame = before + blame;
	if (c >= &b->call[b->n])
		b->n = (unsigned)(c - b->call) + 1;
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

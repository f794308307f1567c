/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash of a call, which tells a retry from another call with the same slot and sequence number
 * (RFC 8881 section 2.10.6.1.3.1). It takes blocks of a fixed size, so that the result does not
 * depend on how the transport split the call.
 */
#include <sodium.h>
#include <string.h>

#include "lib/util.h"
#include "nfs4/client/session.h"
#include "nfs4/compound.h"
#include "nfs4/server.h"
#include "rpc/principal.h"

#define BLOCK 1024u
#define FIRST_BYTES 256u
#define CALLER_WORDS 7u

struct sum {
	const uint8_t *key;
	uint64_t h;
	bool begun; /* h covers the blocks before */
	uint32_t fill;
	uint8_t block[BLOCK];
};

static void add_block(struct sum *s, const uint8_t *p, uint32_t len)
{
	uint64_t words[3] = { s->h, 0, len };

	crypto_shorthash((uint8_t *)&words[1], p, len, s->key);
	if (s->begun)
		crypto_shorthash((uint8_t *)&s->h, (const uint8_t *)words, sizeof(words), s->key);
	else
		s->h = words[1];
	s->begun = true;
}

static void add(struct sum *s, const uint8_t *p, size_t len)
{
	while (len > 0) {
		uint32_t n = (uint32_t)rn_min(len, BLOCK - s->fill);

		if (n == BLOCK) {
			add_block(s, p, BLOCK);
		} else {
			memcpy(s->block + s->fill, p, n);
			s->fill += n;
		}
		if (s->fill == BLOCK) {
			add_block(s, s->block, BLOCK);
			s->fill = 0;
		}
		p += n;
		len -= n;
	}
}

/* Adds an item. A chunk's item lacks the padding that it has in a stream, so it is added here. */
static void add_segment(struct sum *s, const struct rpc_seg *seg, uint32_t from, size_t len)
{
	static const uint8_t zeros[4];

	add(s, seg->base + from, len);
	if (seg->placed)
		add(s, zeros, rn_xdr_pad((uint32_t)len));
}

/* The credential and the call's properties outside its arguments. The third word tells their
 * length. */
struct caller_words {
	uint32_t w[CALLER_WORDS + RPC_AUTH_SYS_GIDS_MAX];
	uint32_t n;
};

static void put_caller(const struct nfs4_compound *c, struct caller_words *out)
{
	const struct rpc_cred *cred = &c->req->call.cred;
	const uint32_t first[CALLER_WORDS] = {
		c->minor,
		c->nops,
		cred->ngids,
		cred->uid,
		cred->gid,
		(uint32_t)cred->sec,
		(uint32_t)cred->protection,
	};

	memcpy(out->w, first, sizeof(first));
	memcpy(out->w + CALLER_WORDS, cred->gids, cred->ngids * sizeof(cred->gids[0]));
	out->n = CALLER_WORDS + cred->ngids;
}

static uint64_t whole_sum(const struct nfs4_compound *c, const struct caller_words *caller)
{
	const struct rpc_principal *who = c->req->call.cred.principal;
	const struct xdr_in *in = c->in;
	size_t left = in->left;
	uint32_t from = in->off;
	struct sum s;

	s.key = c->server->hash_key;
	s.begun = false;
	s.fill = 0;
	add(&s, (const uint8_t *)caller->w, caller->n * sizeof(caller->w[0]));
	if (who)
		add(&s, (const uint8_t *)who->name, who->len);
	for (unsigned i = in->cur; i < in->nseg && left > 0; i++, from = 0) {
		const size_t n = rn_min(in->seg[i].len - from, left);

		add_segment(&s, &in->seg[i], from, n);
		left -= n;
	}
	if (s.fill > 0)
		add_block(&s, s.block, s.fill);
	return s.h;
}

static uint64_t mix_words(uint64_t h, const uint64_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		h = (h ^ words[i]) * 0x9e3779b97f4a7c15u;
		h ^= h >> 32;
	}
	return h;
}

/* Not cryptographic: a client that sends another call as a retry is only answered that its reply
 * was not kept, instead of an error for a false retry. */
static uint64_t first_sum(const struct nfs4_compound *c, const struct caller_words *caller)
{
	uint64_t words[(sizeof(caller->w) + FIRST_BYTES) / sizeof(uint64_t) + 1];
	const struct xdr_in *in = c->in;
	size_t at = caller->n * sizeof(caller->w[0]);
	size_t left = rn_min(in->left, FIRST_BYTES);
	uint32_t from = in->off;

	memcpy(words, caller->w, at);
	/* Stops at data of a chunk, which another transport may deliver in another way. */
	for (unsigned i = in->cur; i < in->nseg && left > 0 && !in->seg[i].placed; i++, from = 0) {
		const size_t n = rn_min(in->seg[i].len - from, left);

		memcpy((uint8_t *)words + at, in->seg[i].base + from, n);
		at += n;
		left -= n;
	}
	while (at % sizeof(words[0]) != 0)
		((uint8_t *)words)[at++] = 0;
	return mix_words(0, words, at / sizeof(words[0]));
}

uint64_t nfs4_call_sum(const struct nfs4_compound *c, bool whole)
{
	struct caller_words caller;

	put_caller(c, &caller);
	return whole ? whole_sum(c, &caller) : first_sum(c, &caller);
}

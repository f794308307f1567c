/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tells a retry from another call under the same slot and sequence number (RFC 8881 section
 * 2.10.6.1.3.1). The hash goes by blocks of one size, so that it does not depend on how the
 * transport has cut the call.
 */
#include <string.h>

#include "lib/checked.h"
#include "nfs4/client/slot.h"
#include "nfs4/client/table.h"
#include "nfs4/compound.h"

#define BLOCK 1024u
#define FIRST_BYTES 256u

struct sum {
	const uint8_t *key;
	uint64_t h;
	uint32_t fill;
	uint8_t block[BLOCK];
};

static void add_block(struct sum *s, const uint8_t *p, uint32_t len)
{
	uint64_t words[3] = { s->h, 0, len };

	crypto_shorthash((uint8_t *)&words[1], p, len, s->key);
	crypto_shorthash((uint8_t *)&s->h, (const uint8_t *)words, sizeof(words), s->key);
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

/* A chunk's item is without the pad that it has in a stream. */
static void add_segment(struct sum *s, const struct rpc_seg *seg, uint32_t from, size_t len)
{
	static const uint8_t zeros[4];

	add(s, seg->base + from, len);
	if (seg->ddp)
		add(s, zeros, rn_xdr_pad((uint32_t)len));
}

uint64_t nfs4_call_sum(const struct nfs4_compound *c, bool whole)
{
	const struct xdr_in *in = c->in;
	size_t left = whole ? in->left : rn_min(in->left, FIRST_BYTES);
	uint32_t from = in->off;
	struct sum s;

	s.key = c->server->clients->key;
	s.h = nfs4_credential_hash(c, (uint64_t)c->minor << 32 | c->nops);
	s.fill = 0;
	for (unsigned i = in->cur; i < in->nseg && left > 0; i++, from = 0) {
		const size_t n = rn_min(in->seg[i].len - from, left);

		/* By another transport the data may come otherwise. */
		if (!whole && in->seg[i].ddp)
			break;
		add_segment(&s, &in->seg[i], from, n);
		left -= n;
	}
	if (s.fill > 0)
		add_block(&s, s.block, s.fill);
	return s.h;
}

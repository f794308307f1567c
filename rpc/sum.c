/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/sum.h"

#include <sodium.h>

#include "lib/util.h"
#include "rpc/request.h"

void rpc_sum_draw(struct rpc_sum_secret *secret)
{
	randombytes_buf(secret->bytes, sizeof(secret->bytes));
}

void rpc_sum_begin(struct rpc_sum *s, const struct rpc_sum_secret *secret)
{
	XXH3_128bits_reset_withSecret(&s->state, secret->bytes, sizeof(secret->bytes));
}

void rpc_sum_add(struct rpc_sum *s, const void *bytes, size_t len)
{
	if (len > 0)
		XXH3_128bits_update(&s->state, bytes, len);
}

size_t rpc_sum_add_segments(struct rpc_sum *s, const struct rpc_seg *seg, unsigned n, size_t skip,
			    size_t most)
{
	static const uint8_t zeros[4];
	size_t left = most;

	for (unsigned i = 0; i < n && left > 0; i++) {
		const size_t head = rn_min(skip, seg[i].len), len = rn_min(seg[i].len - head, left);
		const size_t pad = rn_min(seg[i].placed ? rn_xdr_pad(seg[i].len) : 0, left - len);

		skip -= head;
		left -= len + pad;
		rpc_sum_add(s, seg[i].base + head, len);
		rpc_sum_add(s, zeros, pad);
	}
	return most - left;
}

struct rpc_sum_value rpc_sum_end(const struct rpc_sum *s)
{
	const XXH128_hash_t h = XXH3_128bits_digest(&s->state);

	return (struct rpc_sum_value){ h.low64, h.high64 };
}

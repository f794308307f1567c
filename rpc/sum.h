/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sums of calls, which tell a call that was sent again from another one: for the duplicate request cache, and for the
 * slots of NFSv4.1 (RFC 8881 section 2.10.6.1.3.1). XXH3 is no cryptographic hash, but its secret is drawn at start and no
 * sum is told, so nobody can search for two calls with one sum.
 */
#ifndef RN_RPC_SUM_H
#define RN_RPC_SUM_H

#include <stddef.h>
#include <stdint.h>

#define XXH_INLINE_ALL /* the library leaves the state's size to whoever compiles it */
#include <xxhash.h>

struct rpc_seg;

struct rpc_sum_secret {
	uint8_t bytes[XXH3_SECRET_SIZE_MIN];
};
void rpc_sum_draw(struct rpc_sum_secret *secret);

struct rpc_sum {
	XXH3_state_t state;
};
/* Two words, so that it can be part of a key that is compared as bytes. */
struct rpc_sum_value {
	uint64_t low, high;
};

void rpc_sum_begin(struct rpc_sum *s, const struct rpc_sum_secret *secret);
void rpc_sum_add(struct rpc_sum *s, const void *bytes, size_t len);
/* Adds at most `most` bytes behind the first `skip` of the segments, as if all of them had come inline: a placed item lacks its
 * pad, which counts as if it were there. Returns how many bytes that is. */
size_t rpc_sum_add_segments(struct rpc_sum *s, const struct rpc_seg *seg, unsigned n, size_t skip,
			    size_t most);
struct rpc_sum_value rpc_sum_end(const struct rpc_sum *s);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#include <string.h>

#include "transport/rdma/rdma_private_msg.h"

#define PRIVATE_VERSION 1u
#define PRIVATE_R_BIT 1u
#define PRIVATE_UNIT 1024u

static const uint8_t private_magic[4] = { 0xf6, 0xab, 0x0e, 0x18 };

static uint8_t encode_size(uint32_t size)
{
	if (size < RR_INLINE_MIN)
		size = RR_INLINE_MIN;
	if (size > RR_INLINE_MAX)
		size = RR_INLINE_MAX;
	return (uint8_t)(size / PRIVATE_UNIT - 1);
}

static uint32_t decode_size(uint8_t v)
{
	return ((uint32_t)v + 1) * PRIVATE_UNIT;
}

void rr_private_encode(const struct rr_private_msg *m, uint8_t out[RR_PRIVATE_MSG_SIZE])
{
	memcpy(out, private_magic, sizeof(private_magic));
	out[4] = PRIVATE_VERSION;
	out[5] = m->remote_invalidate ? PRIVATE_R_BIT : 0;
	out[6] = encode_size(m->send_size);
	out[7] = encode_size(m->recv_size);
}

bool rr_private_find(const void *data, size_t len, struct rr_private_msg *m)
{
	const uint8_t *p = data;

	*m = (struct rr_private_msg){ false, RR_INLINE_MIN, RR_INLINE_MIN };
	if (!p)
		return false;
	for (size_t at = 0; len - at >= RR_PRIVATE_MSG_SIZE && at < len; at++) {
		const uint8_t *q = p + at;
		/* The magic with an unknown version is other data: search on. */
		if (memcmp(q, private_magic, sizeof(private_magic)) || q[4] != PRIVATE_VERSION)
			continue;
		m->remote_invalidate = q[5] & PRIVATE_R_BIT;
		m->send_size = decode_size(q[6]);
		m->recv_size = decode_size(q[7]);
		return true;
	}
	return false;
}

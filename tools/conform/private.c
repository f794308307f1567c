/* SPDX-License-Identifier: BSD-2-Clause */
/* The private message of connection establishment: RFC 8797 sections 4 and 5. */
#include <string.h>

#include "tools/conform/conform_conn.h"

static const uint8_t format_id[4] = { 0xf6, 0xab, 0x0e, 0x18 };

bool cf_private_find(const void *data, size_t len, struct cf_private *p)
{
	const uint8_t *b = data;

	*p = (struct cf_private){ .send_size = CF_INLINE_MIN, .recv_size = CF_INLINE_MIN };
	for (size_t i = 0; i + CF_PRIVATE_SIZE <= len; i++) {
		if (memcmp(b + i, format_id, sizeof(format_id)) != 0)
			continue;
		p->version = b[i + 4];
		p->flags = b[i + 5];
		if (p->version != 1)
			return false;
		p->found = true;
		p->invalidate = p->flags & 1;
		p->send_size = (b[i + 6] + 1u) * 1024u;
		p->recv_size = (b[i + 7] + 1u) * 1024u;
		return true;
	}
	return false;
}

void cf_private_encode(uint8_t out[CF_PRIVATE_SIZE], bool invalidate, uint32_t send_size,
		       uint32_t recv_size)
{
	memcpy(out, format_id, sizeof(format_id));
	out[4] = 1;
	out[5] = invalidate;
	out[6] = send_size / 1024 - 1;
	out[7] = recv_size / 1024 - 1;
}

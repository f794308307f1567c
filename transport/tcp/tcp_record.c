/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/tcp/tcp_record.h"

#include <string.h>

#include "lib/util.h"

#define MARK_LAST 0x80000000u

void tcp_record_start(struct tcp_record *r, uint32_t max)
{
	memset(r, 0, sizeof(*r));
	r->max = max;
}

static enum tcp_record_state open_fragment(struct tcp_record *r)
{
	uint32_t mark = rn_get32(r->mark);
	uint32_t len = mark & ~MARK_LAST;

	r->mark_len = 0;
	if (len > r->max - r->total)
		return TCP_RECORD_TOO_LONG;
	if (!len && ++r->empties > TCP_RECORD_EMPTY_MAX)
		return TCP_RECORD_TOO_EMPTY;
	r->total += len;
	r->frag_left = len;
	r->last = mark & MARK_LAST;
	r->in_frag = true;
	return TCP_RECORD_DATA;
}

enum tcp_record_state tcp_record_feed(struct tcp_record *r, const uint8_t **p, size_t *n)
{
	for (;;) {
		if (r->in_frag && r->frag_left)
			return TCP_RECORD_DATA;
		if (r->in_frag && r->last)
			return TCP_RECORD_END;
		r->in_frag = false;
		while (*n && r->mark_len < sizeof(r->mark)) {
			r->mark[r->mark_len++] = *(*p)++;
			(*n)--;
		}
		if (r->mark_len < sizeof(r->mark))
			return TCP_RECORD_MARK;
		enum tcp_record_state st = open_fragment(r);
		if (st != TCP_RECORD_DATA)
			return st;
	}
}

void tcp_record_took(struct tcp_record *r, uint32_t len)
{
	r->frag_left -= len;
}

bool tcp_record_idle(const struct tcp_record *r)
{
	return !r->in_frag && !r->mark_len && !r->total && !r->empties;
}

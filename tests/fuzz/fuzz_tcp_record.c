/* SPDX-License-Identifier: BSD-2-Clause */
/* Record marking: a stream gives the same records whole and in pieces of the size that the first
 * byte gives, and none above the limit. */
#include <stdint.h>
#include <stdlib.h>

#include "transport/tcp/tcp_record.h"

#define MAX_RECORD 100000u

struct sum {
	uint64_t hash; /* over the data and the ends of records */
	uint32_t bytes;
	bool bad;
};

static void mix(struct sum *s, uint32_t v)
{
	s->hash = (s->hash ^ v) * 1099511628211u;
}

static void feed(struct tcp_record *r, struct sum *s, const uint8_t *p, size_t n)
{
	for (;;) {
		enum tcp_record_state st = tcp_record_feed(r, &p, &n);

		if (st == TCP_RECORD_END) {
			mix(s, 256);
			s->bytes = 0;
			tcp_record_start(r, MAX_RECORD);
		} else if (st == TCP_RECORD_DATA && n) {
			mix(s, *p++);
			n--;
			tcp_record_took(r, 1);
			if (++s->bytes > MAX_RECORD)
				abort();
		} else {
			s->bad = st != TCP_RECORD_DATA && st != TCP_RECORD_MARK;
			return;
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tcp_record whole, cut;
	struct sum a = { 0 }, b = { 0 };

	if (!size)
		return 0;
	size_t step = data[0] + 1u;

	tcp_record_start(&whole, MAX_RECORD);
	feed(&whole, &a, data + 1, size - 1);
	tcp_record_start(&cut, MAX_RECORD);
	for (size_t at = 1; at < size && !b.bad; at += step)
		feed(&cut, &b, data + at, size - at < step ? size - at : step);
	if (a.hash != b.hash || a.bad != b.bad)
		abort();
	return 0;
}

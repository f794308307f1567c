/* SPDX-License-Identifier: BSD-2-Clause */
/* Assembly of a call's payload stream from inline bytes and Read chunks. */
#include <criterion/criterion.h>
#include <string.h>

#include "transport/rdma/rdma_chunks.h"

static const struct rr_call_limits limits = { 2u << 20, 2u << 20 };

static struct rr_header h;
static struct rr_call_plan p;

struct row {
	uint32_t position, length;
};

static const char *plan(enum rr_proc proc, uint32_t inline_len, const struct row *rows, unsigned n)
{
	h.proc = proc;
	h.nreads = n;
	for (unsigned i = 0; i < n; i++)
		h.read[i] = (struct rr_read_segment){ rows[i].position,
						      { i, rows[i].length, i * 0x10000ull } };
	return rr_plan_call(&h, inline_len, &limits, &p);
}

#define PLAN(proc, inline_len, ...)                                                                \
	plan(proc, inline_len, (struct row[]){ __VA_ARGS__ },                                      \
	     sizeof((struct row[]){ __VA_ARGS__ }) / sizeof(struct row))

static void is_stream(unsigned i, uint32_t off, uint32_t len)
{
	cr_assert_lt(i, p.npieces);
	cr_assert(!p.piece[i].chunk, "piece %u", i);
	cr_assert_eq(p.piece[i].off, off, "piece %u: off %u", i, p.piece[i].off);
	cr_assert_eq(p.piece[i].len, len, "piece %u: len %u", i, p.piece[i].len);
}

static void is_chunk(unsigned i, unsigned index)
{
	cr_assert_lt(i, p.npieces);
	cr_assert(p.piece[i].chunk, "piece %u", i);
	cr_assert_eq(p.piece[i].index, index, "piece %u", i);
}

Test(call_plan, no_chunks)
{
	cr_assert_null(plan(RR_MSG, 120, NULL, 0));
	cr_assert_eq(p.npieces, 1);
	is_stream(0, 0, 120);
	cr_assert_eq(p.buf_size, 0u);
}

Test(call_plan, nothing_at_all)
{
	cr_assert_null(plan(RR_MSG, 0, NULL, 0));
	cr_assert_eq(p.npieces, 0);
}

Test(call_plan, linux_write)
{
	/* Data as the last argument: no inline bytes behind it, and no padding. */
	cr_assert_null(PLAN(RR_MSG, 152, { 152, 4097 }));
	cr_assert_eq(p.npieces, 2);
	is_stream(0, 0, 152);
	is_chunk(1, 0);
	cr_assert_eq(p.buf_size, 4097u);
	cr_assert_eq(p.chunk[0].nsegs, 1);
}

Test(call_plan, segments_of_one_position_are_one_chunk)
{
	cr_assert_null(PLAN(RR_MSG, 160, { 152, 4096 }, { 152, 0 }, { 152, 100 }, { 152, 3 }));
	cr_assert_eq(p.nchunks, 1);
	cr_assert_eq(p.chunk[0].length, 4199u);
	cr_assert_eq(p.chunk[0].nsegs, 4);
	cr_assert_eq(p.npieces, 3);
	is_stream(2, 152, 8);
}

Test(call_plan, later_positions_count_the_pad)
{
	/* 40 inline, 5 by chunk + 3 pad, 12 inline, 7 by chunk + 1 pad, 8 inline. */
	cr_assert_null(PLAN(RR_MSG, 60, { 40, 5 }, { 60, 7 }));
	cr_assert_eq(p.npieces, 5);
	is_stream(0, 0, 40);
	is_chunk(1, 0);
	is_stream(2, 40, 12);
	is_chunk(3, 1);
	is_stream(4, 52, 8);
	cr_assert_eq(p.chunk[1].buf_off, RR_CHUNK_ALIGN);
	cr_assert_eq(p.buf_size, RR_CHUNK_ALIGN + 7);
}

Test(call_plan, pad_sent_in_the_chunk_counts_once)
{
	cr_assert_null(PLAN(RR_MSG, 60, { 40, 8 }, { 60, 8 }));
	is_stream(2, 40, 12);
	is_stream(4, 52, 8);
}

Test(call_plan, order_of_the_list_does_not_matter)
{
	cr_assert_null(PLAN(RR_MSG, 60, { 60, 7 }, { 40, 4 }, { 60, 1 }, { 40, 1 }));
	cr_assert_eq(p.nchunks, 2);
	cr_assert_eq(p.chunk[0].position, 40u);
	/* The order of segments within a chunk matters. */
	cr_assert_eq(h.read[0].target.handle, 1u);
	cr_assert_eq(h.read[1].target.handle, 3u);
	cr_assert_eq(h.read[2].target.handle, 0u);
	cr_assert_eq(h.read[3].target.handle, 2u);
	cr_assert_eq(p.chunk[1].length, 8u);
}

Test(call_plan, chunks_may_touch)
{
	cr_assert_null(PLAN(RR_MSG, 44, { 40, 8 }, { 48, 8 }));
	is_stream(0, 0, 40);
	is_chunk(1, 0);
	is_chunk(2, 1);
	is_stream(3, 40, 4);
}

Test(call_plan, empty_chunk_has_no_piece)
{
	cr_assert_null(PLAN(RR_MSG, 60, { 40, 0 }));
	cr_assert_eq(p.npieces, 1);
	is_stream(0, 0, 60);
	cr_assert_eq(p.buf_size, 0u);
}

Test(call_plan, bad_positions)
{
	cr_assert_not_null(PLAN(RR_MSG, 60, { 41, 4 }));
	cr_assert_not_null(PLAN(RR_MSG, 60, { 42, 0 }));
	cr_assert_not_null(PLAN(RR_MSG, 60, { 0xffffffff, 4 }));
	cr_assert_not_null(PLAN(RR_MSG, 60, { 64, 4 })); /* beyond the inline bytes */
	cr_assert_null(PLAN(RR_MSG, 60, { 60, 4 }));
	cr_assert_not_null(PLAN(RR_MSG, 60, { 40, 9 }, { 48, 4 })); /* overlap */
	cr_assert_null(PLAN(RR_MSG, 60, { 40, 9 }, { 52, 4 }));
	cr_assert_not_null(
		PLAN(RR_MSG, 60, { 40, 4 }, { 68, 4 })); /* beyond with the chunk counted */
	cr_assert_not_null(PLAN(RR_MSG, 60, { 0xfffffffc, 4 }));
}

Test(call_plan, position_zero)
{
	cr_assert_null(PLAN(RR_NOMSG, 0, { 0, 1000 }, { 0, 24 }));
	cr_assert(p.long_call);
	cr_assert_eq(p.npieces, 1);
	is_stream(0, 0, 1024);
	cr_assert_eq(p.buf_size, 1024u);
	/* Bytes after a NOMSG header are not part of the message. */
	cr_assert_null(PLAN(RR_NOMSG, 500, { 0, 1000 }));
	is_stream(0, 0, 1000);
}

Test(call_plan, position_zero_with_further_chunks)
{
	cr_assert_null(PLAN(RR_NOMSG, 0, { 0, 200 }, { 100, 9 }, { 120, 8 }));
	cr_assert_eq(p.nchunks, 3);
	cr_assert_eq(p.npieces, 5);
	is_stream(0, 0, 100);
	is_chunk(1, 1);
	is_stream(2, 100, 8);
	is_chunk(3, 2);
	is_stream(4, 108, 92);
	cr_assert_eq(p.chunk[0].buf_off, 0u);
	cr_assert_eq(p.chunk[1].buf_off, RR_CHUNK_ALIGN);
	cr_assert_eq(p.chunk[2].buf_off, 2 * RR_CHUNK_ALIGN);
	cr_assert_not_null(PLAN(RR_NOMSG, 0, { 0, 200 }, { 204, 9 }));
}

Test(call_plan, message_forms_that_make_no_sense)
{
	cr_assert_not_null(plan(RR_NOMSG, 100, NULL, 0));
	cr_assert_not_null(PLAN(RR_NOMSG, 0, { 0, 0 }));
	cr_assert_not_null(PLAN(RR_NOMSG, 100, { 40, 8 }));
	cr_assert_not_null(PLAN(RR_MSG, 100, { 0, 8 }));
}

Test(call_plan, length_limits)
{
	cr_assert_null(PLAN(RR_MSG, 100, { 100, (2u << 20) - 100 }));
	cr_assert_not_null(PLAN(RR_MSG, 100, { 100, (2u << 20) - 99 }));
	cr_assert_not_null(PLAN(RR_MSG, 100, { 100, UINT32_MAX }));
	/* A sum that wraps in 32 bits. */
	cr_assert_not_null(PLAN(RR_MSG, 100, { 100, 0x80000000 }, { 100, 0x80000000 }));
	cr_assert_not_null(PLAN(RR_MSG, 108, { 100, 1u << 20 }, { (1u << 20) + 104, 1u << 20 }));
	cr_assert_null(PLAN(RR_NOMSG, 0, { 0, 2u << 20 }));
	cr_assert_not_null(PLAN(RR_NOMSG, 0, { 0, (2u << 20) + 1 }));
}

Test(call_plan, chunk_caps)
{
	struct row rows[RR_READ_CHUNKS_MAX + 2];
	for (unsigned i = 0; i < RR_READ_CHUNKS_MAX + 2; i++)
		rows[i] = (struct row){ 40 + 8 * i, 4 };
	cr_assert_null(plan(RR_MSG, 400, rows, RR_READ_CHUNKS_MAX));
	cr_assert_eq(p.npieces, 2 * RR_READ_CHUNKS_MAX + 1);
	cr_assert_not_null(plan(RR_MSG, 400, rows, RR_READ_CHUNKS_MAX + 1));
	cr_assert_not_null(plan(RR_MSG, 400, rows, RR_READ_CHUNKS_MAX + 2));
	rows[0] = (struct row){ 0, 400 };
	cr_assert_null(plan(RR_NOMSG, 0, rows, RR_READ_CHUNKS_MAX + 1));
	cr_assert_eq(p.npieces, 2 * RR_READ_CHUNKS_MAX + 1);
	cr_assert_not_null(plan(RR_NOMSG, 0, rows, RR_READ_CHUNKS_MAX + 2));
}

/* The pieces of a plan always add up to the message, whatever the lists. */
Test(call_plan, pieces_add_up)
{
	unsigned good = 0;
	uint32_t seed = 1;
	for (unsigned round = 0; round < 20000; round++) {
		struct row rows[5];
		uint32_t pos = 0, n = round % 6;
		for (unsigned i = 0; i < n; i++) {
			seed = seed * 1664525 + 1013904223;
			pos += (seed >> 24) / 4 * 4;
			rows[i] = (struct row){ pos, (seed >> 16) % 40 };
		}
		if (plan(round & 64 ? RR_NOMSG : RR_MSG, 512, rows, n))
			continue;
		good++;
		uint64_t stream = 0, seen[RR_READ_CHUNKS_MAX + 1] = { 0 };
		for (unsigned i = 0; i < p.npieces; i++) {
			if (p.piece[i].chunk)
				seen[p.piece[i].index]++;
			else
				cr_assert_eq(p.piece[i].off, stream);
			stream += p.piece[i].len;
		}
		cr_assert_eq(stream, p.long_call ? p.chunk[0].length : 512);
		for (unsigned i = p.long_call; i < p.nchunks; i++)
			cr_assert_eq(seen[i], p.chunk[i].length ? 1 : 0);
	}
	cr_assert_gt(good, 500u);
}

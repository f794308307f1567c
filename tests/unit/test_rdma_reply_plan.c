/* SPDX-License-Identifier: BSD-2-Clause */
/* Distribution of a reply over inline bytes, Write chunks and the Reply chunk. */
#include <criterion/criterion.h>
#include <string.h>

#include "transport/rdma/rdma_chunks.h"

static struct rr_header h;
static struct rr_reply_plan p;

static void reset(void)
{
	memset(&h, 0, sizeof(h));
	memset(&p, 0xee, sizeof(p));
}

static struct rr_write_chunk chunk(const uint32_t *len, unsigned n)
{
	struct rr_write_chunk c = { h.nsegs, n };
	for (unsigned i = 0; i < n; i++, h.nsegs++)
		h.seg[h.nsegs] =
			(struct rr_segment){ h.nsegs + 1, len[i], 0x1000000ull * (h.nsegs + 1) };
	return c;
}

#define CHUNK(...)                                                                                 \
	chunk((uint32_t[]){ __VA_ARGS__ }, sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

static void is_write(unsigned i, enum rr_source source, uint32_t off, uint32_t len, unsigned seg,
		     uint32_t at)
{
	cr_assert_lt(i, p.nwrites);
	cr_assert_eq(p.write[i].from.source, source, "write %u", i);
	cr_assert_eq(p.write[i].from.off, off, "write %u: off %u", i, p.write[i].from.off);
	cr_assert_eq(p.write[i].from.len, len, "write %u: len %u", i, p.write[i].from.len);
	cr_assert_eq(p.write[i].handle, seg + 1, "write %u", i);
	cr_assert_eq(p.write[i].remote, 0x1000000ull * (seg + 1) + at, "write %u", i);
}

static void plan(uint32_t head, int64_t bulk_at, uint32_t bulk, uint32_t threshold)
{
	struct xdr_out x = { .used = head };
	if (bulk_at >= 0) {
		x.bulk[0] = (struct xdr_out_bulk){ .at = bulk_at, .len = bulk };
		x.nbulks = 1;
	}
	rr_plan_reply(&h, &x, h.nwrites, threshold, &p);
}

Test(reply_plan, inline_at_the_threshold, .init = reset)
{
	plan(1024 - 28, -1, 0, 1024);
	cr_assert_eq(p.how, RR_REPLY_INLINE);
	cr_assert_eq(p.nwrites, 0);
	cr_assert_eq(p.nspans, 1);
	cr_assert_eq(p.stream_len, 1024u - 28);
	plan(1024 - 27, -1, 0, 1024);
	cr_assert_eq(p.how, RR_REPLY_TOO_LONG);
	cr_assert_eq(rr_reply_space(&h, 1024), 1024u - 28);
}

Test(reply_plan, reply_chunk_unused_when_it_fits_inline, .init = reset)
{
	h.has_reply = true;
	h.reply = CHUNK(8192);
	plan(200, -1, 0, 4096);
	cr_assert_eq(p.how, RR_REPLY_INLINE);
	cr_assert_eq(p.lists.reply_len, 0u);
	cr_assert_eq(p.nwrites, 0);
}

Test(reply_plan, reply_chunk_shrinks_the_inline_room, .init = reset)
{
	h.has_reply = true;
	h.reply = CHUNK(100);
	/* Header of 28 bytes, a count and one segment. */
	cr_assert_eq(rr_reply_space(&h, 1024), 1024u - 48);
	plan(1024 - 48, -1, 0, 1024);
	cr_assert_eq(p.how, RR_REPLY_INLINE);
	plan(1024 - 47, -1, 0, 1024);
	cr_assert_eq(p.how, RR_REPLY_TOO_LONG);
}

Test(reply_plan, long_reply_fills_segments_in_order, .init = reset)
{
	h.has_reply = true;
	h.reply = CHUNK(1000, 0, 3000, 500);
	cr_assert_eq(rr_reply_space(&h, 1024), 4500u);
	plan(4100, -1, 0, 1024);
	cr_assert_eq(p.how, RR_REPLY_LONG);
	cr_assert_eq(p.nwrites, 3);
	is_write(0, RR_FROM_HEAD, 0, 1000, 0, 0);
	is_write(1, RR_FROM_HEAD, 1000, 3000, 2, 0);
	is_write(2, RR_FROM_HEAD, 4000, 100, 3, 0);
	cr_assert_eq(p.lists.reply_len, 4100u);
	plan(4500, -1, 0, 1024);
	cr_assert_eq(p.how, RR_REPLY_LONG);
	plan(4501, -1, 0, 1024);
	cr_assert_eq(p.how, RR_REPLY_TOO_LONG);
}

Test(reply_plan, long_reply_with_bulk_has_its_pad, .init = reset)
{
	h.has_reply = true;
	h.reply = CHUNK(150, 2000);
	plan(120, 100, 1021, 1024);
	cr_assert_eq(p.how, RR_REPLY_LONG);
	cr_assert_eq(p.stream_len, 100u + 1021 + 3 + 20);
	cr_assert_eq(p.nwrites, 5);
	is_write(0, RR_FROM_HEAD, 0, 100, 0, 0);
	is_write(1, RR_FROM_BULK, 0, 50, 0, 100);
	is_write(2, RR_FROM_BULK, 50, 971, 1, 0);
	is_write(3, RR_FROM_PAD, 0, 3, 1, 971);
	is_write(4, RR_FROM_HEAD, 100, 20, 1, 974);
}

Test(reply_plan, read_by_write_chunk, .init = reset)
{
	h.nwrites = 1;
	h.write[0] = CHUNK(4096, 4096);
	cr_assert_eq(rr_bulk_space(&h, 0), 8192u);
	cr_assert_eq(rr_bulk_space(&h, 1), 0u);
	plan(128, 128, 5001, 4096);
	cr_assert_eq(p.how, RR_REPLY_INLINE);
	cr_assert_eq(p.nwrites, 2);
	is_write(0, RR_FROM_BULK, 0, 4096, 0, 0);
	is_write(1, RR_FROM_BULK, 4096, 905, 1, 0);
	cr_assert_eq(p.lists.bulk_len[0], 5001u);
	cr_assert_eq(p.stream_len, 128u); /* no inline padding, either */
	cr_assert_eq(p.nspans, 1);
}

Test(reply_plan, bulk_exceeds_the_write_chunk, .init = reset)
{
	h.nwrites = 1;
	h.write[0] = CHUNK(100, 50);
	plan(128, 128, 150, 4096);
	cr_assert_eq(p.how, RR_REPLY_INLINE);
	plan(128, 128, 151, 4096);
	cr_assert_eq(p.how, RR_REPLY_TOO_LONG);
}

Test(reply_plan, result_without_data_leaves_the_chunk_unused, .init = reset)
{
	h.nwrites = 1;
	h.write[0] = CHUNK(4096);
	plan(100, -1, 0, 4096);
	cr_assert_eq(p.how, RR_REPLY_INLINE);
	cr_assert_eq(p.lists.bulk_len[0], 0u);
	plan(100, 100, 0, 4096);
	cr_assert_eq(p.how, RR_REPLY_INLINE);
	cr_assert_eq(p.lists.bulk_len[0], 0u);
	cr_assert_eq(p.nwrites, 0);
	cr_assert_eq(p.stream_len, 100u);
}

Test(reply_plan, empty_first_chunk_means_inline, .init = reset)
{
	h.nwrites = 2;
	h.write[0] = (struct rr_write_chunk){ 0, 0 };
	h.write[1] = CHUNK(4096);
	cr_assert_eq(rr_bulk_space(&h, 0), 0u);
	plan(100, 96, 10, 4096);
	cr_assert_eq(p.how, RR_REPLY_INLINE);
	cr_assert_eq(p.nwrites, 0);
	cr_assert_eq(p.stream_len, 112u);
	cr_assert_eq(p.nspans, 4);
	cr_assert_eq(p.span[2].source, RR_FROM_PAD);
	cr_assert_eq(p.span[2].len, 2u);
	/* A chunk of empty segments holds nothing either. */
	reset();
	h.nwrites = 1;
	h.write[0] = CHUNK(0, 0);
	cr_assert_eq(rr_bulk_space(&h, 0), 0u);
	plan(100, 96, 10, 4096);
	cr_assert_eq(p.how, RR_REPLY_INLINE);
	cr_assert_eq(p.stream_len, 112u);
}

Test(reply_plan, write_and_reply_chunk_together, .init = reset)
{
	h.nwrites = 1;
	h.write[0] = CHUNK(8192);
	h.has_reply = true;
	h.reply = CHUNK(2000);
	plan(1500, 1000, 8000, 1024);
	cr_assert_eq(p.how, RR_REPLY_LONG);
	cr_assert_eq(p.nwrites, 2);
	is_write(0, RR_FROM_BULK, 0, 8000, 0, 0);
	is_write(1, RR_FROM_HEAD, 0, 1500, 1, 0);
	cr_assert_eq(p.lists.bulk_len[0], 8000u);
	cr_assert_eq(p.lists.reply_len, 1500u);
}

Test(reply_plan, lists_longer_than_the_threshold, .init = reset)
{
	h.has_reply = true;
	h.reply = chunk((uint32_t[RR_SEGS_MAX]){ 8192 }, RR_SEGS_MAX);
	cr_assert_eq(rr_reply_space(&h, 1024), 0u);
	cr_assert_eq(rr_reply_space(&h, 4096), 8192u);
	plan(40, -1, 0, 1024);
	cr_assert_eq(p.how, RR_REPLY_TOO_LONG);
	plan(40, -1, 0, 4096);
	cr_assert_eq(p.how, RR_REPLY_INLINE);
}

/* Three items, 30 bytes before, between and behind them. */
static void plan_three(uint32_t a, uint32_t b, uint32_t c, uint32_t threshold)
{
	const uint32_t len[] = { a, b, c };
	struct xdr_out x = { .used = 120, .nbulks = 3 };

	for (unsigned i = 0; i < 3; i++)
		x.bulk[i] = (struct xdr_out_bulk){ .at = 30 * (i + 1), .len = len[i] };
	rr_plan_reply(&h, &x, h.nwrites, threshold, &p);
}

Test(reply_plan, each_item_takes_the_chunk_of_its_place, .init = reset)
{
	h.nwrites = 3;
	h.write[0] = CHUNK(1000);
	h.write[1] = CHUNK(7, 1000);
	h.write[2] = CHUNK(2000);
	plan_three(1000, 17, 5, 4096);
	cr_assert_eq(p.how, RR_REPLY_INLINE);
	cr_assert_eq(p.nspans, 1);
	cr_assert_eq(p.stream_len, 120u);
	cr_assert_eq(p.nwrites, 4);
	is_write(0, RR_FROM_BULK, 0, 1000, 0, 0);
	is_write(1, RR_FROM_BULK, 0, 7, 1, 0);
	is_write(2, RR_FROM_BULK, 7, 10, 2, 0);
	is_write(3, RR_FROM_BULK, 0, 5, 3, 0);
	cr_assert_eq(p.write[1].from.item, 1u);
	cr_assert_eq(p.write[3].from.item, 2u);
	cr_assert_eq(p.lists.bulk_len[0], 1000u);
	cr_assert_eq(p.lists.bulk_len[1], 17u);
	cr_assert_eq(p.lists.bulk_len[2], 5u);
	plan_three(1000, 1008, 5, 4096);
	cr_assert_eq(p.how, RR_REPLY_TOO_LONG, "the second is longer than its chunk");
}

Test(reply_plan, an_empty_chunk_in_the_middle_and_items_beyond_the_chunks, .init = reset)
{
	h.nwrites = 2;
	h.write[0] = CHUNK(1000);
	h.write[1] = (struct rr_write_chunk){ 0, 0 };
	plan_three(99, 18, 5, 4096);
	cr_assert_eq(p.how, RR_REPLY_INLINE);
	cr_assert_eq(p.nwrites, 1);
	cr_assert_eq(p.stream_len, 120u + 20 + 8);
	cr_assert_eq(p.nspans, 7);
	cr_assert_eq(p.span[0].len, 60u);
	cr_assert_eq(p.span[1].source, RR_FROM_BULK);
	cr_assert_eq(p.span[1].item, 1u);
	cr_assert_eq(p.span[2].source, RR_FROM_PAD);
	cr_assert_eq(p.span[3].off, 60u);
	cr_assert_eq(p.span[4].item, 2u);
	cr_assert_eq(p.lists.bulk_len[0], 99u);
	cr_assert_eq(p.lists.bulk_len[1], 0u);
}

Test(reply_plan, an_empty_item_keeps_its_chunk, .init = reset)
{
	h.nwrites = 2;
	h.write[0] = CHUNK(1000);
	h.write[1] = CHUNK(1000);
	plan_three(0, 18, 5, 4096);
	cr_assert_eq(p.how, RR_REPLY_INLINE);
	cr_assert_eq(p.nwrites, 1);
	is_write(0, RR_FROM_BULK, 0, 18, 1, 0);
	cr_assert_eq(p.lists.bulk_len[0], 0u);
	cr_assert_eq(p.lists.bulk_len[1], 18u);
	cr_assert_eq(p.stream_len, 120u + 8);
}

Test(reply_plan, several_items_in_the_reply_chunk, .init = reset)
{
	h.has_reply = true;
	h.reply = CHUNK(100, 5000);
	plan_three(1001, 1002, 1003, 1024);
	cr_assert_eq(p.how, RR_REPLY_LONG);
	cr_assert_eq(p.stream_len, 120u + 1004 + 1004 + 1004);
	cr_assert_eq(p.lists.reply_len, p.stream_len);
	cr_assert_eq(p.nspans, 10);
	cr_assert_eq(p.nwrites, 11);
	is_write(0, RR_FROM_HEAD, 0, 30, 0, 0);
	is_write(1, RR_FROM_BULK, 0, 70, 0, 30);
	is_write(2, RR_FROM_BULK, 70, 931, 1, 0);
	is_write(3, RR_FROM_PAD, 0, 3, 1, 931);
	is_write(10, RR_FROM_HEAD, 90, 30, 1, 3132 - 30 - 100);
}

Test(reply_plan, the_most_writes_fit_the_plan, .init = reset)
{
	uint32_t one[RR_SEGS_MAX];
	for (unsigned i = 0; i < RR_SEGS_MAX; i++)
		one[i] = 17;
	h.has_reply = true;
	h.reply = chunk(one, RR_SEGS_MAX);
	plan(800, 399, RR_SEGS_MAX * 17 - 803, 2100);
	cr_assert_eq(p.how, RR_REPLY_LONG);
	cr_assert_leq(p.nwrites, RR_WRITES_MAX);
	uint64_t sum = 0;
	for (unsigned i = 0; i < p.nwrites; i++)
		sum += p.write[i].from.len;
	cr_assert_eq(sum, p.stream_len);
}

Test(reply_plan, huge_chunks_do_not_wrap, .init = reset)
{
	h.has_reply = true;
	h.reply = CHUNK(UINT32_MAX, UINT32_MAX, 2);
	cr_assert_eq(rr_reply_space(&h, 1024), UINT32_MAX);
	plan(5000, -1, 0, 1024);
	cr_assert_eq(p.how, RR_REPLY_LONG);
	cr_assert_eq(p.nwrites, 1);
}

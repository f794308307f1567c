/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/rdma_words.h"
#include "transport/rdma/rdma_header.h"

static struct msg m;
static struct rr_header h;

static void empty_lists(struct msg *to)
{
	put(to, 0);
	put(to, 0);
	put(to, 0);
}

/* All list forms in one header: 2 chunks to read in 3 segments, 2 Write chunks, one empty, a Reply
 * chunk. */
static void full_header(struct msg *to)
{
	put_fixed(to, 1, RR_MSG);
	put_read(to, 100, 7, 40);
	put_read(to, 100, 8, 50);
	put_read(to, 300, 9, 60);
	put(to, 0);
	put(to, 1);
	put(to, 2);
	put_seg(to, 10, 1000, 0xaabbccdd00112233ull);
	put_seg(to, 11, 2000, 2);
	put(to, 1);
	put(to, 0);
	put(to, 0);
	put(to, 1);
	put(to, 1);
	put_seg(to, 12, 4096, 3);
}

Test(rdma_header, short_message)
{
	put_fixed(&m, 1, RR_MSG);
	empty_lists(&m);
	put(&m, 0x11223344);
	cr_assert_eq(rr_header_decode(m.b, m.len, &h), RR_CALL);
	cr_assert_eq(h.xid, 0x11223344u);
	cr_assert_eq(h.credits, 32u);
	cr_assert_eq(h.size, RR_HEADER_MIN);
	cr_assert_eq(h.nreads + h.nwrites + h.nsegs, 0);
	cr_assert(!h.has_reply);
	cr_assert_eq(rr_reply_header_size(&h), RR_HEADER_MIN);
}

Test(rdma_header, all_lists)
{
	full_header(&m);
	put(&m, 99);
	cr_assert_eq(rr_header_decode(m.b, m.len, &h), RR_CALL);
	cr_assert_eq(h.size, m.len - 4);
	cr_assert_eq(h.nreads, 3);
	cr_assert_eq(h.read[1].position, 100u);
	cr_assert_eq(h.read[1].target.handle, 8u);
	cr_assert_eq(h.read[2].target.length, 60u);
	cr_assert_eq(h.read[2].target.offset, 0x100000000ull + 300);
	cr_assert_eq(h.nwrites, 2);
	cr_assert_eq(h.write[0].nsegs, 2);
	cr_assert_eq(h.write[1].nsegs, 0);
	cr_assert_eq(h.seg[0].offset, 0xaabbccdd00112233ull);
	cr_assert_eq(rr_chunk_length(&h, &h.write[0]), 3000u);
	cr_assert_eq(rr_chunk_length(&h, &h.write[1]), 0u);
	cr_assert(h.has_reply);
	cr_assert_eq(h.seg[h.reply.first].handle, 12u);
}

Test(rdma_header, every_truncation_is_refused)
{
	full_header(&m);
	for (size_t len = 0; len < m.len; len++) {
		uint8_t *exact = malloc(len ? len : 1);
		memcpy(exact, m.b, len);
		enum rr_verdict v = rr_header_decode(exact, len, &h);
		cr_assert_eq(v, len < RR_HEADER_MIN ? RR_DISCARD : RR_BAD_CHUNK, "length %zu", len);
		if (v == RR_BAD_CHUNK) {
			cr_assert_eq(h.xid, 0x11223344u);
			cr_assert_eq(h.nreads + h.nwrites + h.nsegs, 0);
		}
		free(exact);
	}
}

Test(rdma_header, procedures)
{
	static const struct {
		uint32_t proc;
		enum rr_verdict verdict;
	} rows[] = {
		{ RR_MSG, RR_CALL },	      { RR_NOMSG, RR_CALL },
		{ RR_MSGP, RR_BAD_CHUNK },    { RR_DONE, RR_DISCARD },
		{ RR_ERROR, RR_DISCARD },     { 5, RR_BAD_CHUNK },
		{ 0x80000000, RR_BAD_CHUNK }, { UINT32_MAX, RR_BAD_CHUNK },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_fixed(&m, 1, rows[i].proc);
		empty_lists(&m);
		cr_assert_eq(rr_header_decode(m.b, m.len, &h), rows[i].verdict, "proc %u",
			     rows[i].proc);
	}
}

Test(rdma_header, errors_of_the_client)
{
	static const struct {
		uint32_t err, words;
		enum rr_verdict verdict;
	} rows[] = {
		{ RR_ERR_VERS, 2, RR_REFUSAL }, { RR_ERR_CHUNK, 0, RR_REFUSAL },
		{ 0, 2, RR_DISCARD },		{ 3, 2, RR_DISCARD },
		{ 3, 0, RR_DISCARD },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put_fixed(&m, 1, RR_ERROR);
		put(&m, rows[i].err);
		for (unsigned word = 0; word < rows[i].words; word++)
			put(&m, 1);
		cr_expect_eq(rr_header_decode(m.b, m.len, &h), rows[i].verdict, "row %zu", i);
		cr_expect_eq(h.xid, 0x11223344u);
	}
	put_fixed(&m, 1, RR_ERROR);
	cr_expect_eq(rr_header_decode(m.b, m.len, &h), RR_DISCARD);
	put(&m, RR_ERR_CHUNK);
	cr_expect_eq(rr_header_decode(m.b, m.len - 1, &h), RR_DISCARD);
}

Test(rdma_header, other_versions_are_told_whatever_follows)
{
	static const uint32_t versions[] = { 0, 2, 0x01000000, UINT32_MAX };
	for (size_t i = 0; i < 4; i++) {
		put_fixed(&m, versions[i], RR_ERROR);
		for (unsigned word = 0; word < 3; word++)
			put(&m, 7);
		cr_assert_eq(rr_header_decode(m.b, m.len, &h), RR_BAD_VERSION);
		cr_assert_eq(h.vers, versions[i]);
		cr_assert_eq(h.xid, 0x11223344u);
	}
}

Test(rdma_header, optional_marks_are_zero_or_one)
{
	for (unsigned at = 0; at < 3; at++) {
		put_fixed(&m, 1, RR_MSG);
		for (unsigned i = 0; i < 3; i++)
			put(&m, i == at ? 2 : 0);
		for (unsigned i = 0; i < 64; i++)
			put(&m, 0);
		cr_assert_eq(rr_header_decode(m.b, m.len, &h), RR_BAD_CHUNK, "list %u", at);
	}
}

Test(rdma_header, read_list_cap)
{
	for (unsigned n = RR_READ_SEGS_MAX; n <= RR_READ_SEGS_MAX + 1; n++) {
		put_fixed(&m, 1, RR_MSG);
		for (unsigned i = 0; i < n; i++)
			put_read(&m, 64, 1, 1);
		empty_lists(&m);
		cr_assert_eq(rr_header_decode(m.b, m.len, &h),
			     n > RR_READ_SEGS_MAX ? RR_BAD_CHUNK : RR_CALL);
	}
}

Test(rdma_header, write_list_cap)
{
	for (unsigned n = RR_WRITE_CHUNKS_MAX; n <= RR_WRITE_CHUNKS_MAX + 1; n++) {
		put_fixed(&m, 1, RR_MSG);
		put(&m, 0);
		for (unsigned i = 0; i < n; i++) {
			put(&m, 1);
			put(&m, 0);
		}
		put(&m, 0);
		put(&m, 0);
		cr_assert_eq(rr_header_decode(m.b, m.len, &h),
			     n > RR_WRITE_CHUNKS_MAX ? RR_BAD_CHUNK : RR_CALL);
	}
}

static enum rr_verdict with_segments(uint32_t in_write, uint32_t in_reply)
{
	put_fixed(&m, 1, RR_MSG);
	put(&m, 0);
	put(&m, 1);
	put(&m, in_write);
	for (uint32_t i = 0; i < in_write && i < 300; i++)
		put_seg(&m, i, UINT32_MAX, 0);
	put(&m, 0);
	put(&m, 1);
	put(&m, in_reply);
	for (uint32_t i = 0; i < in_reply && i < 300; i++)
		put_seg(&m, i, UINT32_MAX, 0);
	return rr_header_decode(m.b, m.len, &h);
}

Test(rdma_header, segment_counts_are_capped_over_all_chunks)
{
	cr_assert_eq(with_segments(RR_SEGS_MAX, 0), RR_CALL);
	cr_assert_eq(rr_chunk_length(&h, &h.write[0]), (uint64_t)RR_SEGS_MAX * UINT32_MAX);
	cr_assert_eq(with_segments(0, RR_SEGS_MAX), RR_CALL);
	cr_assert_eq(with_segments(RR_SEGS_MAX - 1, 1), RR_CALL);
	cr_assert_eq(with_segments(RR_SEGS_MAX, 1), RR_BAD_CHUNK);
	cr_assert_eq(with_segments(RR_SEGS_MAX + 1, 0), RR_BAD_CHUNK);
	cr_assert_eq(with_segments(UINT32_MAX, 0), RR_BAD_CHUNK);
	cr_assert_eq(with_segments(0x10000000, 0), RR_BAD_CHUNK); /* times 16 bytes is 2^32 */
	cr_assert_eq(with_segments(0, UINT32_MAX), RR_BAD_CHUNK);
}

Test(rdma_header, one_handle)
{
	uint32_t handle = 0;
	put_fixed(&m, 1, RR_MSG);
	empty_lists(&m);
	rr_header_decode(m.b, m.len, &h);
	cr_assert(!rr_header_one_handle(&h, &handle));

	full_header(&m);
	rr_header_decode(m.b, m.len, &h);
	cr_assert(!rr_header_one_handle(&h, &handle));
	for (unsigned i = 0; i < h.nreads; i++)
		h.read[i].target.handle = 5;
	for (unsigned i = 0; i < h.nsegs; i++)
		h.seg[i].handle = 5;
	cr_assert(rr_header_one_handle(&h, &handle));
	cr_assert_eq(handle, 5u);
	h.seg[h.nsegs - 1].handle = 6;
	cr_assert(!rr_header_one_handle(&h, &handle));
}

Test(rdma_header, reply_returns_every_chunk)
{
	static struct msg r;
	full_header(&m);
	rr_header_decode(m.b, m.len, &h);
	struct rr_reply_lists lists = { .bulk_len = { 1500 }, .reply_len = 100 };
	r.len = rr_reply_header_size(&h);
	memset(r.b, 0xee, sizeof(r.b));
	rr_reply_header_encode(&h, RR_NOMSG, 128, &lists, r.b);
	cr_assert_eq(r.b[r.len], 0xee, "wrote past the size it told");

	static const uint32_t want[] = {
		0x11223344, 1, 128, RR_NOMSG, 0, /* no Read list */
		1,	    2, 10,  1000,     0xaabbccdd, 0x00112233, 11,
		500,	    0, 2, /* filled in order */
		1,	    0,	  /* the empty chunk */
		0,	    1, 1,   12,	      100,	  0,	      3,
	};
	cr_assert_eq(r.len, sizeof(want));
	for (unsigned i = 0; i < sizeof(want) / 4; i++)
		cr_assert_eq(word(r.b, i), want[i], "word %u: %x", i, word(r.b, i));
}

Test(rdma_header, reply_returns_unused_chunks_with_zero_lengths)
{
	static struct msg r;
	static struct rr_header back;
	full_header(&m);
	rr_header_decode(m.b, m.len, &h);
	struct rr_reply_lists lists = { 0 };
	r.len = rr_reply_header_size(&h);
	rr_reply_header_encode(&h, RR_MSG, 1, &lists, r.b);
	/* A reply is a valid header itself. */
	cr_assert_eq(rr_header_decode(r.b, r.len, &back), RR_CALL);
	cr_assert_eq(back.nreads, 0);
	cr_assert_eq(back.nwrites, 2);
	cr_assert_eq(back.write[0].nsegs, 2);
	cr_assert_eq(rr_chunk_length(&back, &back.write[0]), 0u);
	cr_assert(back.has_reply);
	cr_assert_eq(rr_chunk_length(&back, &back.reply), 0u);
}

Test(rdma_header, errors)
{
	uint8_t out[RR_ERR_VERS_SIZE];
	put_fixed(&m, 3, RR_MSG);
	rr_header_decode(m.b, m.len, &h);
	cr_assert_eq(rr_error_encode(&h, RR_ERR_VERS, 64, out), RR_ERR_VERS_SIZE);
	static const uint32_t vers[] = { 0x11223344, 3, 64, RR_ERROR, RR_ERR_VERS, 1, 1 };
	for (unsigned i = 0; i < 7; i++)
		cr_assert_eq(word(out, i), vers[i]);

	put_fixed(&m, 1, RR_MSGP);
	rr_header_decode(m.b, m.len, &h);
	cr_assert_eq(rr_error_encode(&h, RR_ERR_CHUNK, 64, out), RR_ERR_CHUNK_SIZE);
	static const uint32_t chunk[] = { 0x11223344, 1, 64, RR_ERROR, RR_ERR_CHUNK };
	for (unsigned i = 0; i < 5; i++)
		cr_assert_eq(word(out, i), chunk[i]);
}

Test(rdma_header, a_call_to_the_client_has_no_chunks)
{
	uint8_t msg[RR_HEADER_MIN];

	memset(msg, 0xff, sizeof(msg));
	rr_call_header_encode(0x12345678, 4, msg);
	cr_expect_eq(rr_header_decode(msg, sizeof(msg), &h), RR_CALL);
	cr_expect_eq(h.xid, 0x12345678);
	cr_expect_eq(h.vers, RR_VERSION);
	cr_expect_eq(h.credits, 4);
	cr_expect_eq(h.proc, RR_MSG);
	cr_expect_eq(h.nreads + h.nwrites + h.nsegs, 0);
	cr_expect_not(h.has_reply);
	cr_expect_eq(h.size, sizeof(msg));
}

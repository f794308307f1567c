/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <string.h>

#include "rpc/xdr_in.h"

static _Alignas(16) char arena_mem[4096];
static struct rn_arena arena;
static struct rpc_seg seg[RPC_SEGS_MAX];
static struct xdr_in x;

/* Cuts the message into segments of at most step bytes. */
static void cut(const uint8_t *msg, uint32_t len, uint32_t step)
{
	unsigned n = 0;

	for (uint32_t at = 0; at < len; at += step, n++) {
		seg[n] = (struct rpc_seg){ .base = (uint8_t *)msg + at,
					   .len = len - at < step ? len - at : step };
	}
	rn_arena_init(&arena, arena_mem, sizeof(arena_mem));
	xdr_in_init(&x, seg, n, &arena);
}

static void reduced(const uint8_t *head, uint32_t head_len, const uint8_t *item, uint32_t item_len)
{
	seg[0] = (struct rpc_seg){ .base = (uint8_t *)head, .len = head_len };
	seg[1] = (struct rpc_seg){ .base = (uint8_t *)item, .len = item_len, .placed = true };
	rn_arena_init(&arena, arena_mem, sizeof(arena_mem));
	xdr_in_init(&x, seg, 2, &arena);
}

static const uint8_t sample[] = {
	1, 2, 3, 4,				      /* word */
	0, 0, 0, 1,				      /* true */
	0, 0, 0, 5, 'h', 'e', 'l', 'l', 'o', 0, 0, 0, /* opaque */
	0, 0, 0, 2, 'o', 'k', 0,   0,		      /* string */
	9, 9, 9, 0,				      /* three fixed bytes */
	1, 2, 3, 4, 5,	 6,   7,   8,		      /* hyper */
};

Test(xdr_in, the_same_values_however_the_message_is_cut)
{
	for (uint32_t step = 2; step <= sizeof(sample); step++) {
		uint32_t len;
		uint8_t fixed[3];

		cut(sample, sizeof(sample), step);
		cr_assert_eq(xdr_get_u32(&x), 0x01020304);
		cr_assert(xdr_get_bool(&x));
		const uint8_t *p = xdr_get_opaque(&x, 5, &len);
		cr_assert_eq(len, 5);
		cr_assert_eq(memcmp(p, "hello", 5), 0);
		cr_assert_str_eq(xdr_get_string(&x, 10, &len), "ok");
		cr_assert_eq(xdr_in_pos(&x), 28);
		xdr_get_fixed(&x, fixed, 3);
		cr_assert_eq(fixed[2], 9);
		cr_assert_eq(xdr_get_u64(&x), 0x0102030405060708);
		cr_assert_not(x.err);
		cr_assert_eq(x.left, 0);
		cr_assert_eq(xdr_get_u32(&x), 0);
		cr_assert(x.err);
	}
}

Test(xdr_in, opaque_in_one_piece_is_not_copied)
{
	uint32_t len;

	cut(sample + 8, 12, 12);
	cr_assert_eq(xdr_get_opaque(&x, 5, &len), sample + 12);
	cr_assert_eq(arena.used, 0);
}

Test(xdr_in, every_truncation_fails_and_stays_failed)
{
	for (uint32_t n = 0; n < sizeof(sample); n++) {
		uint32_t len;
		uint8_t fixed[3];

		cut(sample, n, 64);
		xdr_get_u32(&x);
		xdr_get_bool(&x);
		xdr_get_opaque(&x, 5, &len);
		xdr_get_string(&x, 10, &len);
		xdr_get_fixed(&x, fixed, 3);
		cr_assert_eq(xdr_get_u64(&x), 0);
		cr_assert(x.err, "cut at %u", n);
		cr_assert_eq(xdr_get_u32(&x), 0);
		cr_assert_null(xdr_get_opaque(&x, 5, &len));
		cr_assert_eq(len, 0);
		cr_assert_eq(x.left, 0);
	}
}

Test(xdr_in, a_failed_get_zero_fills)
{
	uint8_t fixed[8];

	memset(fixed, 0xff, sizeof(fixed));
	cut(sample, 4, 4);
	xdr_get_fixed(&x, fixed, 8);
	for (int i = 0; i < 8; i++)
		cr_assert_eq(fixed[i], 0);
	cr_assert_eq(xdr_get_u32(&x), 0, "what was left is not given out after an error");
}

Test(xdr_in, declared_lengths_are_checked_before_anything_is_made_of_them)
{
	static const uint8_t huge[] = { 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0 };
	static const uint8_t six[] = { 0, 0, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0 };
	uint32_t len;
	struct xdr_bulk b;

	cut(huge, 8, 8);
	cr_assert_null(xdr_get_opaque(&x, UINT32_MAX, &len));
	cut(huge, 8, 8);
	cr_assert_null(xdr_get_string(&x, UINT32_MAX, &len));
	cr_assert_eq(arena.used, 0);
	cut(huge, 8, 8);
	xdr_get_bulk(&x, UINT32_MAX, &b);
	cr_assert(x.err);
	cut(six, 12, 12);
	cr_assert_null(xdr_get_opaque(&x, 5, &len), "one over the maximum");
	cut(six, 12, 12);
	cr_assert_not_null(xdr_get_opaque(&x, 6, &len));
	cut(six, 10, 10);
	cr_assert_null(xdr_get_opaque(&x, 6, &len), "its pad is missing");
}

Test(xdr_in, empty_counted_data_is_not_an_error)
{
	static const uint8_t zero[8] = { 0 };
	struct xdr_bulk b;
	uint32_t len = 1;

	cut(zero, 8, 8);
	cr_assert_not_null(xdr_get_opaque(&x, 0, &len));
	cr_assert_eq(len, 0);
	cr_assert_str_eq(xdr_get_string(&x, 0, &len), "");
	cut(zero, 4, 4);
	xdr_get_bulk(&x, 10, &b);
	cr_assert_eq(b.npieces, 0);
	cr_assert_not(x.err);
}

Test(xdr_in, a_boolean_is_zero_or_one)
{
	static const uint8_t two[] = { 0, 0, 0, 2 }, high[] = { 1, 0, 0, 1 };

	cut(two, 4, 4);
	cr_assert_not(xdr_get_bool(&x));
	cr_assert(x.err);
	cut(high, 4, 4);
	xdr_get_bool(&x);
	cr_assert(x.err);
}

Test(xdr_in, an_arena_that_is_full_is_an_error)
{
	uint32_t len;

	cut(sample + 8, 12, 6);
	rn_arena_init(&arena, arena_mem, 4);
	cr_assert_null(xdr_get_opaque(&x, 5, &len));
	cr_assert(x.err);
	cut(sample + 8, 12, 6);
	x.arena = NULL;
	cr_assert_null(xdr_get_opaque(&x, 5, &len));
}

Test(xdr_in, inline_bulk_stays_in_its_pieces)
{
	static const uint8_t msg[] = { 0, 0, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, 0, 0, 0, 7 };
	struct xdr_bulk b;

	cut(msg, sizeof(msg), 5);
	xdr_get_bulk(&x, 6, &b);
	cr_assert_eq(b.len, 6);
	cr_assert_eq(b.npieces, 2);
	cr_assert_eq(b.piece[0].iov_base, msg + 4);
	cr_assert_eq(b.piece[0].iov_len, 1);
	cr_assert_eq(b.piece[1].iov_len, 5);
	cr_assert_eq(xdr_get_u32(&x), 7);
	cut(msg, sizeof(msg), 1);
	xdr_get_bulk(&x, 6, &b);
	cr_assert(x.err, "more pieces than there is room for");
	cr_assert_eq(b.len, 0);
}

Test(xdr_in, a_read_chunk_holds_its_item_with_or_without_its_pad)
{
	static const uint8_t head[] = { 0, 0, 0, 6, 0, 0, 0, 7 };
	static const uint8_t item[12] = { 1, 2, 3, 4, 5, 6 };

	for (uint32_t n = 5; n <= 10; n++) {
		struct xdr_bulk b;

		reduced(head, 4, item, n);
		seg[2] = (struct rpc_seg){ .base = (uint8_t *)head + 4, .len = 4 };
		xdr_in_init(&x, seg, 3, &arena);
		xdr_get_bulk(&x, 100, &b);
		const uint32_t after = xdr_get_u32(&x);
		cr_assert_eq(x.err, n != 6 && n != 8, "%u bytes", n);
		if (x.err)
			continue;
		cr_assert_eq(after, 7);
		cr_assert_eq(b.len, 6);
		cr_assert_eq(b.npieces, 1);
		cr_assert_eq(b.piece[0].iov_base, item);
	}
}

Test(xdr_in, only_bulk_enters_a_read_chunk)
{
	static const uint8_t head[] = { 0, 0, 0, 4 }, item[] = { 1, 2, 3, 4 };
	uint8_t fixed[8];
	uint32_t len;

	reduced(head, 4, item, 4);
	cr_assert_null(xdr_get_opaque(&x, 4, &len));
	reduced(head, 4, item, 4);
	cr_assert_null(xdr_get_string(&x, 4, &len));
	reduced(head, 4, item, 4);
	xdr_get_fixed(&x, fixed, 8);
	cr_assert(x.err);
	reduced(head, 4, item, 4);
	xdr_get_u32(&x);
	xdr_get_u32(&x);
	cr_assert(x.err);
	reduced(head, 4, item, 4);
	xdr_skip(&x, 5);
	cr_assert(x.err);
	reduced(item, 0, head, 4);
	xdr_get_u32(&x);
	cr_assert(x.err, "nor at the start of the message");
}

Test(xdr_in, an_item_does_not_run_from_inline_into_a_chunk)
{
	static const uint8_t head[] = { 0, 0, 0, 4, 1, 2 }, item[] = { 3, 4 };
	struct xdr_bulk b;

	reduced(head, 6, item, 2);
	xdr_get_bulk(&x, 4, &b);
	cr_assert(x.err);
}

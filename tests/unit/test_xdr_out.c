/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <string.h>

#include "rpc/xdr_out.h"

static struct rn_budget budget;
static struct rn_payload_pool *pool;

static struct rn_payload *payload(void)
{
	if (pool == NULL) {
		rn_budget_init(&budget, RN_SLAB_SIZE);
		pool = rn_payload_pool_new(&budget);
	}
	struct rn_payload *p = rn_payload_get(pool, 4096);
	cr_assert_not_null(p);
	return p;
}

static uint64_t in_use(void)
{
	struct rn_payload_stats s;

	rn_payload_stats(pool, &s);
	return s.buffers_in_use;
}

Test(xdr_out, values_and_pads_byte_for_byte)
{
	static const uint8_t want[] = { 1, 2, 3, 4, 0, 0, 0,   0,   0,	 0, 0,	 5, 0, 0,
					0, 1, 0, 0, 0, 3, 'a', 'b', 'c', 0, 'x', 0, 0, 0 };
	uint8_t buf[sizeof(want)];
	struct xdr_out x;

	memset(buf, 0xff, sizeof(buf));
	xdr_out_init(&x, buf, sizeof(buf));
	xdr_put_u32(&x, 0x01020304);
	xdr_put_u64(&x, 5);
	xdr_put_bool(&x, true);
	xdr_put_opaque(&x, "abc", 3);
	xdr_put_fixed(&x, "x", 1);
	cr_assert_not(x.overflow);
	cr_assert_eq(memcmp(buf, want, sizeof(want)), 0);
	cr_assert_eq(xdr_out_total(&x), sizeof(want));
}

Test(xdr_out, what_does_not_fit_writes_nothing_and_sticks)
{
	uint8_t buf[8];
	struct xdr_out x;

	xdr_out_init(&x, buf, sizeof(buf));
	xdr_put_u32(&x, 1);
	xdr_put_u64(&x, 2);
	cr_assert(x.overflow);
	cr_assert_eq(x.used, 4);
	xdr_put_u32(&x, 3);
	cr_assert_eq(x.used, 4, "a later one that would fit is not written either");
	xdr_out_rewind(&x, 4);
	cr_assert_not(x.overflow);
	xdr_put_opaque(&x, "a", 1);
	cr_assert(x.overflow);
	cr_assert_eq(x.used, 4, "no length word without its data");
	xdr_out_rewind(&x, 4);
	cr_assert_null(xdr_reserve(&x, 5), "its pad does not fit");
	xdr_out_rewind(&x, 4);
	cr_assert_null(xdr_reserve(&x, UINT32_MAX));
	xdr_out_rewind(&x, 4);
	cr_assert_not_null(xdr_reserve(&x, 3));
	cr_assert_eq(buf[7], 0);
}

Test(xdr_out, a_word_can_be_patched_where_one_was_written)
{
	uint8_t buf[12] = { 0 };
	struct xdr_out x;

	xdr_out_init(&x, buf, sizeof(buf));
	xdr_put_u32(&x, 1);
	const size_t at = xdr_out_pos(&x);
	xdr_put_u32(&x, 0);
	xdr_patch_u32(&x, at, 0x0a0b0c0d);
	cr_assert_eq(buf[4], 0x0a);
	cr_assert_eq(buf[7], 0x0d);
	xdr_patch_u32(&x, 8, 0xffffffff);
	cr_assert_eq(buf[8], 0, "beyond what was written");
}

Test(xdr_out, a_bulk_item_counts_with_its_pad_and_goes_with_a_rewind)
{
	uint8_t buf[64];
	struct xdr_out x;

	xdr_out_init(&x, buf, sizeof(buf));
	xdr_put_u32(&x, 1);
	const size_t before = xdr_out_pos(&x);
	xdr_put_bulk(&x, payload(), 8, 5);
	cr_assert_eq(x.bulk[0].at, 8);
	cr_assert_eq(buf[7], 5);
	xdr_put_u32(&x, 2);
	cr_assert_eq(xdr_out_total(&x), 12 + 8);
	xdr_out_rewind(&x, x.bulk[0].at);
	cr_assert_eq(x.nbulks, 1, "only what is behind it was taken back");
	xdr_out_rewind(&x, before);
	cr_assert_eq(x.nbulks, 0);
	cr_assert_eq(in_use(), 0);
	cr_assert_eq(xdr_out_total(&x), 4);
}

Test(xdr_out, a_rewind_drops_the_bulk_items_behind_it)
{
	uint8_t buf[64];
	struct xdr_out x;
	size_t pos[3];

	xdr_out_init(&x, buf, sizeof(buf));
	for (unsigned i = 0; i < 3; i++) {
		pos[i] = xdr_out_pos(&x);
		xdr_put_bulk(&x, i == 1 ? NULL : payload(), 0, i == 1 ? 0 : 3);
	}
	cr_assert_eq(x.nbulks, 3);
	cr_assert_eq(in_use(), 2);
	xdr_out_rewind(&x, pos[2]);
	cr_assert_eq(x.nbulks, 2);
	cr_assert_eq(in_use(), 1);
	xdr_out_rewind(&x, pos[1]);
	cr_assert_eq(x.nbulks, 1, "an empty item too");
	xdr_out_rewind(&x, 0);
	cr_assert_eq(x.nbulks, 0);
	cr_assert_eq(in_use(), 0);
}

Test(xdr_out, bulk_items_are_spliced_in_at_their_marks)
{
	static const uint8_t want[] = { 0, 0, 0, 3, 'a', 'b', 'c', 0, 0,   0,	0,   0,
					0, 0, 0, 9, 0,	 0,   0,   4, 'a', 'b', 'c', 'd' };
	uint8_t buf[64], got[sizeof(want)];
	struct rn_payload *p = payload();
	struct xdr_out x;

	memcpy(p->data, "xabcd", 5);
	xdr_out_init(&x, buf, sizeof(buf));
	rn_payload_ref(p);
	xdr_put_bulk(&x, p, 1, 3);
	xdr_put_bulk(&x, NULL, 0, 0);
	xdr_put_u32(&x, 9);
	xdr_put_bulk(&x, p, 1, 4);
	cr_assert_eq(xdr_out_total(&x), sizeof(want));
	xdr_out_copy(&x, got);
	cr_assert_arr_eq(got, want, sizeof(want));
	xdr_out_release(&x);
	cr_assert_eq(in_use(), 0);
}

Test(xdr_out, more_bulk_items_than_there_are_places_are_copied)
{
	uint8_t buf[4 * XDR_BULKS_MAX + 12];
	struct xdr_out x;

	xdr_out_init(&x, buf, sizeof(buf));
	for (unsigned i = 0; i < XDR_BULKS_MAX; i++)
		xdr_put_bulk(&x, payload(), 0, 1);
	struct rn_payload *p = payload();
	memcpy(p->data, "inline", 6);
	xdr_put_bulk(&x, p, 2, 4);
	cr_assert_not(x.overflow);
	cr_assert_eq(x.nbulks, XDR_BULKS_MAX);
	cr_assert_eq(in_use(), XDR_BULKS_MAX);
	cr_assert_arr_eq(buf + 4 * XDR_BULKS_MAX, "\0\0\0\4line", 8);
	xdr_put_bulk(&x, payload(), 0, 1);
	cr_assert(x.overflow, "no room in the head");
	cr_assert_eq(in_use(), XDR_BULKS_MAX);
	xdr_out_release(&x);
	cr_assert_eq(in_use(), 0);
}

Test(xdr_out, a_bulk_reference_is_taken_over_whatever_happens)
{
	uint8_t buf[8];
	struct xdr_out x;

	xdr_out_init(&x, buf, 3);
	xdr_put_bulk(&x, payload(), 0, 5);
	cr_assert(x.overflow);
	cr_assert_eq(x.nbulks, 0);
	cr_assert_eq(in_use(), 0);
	xdr_out_init(&x, buf, 8);
	xdr_put_bulk(&x, payload(), 0, 0);
	cr_assert_eq(x.nbulks, 1);
	cr_assert_null(x.bulk[0].payload);
	cr_assert_eq(in_use(), 0);
	xdr_out_init(&x, buf, 8);
	xdr_put_bulk(&x, payload(), 0, 5);
	cr_assert_eq(in_use(), 1);
	xdr_out_release(&x);
	xdr_out_release(&x);
	cr_assert_eq(in_use(), 0);
}

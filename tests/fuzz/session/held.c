/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/held.h"

#include "nfs4/nfs4_proto.h"
#include "tests/fuzz/session/counts.h"

#define CHANGE (1u << FATTR4_CHANGE)
#define SIZE (1u << FATTR4_SIZE)
#define VALUE 8u /* octets of each */

struct fattr {
	uint32_t words, bitmap[3];
	uint32_t len;  /* as it is told */
	bool one, two; /* values that are there */
	uint32_t rest; /* words behind them */
};

static const struct fattr shapes[SS_SHAPES_HELD] = {
	[SS_SHAPE_RIGHT] = { 1, { CHANGE | SIZE }, 2 * VALUE, true, true, 0 },
	[SS_SHAPE_THREE_WORDS] = { 3, { CHANGE | SIZE }, 2 * VALUE, true, true, 0 },
	[SS_SHAPE_NO_SIZE] = { 1, { CHANGE }, VALUE, true, false, 0 },
	[SS_SHAPE_NO_CHANGE] = { 1, { SIZE }, VALUE, false, true, 0 },
	[SS_SHAPE_MORE] = { 2, { CHANGE | SIZE, 1u << (FATTR4_MODE - 32) }, 20, true, true, 1 },
	[SS_SHAPE_INSTEAD] = { 1, { CHANGE | 1u << FATTR4_TYPE }, 12, true, false, 1 },
	[SS_SHAPE_NO_BITMAP] = { 0, { 0 }, 2 * VALUE, true, true, 0 },
	[SS_SHAPE_LONG_BITMAP] = { 4, { CHANGE | SIZE }, 2 * VALUE, true, true, 0 },
	[SS_SHAPE_ENDLESS] = { UINT32_MAX, { CHANGE | SIZE }, 2 * VALUE, true, true, 0 },
	[SS_SHAPE_SHORT] = { 1, { CHANGE | SIZE }, VALUE, true, true, 0 },
	[SS_SHAPE_LONG] = { 1, { CHANGE | SIZE }, 3 * VALUE, true, true, 0 },
	[SS_SHAPE_HUGE] = { 1, { CHANGE | SIZE }, UINT32_MAX - 3, true, true, 0 },
	[SS_SHAPE_CUT] = { 1, { CHANGE | SIZE }, 2 * VALUE, true, false, 0 },
	[SS_SHAPE_BEHIND] = { 1, { CHANGE | SIZE }, 2 * VALUE, true, true, 1 },
};

static uint64_t size_of(const struct ss_values *v, uint8_t how)
{
	switch ((enum ss_held_size)(how % SS_SIZES_HELD)) {
	case SS_SIZE_BELOW:
		return v->size / 2;
	case SS_SIZE_ABOVE:
		return v->size + 1;
	case SS_SIZE_ZERO:
		return 0;
	case SS_SIZE_LARGEST:
		return INT64_MAX;
	case SS_SIZE_2_63:
		return (uint64_t)INT64_MAX + 1;
	case SS_SIZE_2_64:
		return UINT64_MAX;
	default:
		return v->size;
	}
}

static uint64_t change_of(const struct ss_values *v, uint8_t how)
{
	switch ((enum ss_held_change)(how % SS_CHANGES_HELD)) {
	case SS_CHANGE_NEXT:
		return v->change + 1;
	case SS_CHANGE_BACK:
		return v->change - 1;
	case SS_CHANGE_ZERO:
		return 0;
	case SS_CHANGE_LARGEST:
		return UINT64_MAX;
	default:
		return v->change;
	}
}

static void put(struct xdr_out *x, const struct fattr *f, uint64_t change, uint64_t size)
{
	xdr_put_u32(x, f->words);
	for (uint32_t i = 0; i < f->words && i < 4; i++)
		xdr_put_u32(x, i < 3 ? f->bitmap[i] : 0);
	xdr_put_u32(x, f->len);
	if (f->one)
		xdr_put_u64(x, change);
	if (f->two)
		xdr_put_u64(x, size);
	for (uint32_t i = 0; i < f->rest; i++)
		xdr_put_u32(x, 1);
}

void ss_held_put(struct xdr_out *x, const struct ss_values *v, const uint8_t *data, size_t len)
{
	const uint8_t size = len > 0 ? data[0] : 0, change = len > 1 ? data[1] : 0;
	const uint8_t shape = len > 2 ? data[2] : 0;

	if (len == 0) {
		xdr_put_u32(x, 0);
		xdr_put_u32(x, 0);
		return;
	}
	ss_count(SS_N_TOLD);
	put(x, &shapes[shape % SS_SHAPES_HELD], change_of(v, change), size_of(v, size));
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attributes in an answer to CB_GETATTR, which the holder of a write delegation makes up. The data of
 * SS_ANSWER choose them, an octet each, modulo the number of choices: size, change, shape. No data: there are no
 * attributes.
 */
#ifndef RN_TESTS_FUZZ_SESSION_HELD_H
#define RN_TESTS_FUZZ_SESSION_HELD_H

#include <stddef.h>
#include <stdint.h>

#include "rpc/xdr_out.h"
#include "tests/fuzz/session/message.h"

/* Octet 0. */
enum ss_held_size {
	SS_SIZE_TRUE, /* as the holder saw it last */
	SS_SIZE_BELOW,
	SS_SIZE_ABOVE,
	SS_SIZE_ZERO,
	SS_SIZE_LARGEST, /* 2^63 - 1 */
	SS_SIZE_2_63,
	SS_SIZE_2_64, /* 2^64 - 1 */
	SS_SIZES_HELD,
};

/* Octet 1. */
enum ss_held_change {
	SS_CHANGE_TRUE, /* as the holder saw it last */
	SS_CHANGE_NEXT,
	SS_CHANGE_BACK,
	SS_CHANGE_ZERO,
	SS_CHANGE_LARGEST,
	SS_CHANGES_HELD,
};

/* Octet 2: how the fattr4 is put. */
enum ss_held_shape {
	SS_SHAPE_RIGHT,
	SS_SHAPE_THREE_WORDS, /* right, too: two more words of the bitmap are zero */
	SS_SHAPE_NO_SIZE,
	SS_SHAPE_NO_CHANGE,
	SS_SHAPE_MORE,	      /* an attribute that was not asked for, in another word */
	SS_SHAPE_INSTEAD,     /* one that was not asked for, and not the size */
	SS_SHAPE_NO_BITMAP,   /* two values of no attributes */
	SS_SHAPE_LONG_BITMAP, /* more words than there are attributes */
	SS_SHAPE_ENDLESS,     /* 2^32 - 1 words of the bitmap */
	SS_SHAPE_SHORT,	      /* the length is that of one value */
	SS_SHAPE_LONG,	      /* the length is that of three values */
	SS_SHAPE_HUGE,	      /* the length is 2^32 - 4 */
	SS_SHAPE_CUT,	      /* a right length, but the last value is not there */
	SS_SHAPE_BEHIND,      /* another word behind the attributes */
	SS_SHAPES_HELD,
};

void ss_held_put(struct xdr_out *x, const struct ss_values *v, const uint8_t *data, size_t len);

#endif

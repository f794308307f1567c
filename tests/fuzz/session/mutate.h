/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes sessions step by step, so that most results are still sessions that get past the
 * decoders. A change depends on the seed alone. */
#ifndef RN_TESTS_FUZZ_SESSION_MUTATE_H
#define RN_TESTS_FUZZ_SESSION_MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* Changes size bytes of data in place, up to max; returns the new size. Either libFuzzer's or this
 * file's. */
typedef size_t ss_mutate_bytes(uint8_t *data, size_t size, size_t max);

/* Changes one session. data has room for max bytes. bytes: NULL for the built-in function. */
size_t ss_mutate(uint8_t *data, size_t size, size_t max, uint64_t seed, ss_mutate_bytes *bytes);
/* Joins the beginning of one session and the end of another at a border of steps. */
size_t ss_cross(const uint8_t *a, size_t a_size, const uint8_t *b, size_t b_size, uint8_t *out,
		size_t max, uint64_t seed);

/* A pseudo-random number from 0 to n - 1; n is not 0. */
uint32_t ss_random(uint64_t *state, uint32_t n);

#endif

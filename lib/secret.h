/* SPDX-License-Identifier: BSD-2-Clause */
/* Comparison of secrets: its time does not tell a peer how much of a guess is right. */
#ifndef RN_LIB_SECRET_H
#define RN_LIB_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * True if `words` words of 64 bits are equal. All of them are read, and the result is stored before
 * the first branch, so the time does not depend on where they differ. For short secrets of fixed
 * size: sodium_memcmp(), which works by bytes, costs ten times as much.
 */
static inline bool rn_same_secret(const void *a, const void *b, size_t words)
{
	volatile uint64_t result;
	uint64_t x, y, differ = 0;

	for (size_t i = 0; i < words; i++) {
		memcpy(&x, (const uint8_t *)a + i * sizeof(x), sizeof(x));
		memcpy(&y, (const uint8_t *)b + i * sizeof(y), sizeof(y));
		differ |= x ^ y;
	}
	result = differ;
	return result == 0;
}

#endif

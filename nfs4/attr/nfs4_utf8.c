/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/attr/nfs4_utf8.h"

/* Length in bytes of the character that starts with b; 0: no character does. */
static uint32_t char_len(uint8_t b)
{
	if (b < 0x80)
		return 1;
	if (b >= 0xc2 && b <= 0xdf) /* 0xc0 and 0xc1 would not be the shortest form */
		return 2;
	if (b >= 0xe0 && b <= 0xef)
		return 3;
	return b >= 0xf0 && b <= 0xf4 ? 4 : 0;
}

/* True if the second byte fits the first: no overlong forms, surrogates or code points over the
 * maximum. */
static bool second_valid(uint8_t first, uint8_t second)
{
	uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
	uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;

	return second >= low && second <= high;
}

bool nfs4_utf8_valid(const char *s, uint32_t len)
{
	const uint8_t *p = (const uint8_t *)s, *end = p + len;

	while (p < end) {
		uint32_t n = char_len(*p);

		if (n == 0 || n > (uint32_t)(end - p) || (n > 1 && !second_valid(p[0], p[1])))
			return false;
		for (uint32_t i = 2; i < n; i++) {
			if ((p[i] & 0xc0) != 0x80)
				return false;
		}
		p += n;
	}
	return true;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/utf8.h"

#include <stdbool.h>
#include <stdint.h>

/* Characters that show nothing and change how others are shown: format characters (category Cf of Unicode), among them those that turn
 * the direction of writing round, and separators of lines and paragraphs. A name with them looks like another one. */
static const struct {
	uint32_t first, last;
} unshown[] = {
	{ 0x00, 0x1f },	      { 0x7f, 0x9f },	    { 0xad, 0xad },	  { 0x600, 0x605 },
	{ 0x61c, 0x61c },     { 0x6dd, 0x6dd },	    { 0x70f, 0x70f },	  { 0x890, 0x891 },
	{ 0x8e2, 0x8e2 },     { 0x180e, 0x180e },   { 0x200b, 0x200f },	  { 0x2028, 0x202e },
	{ 0x2060, 0x206f },   { 0xd800, 0xdfff },   { 0xfeff, 0xfeff },	  { 0xfff9, 0xfffb },
	{ 0x110bd, 0x110bd }, { 0x110cd, 0x110cd }, { 0x13430, 0x1343f }, { 0x1bca0, 0x1bca3 },
	{ 0x1d173, 0x1d17a }, { 0xe0000, 0xe0fff },
};

static bool utf8_is_shown(uint32_t c)
{
	for (unsigned i = 0; i < sizeof(unshown) / sizeof(unshown[0]); i++)
		if (c >= unshown[i].first && c <= unshown[i].last)
			return false;
	return true;
}

size_t rn_utf8_printable(const char *text)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800,
					  0x10000 }; /* by length: less is overlong */
	const unsigned char *s = (const unsigned char *)text;
	const size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
	uint32_t c = n == 1 ? s[0] : n > 0 ? s[0] & (0xffu >> (n + 1)) : 0;

	if (n == 0 || s[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	return c >= least[n] && c <= 0x10ffff && utf8_is_shown(c) ? n : 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Text of files and peers that may be shown on a terminal. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/utf8.h"

static const struct {
	const char *text;
	size_t length;
} table[] = {
	{ "a", 1 },
	{ " ", 1 },
	{ "~", 1 },
	{ "\xc3\xa9", 2 },	   /* e with an accent */
	{ "\xe2\x82\xac", 3 },	   /* euro */
	{ "\xf0\x9f\x92\xbe", 4 }, /* floppy disk */
	{ "\xf4\x8f\xbf\xbd", 4 },
	{ "", 0 },
	{ "\n", 0 },
	{ "\x1b[2J", 0 },
	{ "\x7f", 0 },
	{ "\xc2\x9b", 0 }, /* control sequence introducer */
	{ "\x80", 0 },
	{ "\xc0\xaf", 0 },	   /* overlong slash */
	{ "\xe0\x80\xaf", 0 },	   /* the same */
	{ "\xf0\x80\x80\xaf", 0 }, /* the same */
	{ "\xc3", 0 },		   /* cut */
	{ "\xe2\x82", 0 },	   /* cut */
	{ "\xed\xa0\x80", 0 },	   /* surrogate */
	{ "\xf4\x90\x80\x80", 0 }, /* beyond Unicode */
	{ "\xf5\x80\x80\x80", 0 },
	{ "\xc2\xad", 0 },	   /* soft hyphen */
	{ "\xd8\x9c", 0 },	   /* Arabic letter mark */
	{ "\xe2\x80\x8b", 0 },	   /* zero width space */
	{ "\xe2\x80\x8f", 0 },	   /* right-to-left mark */
	{ "\xe2\x80\xa8", 0 },	   /* line separator */
	{ "\xe2\x80\xae", 0 },	   /* right-to-left override */
	{ "\xe2\x81\xa6", 0 },	   /* left-to-right isolate */
	{ "\xef\xbb\xbf", 0 },	   /* byte order mark */
	{ "\xf3\xa0\x81\x81", 0 }, /* tag */
};

Test(utf8, printable)
{
	for (unsigned i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		cr_expect_eq(rn_utf8_printable(table[i].text), table[i].length, "row %u: %zu", i,
			     rn_utf8_printable(table[i].text));
}

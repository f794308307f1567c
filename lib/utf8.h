/* SPDX-License-Identifier: BSD-2-Clause */
/* UTF-8 in text for people and programs. */
#ifndef RN_LIB_UTF8_H
#define RN_LIB_UTF8_H

#include <stddef.h>
#include <string.h>

/* Bytes of the character at s, which ends with a NUL; 0: there is none that may be shown. Overlong forms, surrogates, control
 * characters, and those that change how others are shown (U+202E and its like) are none. */
size_t rn_utf8_printable(const char *s);

/* Octets of the byte order mark that some editors put before a text: 3 or 0. Whoever reads a text file skips them. */
static inline size_t rn_utf8_bom(const char *text, size_t len)
{
	return len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

#endif

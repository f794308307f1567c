/* SPDX-License-Identifier: BSD-2-Clause */
/* UTF-8 in text for people and programs. */
#ifndef RN_LIB_UTF8_H
#define RN_LIB_UTF8_H

#include <stddef.h>

/* Bytes of the character at s, which ends with a NUL; 0: there is none that may be shown. Overlong forms, surrogates, control
 * characters, and those that change how others are shown (U+202E and its like) are none. */
size_t rn_utf8_printable(const char *s);

#endif

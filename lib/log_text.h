/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes of peers within messages. */
#ifndef RN_LIB_LOG_TEXT_H
#define RN_LIB_LOG_TEXT_H

#include <stddef.h>

#define RN_LOG_TEXT 160u /* bytes that a name takes in a message, at most, with its NUL */

/*
 * Makes a text of them that cannot be taken for the rest of a message between quotation marks, and does no harm to a terminal:
 * printable ASCII stays, quotation marks, backslashes and all other bytes become \xNN. A longer text is cut, and
 * ends with "...". size: of out, at least 8.
 */
void rn_log_text(char *out, size_t size, const void *bytes, size_t len);

#endif

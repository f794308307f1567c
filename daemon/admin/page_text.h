/* SPDX-License-Identifier: BSD-2-Clause */
/* The document that page/join makes of the files in page/. */
#ifndef RN_DAEMON_ADMIN_PAGE_TEXT_H
#define RN_DAEMON_ADMIN_PAGE_TEXT_H

#include <stddef.h>

extern const unsigned char page_text[]; /* HTML; no zero byte */
extern const size_t page_text_len;
extern const char page_policy[]; /* value of its Content-Security-Policy */

#endif

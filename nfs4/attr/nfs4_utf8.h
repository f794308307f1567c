/* SPDX-License-Identifier: BSD-2-Clause */
/* UTF-8 (RFC 3629), which RFC 8881 section 14 requires of strings. */
#ifndef RN_NFS4_ATTR_NFS4_UTF8_H
#define RN_NFS4_ATTR_NFS4_UTF8_H

#include <stdbool.h>
#include <stdint.h>

/* True if s is well-formed: shortest forms, no surrogates, nothing beyond U+10FFFF. */
bool nfs4_utf8_valid(const char *s, uint32_t len);

#endif

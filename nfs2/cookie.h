/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Directory cookies in NFSv2's 32 bits. Most file systems' cookies are small numbers, and stay as they are. Those
 * of ext4's hashed directories have 31 bits of the name's hash above 32 more of it: the upper ones remain, with
 * the top bit as a mark. doc/design/nfs2.md says why no entry is lost or listed twice for it.
 */
#ifndef RN_NFS2_COOKIE_H
#define RN_NFS2_COOKIE_H

#include <stdbool.h>
#include <stdint.h>

#define NFS2_COOKIE_HIGH 0x80000000u

/* False: it has no such form. */
static inline bool nfs2_cookie_of(uint64_t cookie, uint32_t *out)
{
	*out = cookie >> 31 == 0 ? (uint32_t)cookie : NFS2_COOKIE_HIGH | (uint32_t)(cookie >> 32);
	return cookie >> 31 != 1 && cookie >> 63 == 0;
}

static inline uint64_t nfs2_cookie_from(uint32_t cookie)
{
	return cookie & NFS2_COOKIE_HIGH ? (uint64_t)(cookie & ~NFS2_COOKIE_HIGH) << 32 : cookie;
}

#endif

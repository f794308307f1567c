/* SPDX-License-Identifier: BSD-2-Clause */
/* Small helpers that every folder needs: rounding for XDR, minimum and maximum, container_of. */
#ifndef RN_LIB_UTIL_H
#define RN_LIB_UTIL_H

#include <stddef.h>
#include <stdint.h>

#define rn_container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))
#define rn_array_size(a) (sizeof(a) / sizeof((a)[0]))

/* Bytes of zero padding after len bytes of opaque data (RFC 4506 section 3): 0..3. */
static inline uint32_t rn_xdr_pad(uint32_t len)
{
	return (4u - (len & 3u)) & 3u;
}

static inline size_t rn_min(size_t a, size_t b)
{
	return a < b ? a : b;
}

static inline size_t rn_max(size_t a, size_t b)
{
	return a > b ? a : b;
}

#endif

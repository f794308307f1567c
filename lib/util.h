/* SPDX-License-Identifier: BSD-2-Clause */
/* Small helpers that every folder needs: rounding for XDR, big-endian words, minimum and maximum, container_of. */
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

/* Words of 32 and 64 bits in network byte order, at any address. */
static inline uint32_t rn_get32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void rn_put32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

static inline uint64_t rn_get64(const uint8_t *p)
{
	return (uint64_t)rn_get32(p) << 32 | rn_get32(p + 4);
}

static inline void rn_put64(uint8_t *p, uint64_t v)
{
	rn_put32(p, (uint32_t)(v >> 32));
	rn_put32(p + 4, (uint32_t)v);
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

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XDR in a buffer (RFC 4506), for the load generator. A cursor that runs out of room is marked bad,
 * gives zeros from then on, and writes nothing; callers look at the mark once, at the end.
 */
#ifndef BENCH_XDR_H
#define BENCH_XDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct xdr {
	uint8_t *p, *end;
	bool bad;
};

static inline uint8_t *xdr_take(struct xdr *x, size_t n)
{
	uint8_t *at = x->p;

	if (x->bad || n > (size_t)(x->end - x->p)) {
		x->bad = true;
		return NULL;
	}
	x->p += n;
	return at;
}

static inline void put_bytes(struct xdr *x, const void *data, size_t n)
{
	uint8_t *at = xdr_take(x, n);

	if (at && n)
		memcpy(at, data, n);
}

static inline void put32(struct xdr *x, uint32_t v)
{
	uint8_t *at = xdr_take(x, 4);

	if (!at)
		return;
	at[0] = (uint8_t)(v >> 24);
	at[1] = (uint8_t)(v >> 16);
	at[2] = (uint8_t)(v >> 8);
	at[3] = (uint8_t)v;
}

static inline void put64(struct xdr *x, uint64_t v)
{
	put32(x, (uint32_t)(v >> 32));
	put32(x, (uint32_t)v);
}

static inline void put_opaque(struct xdr *x, const void *data, size_t n)
{
	put32(x, (uint32_t)n);
	put_bytes(x, data, n);
	put_bytes(x, "\0\0\0", -n & 3);
}

static inline void put_string(struct xdr *x, const char *s)
{
	put_opaque(x, s, strlen(s));
}

static inline uint32_t get32(struct xdr *x)
{
	const uint8_t *at = xdr_take(x, 4);
	uint32_t v = 0;

	if (at)
		memcpy(&v, at, 4);
	return __builtin_bswap32(v);
}

static inline uint64_t get64(struct xdr *x)
{
	uint64_t high = get32(x);

	return high << 32 | get32(x);
}

static inline void get_bytes(struct xdr *x, void *to, size_t n)
{
	const uint8_t *at = xdr_take(x, n);

	if (at)
		memcpy(to, at, n);
	else
		memset(to, 0, n);
}

/* Bytes of an opaque item in place, and in *n their number; NULL if the item does not fit. */
static inline const uint8_t *get_opaque(struct xdr *x, uint32_t *n)
{
	const uint8_t *at;

	*n = get32(x);
	at = xdr_take(x, *n);
	xdr_take(x, -*n & 3);
	return x->bad ? NULL : at;
}

#endif

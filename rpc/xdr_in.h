/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XDR decoding (RFC 4506) over a message that lies in several pieces of memory.
 *
 * The error is sticky: after the first failed get, every get returns zero (or NULL) and xdr_in.err
 * stays set, so that straight-line decoders are safe; the error is tested before a decoded value
 * sizes, indexes or bounds anything. Nothing is allocated by a length that the peer declared:
 * counted data is compared with what is left of the message first.
 *
 * A transport may have placed an opaque item: it lies in a segment of its own, with `placed` set
 * and without its XDR pad. Only xdr_get_bulk() may enter such a segment; any other get fails there,
 * which makes the call one with garbage arguments.
 */
#ifndef RN_RPC_XDR_IN_H
#define RN_RPC_XDR_IN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "lib/arena.h"
#include "lib/payload.h"

#define RPC_SEGS_MAX 34 /* inline head + 16 chunks, each followed by inline data, + 1 */

struct rpc_seg {
	uint8_t *base;
	uint32_t len;
	bool placed; /* one opaque item, without its pad: see above */
	/* buffer that base points into, or NULL; the request owns the reference */
	struct rn_payload *payload;
};

struct xdr_in {
	const struct rpc_seg *seg;
	unsigned nseg;
	unsigned cur;		/* index of the current segment */
	uint32_t off;		/* bytes used of that segment */
	size_t left;		/* bytes left in the whole message */
	struct rn_arena *arena; /* copies of items that straddle segments */
	bool err;
};

/* Bulk data in place: pieces within payload buffers or inline memory, never copied. */
#define XDR_BULK_PIECES 4
struct xdr_bulk {
	uint32_t len;
	unsigned npieces;
	struct iovec piece[XDR_BULK_PIECES];
	struct rn_payload *payload[XDR_BULK_PIECES]; /* buffer of each piece, or NULL; borrowed */
};

void xdr_in_init(struct xdr_in *x, const struct rpc_seg *seg, unsigned nseg, struct rn_arena *a);

uint32_t xdr_get_u32(struct xdr_in *x);
uint64_t xdr_get_u64(struct xdr_in *x);

/* A value other than 0 and 1 is an error (RFC 4506 section 4.4). */
bool xdr_get_bool(struct xdr_in *x);

/* len bytes of fixed opaque data plus pad, copied to out. */
void xdr_get_fixed(struct xdr_in *x, void *out, uint32_t len);

/* Counted opaque or string of at most max bytes. Returns a pointer to *len bytes: into the message
 * where they lie in one piece, else an arena copy; NULL on error. Not NUL-terminated. A length of
 * zero returns a non-NULL pointer. */
const uint8_t *xdr_get_opaque(struct xdr_in *x, uint32_t max, uint32_t *len);

/* Like xdr_get_opaque, but always an arena copy with a NUL after it. */
char *xdr_get_string(struct xdr_in *x, uint32_t max, uint32_t *len);

/* Counted opaque of at most max bytes, which the transport may have placed. */
void xdr_get_bulk(struct xdr_in *x, uint32_t max, struct xdr_bulk *out);

void xdr_skip(struct xdr_in *x, size_t len); /* len bytes, no pad added */
/* Counted opaque of at most max bytes, and its pad. */
void xdr_skip_opaque(struct xdr_in *x, uint32_t max);

/* True if a placed segment has not been taken. */
bool xdr_in_placed_left(const struct xdr_in *x);

/* Offset from the start of the message. */
size_t xdr_in_pos(const struct xdr_in *x);

#endif

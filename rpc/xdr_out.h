/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XDR encoding (RFC 4506) of a reply: one contiguous head, and bulk items (READ data, READLINK
 * text) that stay where they are and are spliced into it at their marks, in order. A put that does
 * not fit sets the sticky overflow mark and writes nothing; a position can be saved and restored to
 * take back a partial encoding, and a word can be patched later.
 */
#ifndef RN_RPC_XDR_OUT_H
#define RN_RPC_XDR_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/payload.h"
#include "lib/pipe.h"

/* The number of items that a transport can place for one reply. */
#define XDR_BULKS_MAX 16u

/* One bulk item: its XDR length word is in the head, directly before `at`. */
struct xdr_out_bulk {
	size_t at;    /* offset in the head where the bytes belong */
	uint32_t len; /* bytes, without XDR pad; 0: an empty item, which has its place in the order
		       */
	uint32_t off; /* offset of the bytes in payload->data */
	struct rn_payload *payload; /* the reply owns one reference; NULL if len is 0 */
	struct rn_pipe *pipe; /* or the bytes are in a pipe, all that it holds; the reply's own */
};

struct xdr_out {
	uint8_t *base;
	size_t size;
	size_t used;
	bool overflow;
	unsigned nbulks;
	/* in ascending order of `at`; valid up to nbulks */
	struct xdr_out_bulk bulk[XDR_BULKS_MAX];
};

void xdr_out_init(struct xdr_out *x, void *buf, size_t size);

void xdr_put_u32(struct xdr_out *x, uint32_t v);
void xdr_put_u64(struct xdr_out *x, uint64_t v);
void xdr_put_bool(struct xdr_out *x, bool v);
void xdr_put_fixed(struct xdr_out *x, const void *p, uint32_t len);  /* data and pad */
void xdr_put_opaque(struct xdr_out *x, const void *p, uint32_t len); /* length, data, pad */
/* Room for len bytes plus pad (zeroed) to be filled by the caller; NULL on overflow. */
uint8_t *xdr_reserve(struct xdr_out *x, uint32_t len);

/* Puts the length word and marks a bulk item; takes over the caller's reference to p (also on
 * overflow). Beyond XDR_BULKS_MAX items the bytes are copied into the head, if they fit there. */
void xdr_put_bulk(struct xdr_out *x, struct rn_payload *p, uint32_t off, uint32_t len);

/* Puts the length word and marks a bulk item whose bytes are in a pipe, which is not empty; takes
 * the pipe over (also on overflow). Only for transports that take pipes, and for one of the first
 * XDR_BULKS_MAX items. */
void xdr_put_pipe(struct xdr_out *x, struct rn_pipe *p);

size_t xdr_out_pos(const struct xdr_out *x);
/* Takes back everything put at pos and behind, bulk items too; also clears overflow; pos <=
 * current. */
void xdr_out_rewind(struct xdr_out *x, size_t pos);
void xdr_patch_u32(struct xdr_out *x, size_t pos, uint32_t v);

/* Bytes of the whole reply on a stream: the head, and the bulk items with their pad. */
size_t xdr_out_total(const struct xdr_out *x);

/* Copies the whole stream to out, which has room for xdr_out_total(x) bytes. No item is a pipe. */
void xdr_out_copy(const struct xdr_out *x, uint8_t *out);

/* Drops the references of all bulk items. Idempotent. */
void xdr_out_release(struct xdr_out *x);

#endif

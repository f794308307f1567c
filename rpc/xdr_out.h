/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XDR encoding (RFC 4506) of a reply: one contiguous head, and at most one bulk item (READ data, READLINK
 * text) that stays where it is and is spliced in at a mark. What is put after the bulk item is the
 * tail. A put that does not fit sets the sticky overflow mark and writes nothing; a position can be
 * saved and restored to take back a partial encoding, and a word can be patched later.
 */
#ifndef RN_RPC_XDR_OUT_H
#define RN_RPC_XDR_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/payload.h"

struct xdr_out {
	uint8_t *base;
	size_t size;
	size_t used;
	bool overflow;
	/* The bulk item: its XDR length word is in the head, directly before bulk_at. */
	bool has_bulk;
	size_t bulk_at;		    /* offset in base where the bulk bytes belong */
	uint32_t bulk_len;	    /* bytes, without XDR pad */
	uint32_t bulk_off;	    /* where they start in bulk->data */
	struct rn_payload *bulk;    /* the reply owns one reference; NULL if bulk_len is 0 */
};

void xdr_out_init(struct xdr_out *x, void *buf, size_t size);

void xdr_put_u32(struct xdr_out *x, uint32_t v);
void xdr_put_u64(struct xdr_out *x, uint64_t v);
void xdr_put_bool(struct xdr_out *x, bool v);
void xdr_put_fixed(struct xdr_out *x, const void *p, uint32_t len);  /* with pad */
void xdr_put_opaque(struct xdr_out *x, const void *p, uint32_t len); /* length, data, pad */
/* Room for len bytes plus pad (zeroed) to be filled by the caller; NULL on overflow. */
uint8_t *xdr_reserve(struct xdr_out *x, uint32_t len);

/* Puts the length word and marks the bulk item; takes over the caller's reference to p (also on
 * overflow). At most one in a reply. */
void xdr_put_bulk(struct xdr_out *x, struct rn_payload *p, uint32_t off, uint32_t len);

size_t xdr_out_pos(const struct xdr_out *x);
void xdr_out_rewind(struct xdr_out *x, size_t pos); /* also clears overflow; pos <= current */
void xdr_patch_u32(struct xdr_out *x, size_t pos, uint32_t v);

/* Bytes of the whole reply on a stream: head, bulk with its pad, tail. */
size_t xdr_out_total(const struct xdr_out *x);

/* Drops the bulk reference. Idempotent. */
void xdr_out_release(struct xdr_out *x);

#endif

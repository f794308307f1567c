/* SPDX-License-Identifier: BSD-2-Clause */
/* bitmap4 of attribute numbers (RFC 8881 section 3.3.7), limited to known attributes. */
#ifndef RN_NFS4_ATTR_BITMAP_H
#define RN_NFS4_ATTR_BITMAP_H

#include <stdbool.h>
#include <stdint.h>

#include "nfs4/nfs4_proto.h"
#include "rpc/xdr_in.h"
#include "rpc/xdr_out.h"

struct nfs4_bitmap {
	uint32_t word[NFS4_ATTR_WORDS];
};

static inline bool nfs4_bitmap_has(const struct nfs4_bitmap *b, unsigned bit)
{
	return b->word[bit / 32] >> (bit % 32) & 1;
}

static inline void nfs4_bitmap_add(struct nfs4_bitmap *b, unsigned bit)
{
	b->word[bit / 32] |= 1u << (bit % 32);
}

static inline void nfs4_bitmap_remove(struct nfs4_bitmap *b, unsigned bit)
{
	b->word[bit / 32] &= ~(1u << (bit % 32));
}

bool nfs4_bitmap_empty(const struct nfs4_bitmap *b);

/* False: bits beyond NFS4_ATTR_WORDS were set; they are dropped. Bad XDR sets x->err. */
bool nfs4_get_bitmap(struct xdr_in *x, struct nfs4_bitmap *out);

/* Marks x as failed: the input is no valid XDR. */
static inline void nfs4_bad_xdr(struct xdr_in *x)
{
	xdr_skip(x, SIZE_MAX);
}

/* Largest XDR size in bytes. */
#define NFS4_BITMAP_SIZE (4u + 4u * NFS4_ATTR_WORDS)

/* Encodes b without the words behind the last bit that is set. */
void nfs4_put_bitmap(struct xdr_out *x, const struct nfs4_bitmap *b);
uint32_t nfs4_bitmap_size(const struct nfs4_bitmap *b); /* bytes of XDR */

#endif

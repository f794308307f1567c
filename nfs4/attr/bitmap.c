/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/attr/bitmap.h"

static uint32_t words_used(const struct nfs4_bitmap *b)
{
	uint32_t n = NFS4_ATTR_WORDS;

	while (n > 0 && b->word[n - 1] == 0)
		n--;
	return n;
}

bool nfs4_bitmap_empty(const struct nfs4_bitmap *b)
{
	return words_used(b) == 0;
}

bool nfs4_get_bitmap(struct xdr_in *x, struct nfs4_bitmap *out)
{
	uint32_t n = xdr_get_u32(x);
	uint32_t beyond = 0;

	*out = (struct nfs4_bitmap){ 0 };
	/* The cursor's error ends the loop: n comes from the client. */
	for (uint32_t i = 0; i < n && !x->err; i++) {
		uint32_t w = xdr_get_u32(x);

		if (i < NFS4_ATTR_WORDS)
			out->word[i] = w;
		else
			beyond |= w;
	}
	return beyond == 0;
}

void nfs4_put_bitmap(struct xdr_out *x, const struct nfs4_bitmap *b)
{
	uint32_t n = words_used(b);

	xdr_put_u32(x, n);
	for (uint32_t i = 0; i < n; i++)
		xdr_put_u32(x, b->word[i]);
}

uint32_t nfs4_bitmap_size(const struct nfs4_bitmap *b)
{
	return 4 + 4 * words_used(b);
}

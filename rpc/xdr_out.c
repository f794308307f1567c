/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/xdr_out.h"

#include <arpa/inet.h>
#include <string.h>

#include "lib/util.h"

void xdr_out_init(struct xdr_out *x, void *buf, size_t size)
{
	/* The array is not cleared: its items are valid up to nbulks only. */
	x->base = buf;
	x->size = size;
	x->used = 0;
	x->overflow = false;
	x->nbulks = 0;
}

/* Takes len bytes of the buffer; NULL and the mark set if they do not fit. */
static uint8_t *xdr_out_reserve(struct xdr_out *x, size_t len)
{
	if (x->overflow || len > x->size - x->used) {
		x->overflow = true;
		return NULL;
	}
	uint8_t *p = x->base + x->used;
	x->used += len;
	return p;
}

void xdr_put_u32(struct xdr_out *x, uint32_t v)
{
	const uint32_t be = htonl(v);
	uint8_t *p = xdr_out_reserve(x, sizeof(be));

	if (p)
		memcpy(p, &be, sizeof(be));
}

void xdr_put_u64(struct xdr_out *x, uint64_t v)
{
	const uint32_t be[2] = { htonl((uint32_t)(v >> 32)), htonl((uint32_t)v) };
	uint8_t *p = xdr_out_reserve(x, sizeof(be));

	if (p)
		memcpy(p, be, sizeof(be));
}

void xdr_put_bool(struct xdr_out *x, bool v)
{
	xdr_put_u32(x, v ? 1 : 0);
}

uint8_t *xdr_reserve(struct xdr_out *x, uint32_t len)
{
	const uint32_t pad = rn_xdr_pad(len);
	uint8_t *p = xdr_out_reserve(x, (size_t)len + pad);

	if (p)
		memset(p + len, 0, pad);
	return p;
}

void xdr_put_fixed(struct xdr_out *x, const void *p, uint32_t len)
{
	uint8_t *to = xdr_reserve(x, len);

	if (to && len > 0)
		memcpy(to, p, len);
}

void xdr_put_opaque(struct xdr_out *x, const void *p, uint32_t len)
{
	const size_t start = x->used;

	xdr_put_u32(x, len);
	xdr_put_fixed(x, p, len);
	if (x->overflow)
		x->used = start; /* no length word without its data */
}

void xdr_put_bulk(struct xdr_out *x, struct rn_payload *p, uint32_t off, uint32_t len)
{
	if (x->nbulks == XDR_BULKS_MAX) {
		xdr_put_opaque(x, len > 0 ? p->data + off : NULL, len);
		rn_payload_put(p);
		return;
	}
	xdr_put_u32(x, len);
	if (x->overflow || len == 0) {
		rn_payload_put(p);
		p = NULL;
	}
	if (x->overflow)
		return;
	x->bulk[x->nbulks++] = (struct xdr_out_bulk){
		.at = x->used,
		.len = len,
		.off = !p ? 0 : off,
		.payload = p,
	};
}

void xdr_put_pipe(struct xdr_out *x, struct rn_pipe *p)
{
	const uint32_t len = p->bytes;

	if (x->nbulks == XDR_BULKS_MAX)
		x->overflow = true;
	xdr_put_u32(x, len);
	if (x->overflow) {
		rn_pipe_put(p);
		return;
	}
	x->bulk[x->nbulks++] = (struct xdr_out_bulk){ .at = x->used, .len = len, .pipe = p };
}

size_t xdr_out_pos(const struct xdr_out *x)
{
	return x->used;
}

/* Drops bulk items from the last one on, down to n of them. */
static void drop_bulks(struct xdr_out *x, unsigned n)
{
	while (x->nbulks > n) {
		const struct xdr_out_bulk *b = &x->bulk[--x->nbulks];

		rn_payload_put(b->payload);
		rn_pipe_put(b->pipe);
	}
}

void xdr_out_rewind(struct xdr_out *x, size_t pos)
{
	unsigned n = x->nbulks;

	x->overflow = false;
	if (pos > x->used)
		return;
	x->used = pos;
	while (n > 0 && x->bulk[n - 1].at > pos)
		n--;
	drop_bulks(x, n);
}

void xdr_patch_u32(struct xdr_out *x, size_t pos, uint32_t v)
{
	const uint32_t be = htonl(v);

	if (pos <= x->used && x->used - pos >= sizeof(be))
		memcpy(x->base + pos, &be, sizeof(be));
}

size_t xdr_out_total(const struct xdr_out *x)
{
	size_t total = x->used;

	for (unsigned i = 0; i < x->nbulks; i++)
		total += (size_t)x->bulk[i].len + rn_xdr_pad(x->bulk[i].len);
	return total;
}

void xdr_out_copy(const struct xdr_out *x, uint8_t *out)
{
	size_t done = 0; /* bytes of the head copied so far */

	for (unsigned i = 0; i < x->nbulks; i++) {
		const struct xdr_out_bulk *b = &x->bulk[i];
		const uint32_t pad = rn_xdr_pad(b->len);

		memcpy(out, x->base + done, b->at - done);
		out += b->at - done;
		done = b->at;
		if (b->len > 0)
			memcpy(out, b->payload->data + b->off, b->len);
		memset(out + b->len, 0, pad);
		out += b->len + pad;
	}
	memcpy(out, x->base + done, x->used - done);
}

void xdr_out_release(struct xdr_out *x)
{
	drop_bulks(x, 0);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/xdr_in.h"

#include <arpa/inet.h>
#include <string.h>

#include "lib/util.h"

void xdr_in_init(struct xdr_in *x, const struct rpc_seg *seg, unsigned nseg, struct rn_arena *a)
{
	*x = (struct xdr_in){ .seg = seg, .nseg = nseg, .arena = a };
	for (unsigned i = 0; i < nseg; i++)
		x->left += seg[i].len;
}

/* An exhausted cursor fails every later get by itself. */
static void xdr_in_fail(struct xdr_in *x)
{
	x->err = true;
	x->cur = x->nseg;
	x->off = 0;
	x->left = 0;
}

/* Moves over segments that are used up. False: nothing is left. */
static bool xdr_in_skip_empty(struct xdr_in *x)
{
	while (x->cur < x->nseg && x->off == x->seg[x->cur].len) {
		x->cur++;
		x->off = 0;
	}
	return x->cur < x->nseg;
}

/* The next piece of at most len bytes, in a segment that may be entered; its length in *got. NULL,
 * with the error set, if there is none. */
static const uint8_t *xdr_in_next_piece(struct xdr_in *x, size_t len, bool placed, uint32_t *got)
{
	*got = 0;
	if (!xdr_in_skip_empty(x) || x->seg[x->cur].placed != placed) {
		xdr_in_fail(x);
		return NULL;
	}
	const struct rpc_seg *s = &x->seg[x->cur];
	const uint8_t *p = s->base + x->off;
	*got = (uint32_t)rn_min(len, s->len - x->off);
	x->off += *got;
	x->left -= *got;
	return p;
}

/* Copies len plain bytes to out, or skips them if out is NULL. */
static bool pull(struct xdr_in *x, uint8_t *out, size_t len)
{
	if (x->err || len > x->left) {
		xdr_in_fail(x);
		return false;
	}
	while (len > 0) {
		uint32_t n;
		const uint8_t *p = xdr_in_next_piece(x, len, false, &n);

		if (!p)
			return false;
		if (out) {
			memcpy(out, p, n);
			out += n;
		}
		len -= n;
	}
	return true;
}

/* The next len plain bytes if they lie in one piece, as they nearly always do; else NULL. */
static const uint8_t *pull_here(struct xdr_in *x, size_t len)
{
	const struct rpc_seg *s;
	const uint8_t *p;

	if (x->cur >= x->nseg)
		return NULL;
	s = &x->seg[x->cur];
	if (s->placed || len > s->len - x->off)
		return NULL;
	p = s->base + x->off;
	x->off += (uint32_t)len;
	x->left -= len;
	return p;
}

uint32_t xdr_get_u32(struct xdr_in *x)
{
	const uint8_t *p = pull_here(x, sizeof(uint32_t));
	uint32_t be;

	if (p) {
		memcpy(&be, p, sizeof(be));
		return ntohl(be);
	}
	return pull(x, (uint8_t *)&be, sizeof(be)) ? ntohl(be) : 0;
}

uint64_t xdr_get_u64(struct xdr_in *x)
{
	const uint64_t high = xdr_get_u32(x);
	const uint64_t v = high << 32 | xdr_get_u32(x);

	return x->err ? 0 : v;
}

bool xdr_get_bool(struct xdr_in *x)
{
	const uint32_t v = xdr_get_u32(x);

	if (v > 1)
		xdr_in_fail(x);
	return v == 1;
}

void xdr_get_fixed(struct xdr_in *x, void *out, uint32_t len)
{
	if (!pull(x, out, len) || !pull(x, NULL, rn_xdr_pad(len)))
		memset(out, 0, len);
}

/* The length word of counted data, checked against max and against what is left. */
static bool get_length(struct xdr_in *x, uint32_t max, uint32_t *len)
{
	*len = xdr_get_u32(x);
	if (x->err || *len > max || *len > x->left) {
		*len = 0;
		xdr_in_fail(x);
		return false;
	}
	return true;
}

static void *arena_get(struct xdr_in *x, size_t size)
{
	void *p = !x->arena ? NULL : rn_arena_alloc(x->arena, size);

	if (!p)
		xdr_in_fail(x);
	return p;
}

const uint8_t *xdr_get_opaque(struct xdr_in *x, uint32_t max, uint32_t *len)
{
	const uint8_t *p;
	uint8_t *copy = NULL;

	if (!get_length(x, max, len))
		return NULL;
	if (*len == 0)
		return (const uint8_t *)"";
	p = pull_here(x, (size_t)*len + rn_xdr_pad(*len));
	if (p)
		return p;
	if (xdr_in_skip_empty(x) && !x->seg[x->cur].placed && *len <= x->seg[x->cur].len - x->off)
		p = x->seg[x->cur].base + x->off;
	else
		p = copy = arena_get(x, *len);
	if (x->err || !pull(x, copy, *len) || !pull(x, NULL, rn_xdr_pad(*len))) {
		*len = 0;
		return NULL;
	}
	return p;
}

char *xdr_get_string(struct xdr_in *x, uint32_t max, uint32_t *len)
{
	char *s = NULL;

	if (get_length(x, max, len))
		s = arena_get(x, (size_t)*len + 1);
	if (!s || !pull(x, (uint8_t *)s, *len) || !pull(x, NULL, rn_xdr_pad(*len))) {
		*len = 0;
		return NULL;
	}
	return s;
}

/* Skips the rest of a placed segment behind its item: nothing, or a pad that the peer need not have
 * sent. */
static void skip_placed_pad(struct xdr_in *x, uint32_t len)
{
	const uint32_t rest = x->seg[x->cur].len - x->off;

	if (rest != 0 && rest != rn_xdr_pad(len)) {
		xdr_in_fail(x);
		return;
	}
	x->off += rest;
	x->left -= rest;
}

void xdr_get_bulk(struct xdr_in *x, uint32_t max, struct xdr_bulk *out)
{
	uint32_t len, n;

	memset(out, 0, sizeof(*out));
	if (!get_length(x, max, &len) || len == 0)
		return;
	const bool placed = xdr_in_skip_empty(x) && x->seg[x->cur].placed;
	for (uint32_t done = 0; done < len && !x->err; done += n) {
		const uint8_t *p = xdr_in_next_piece(x, len - done, placed, &n);

		if (!p || out->npieces == XDR_BULK_PIECES) {
			xdr_in_fail(x);
			break;
		}
		out->piece[out->npieces] = (struct iovec){ .iov_base = (void *)p, .iov_len = n };
		out->payload[out->npieces++] = x->seg[x->cur].payload;
	}
	if (!x->err && placed)
		skip_placed_pad(x, len);
	else if (!x->err)
		pull(x, NULL, rn_xdr_pad(len));
	if (x->err)
		memset(out, 0, sizeof(*out));
	else
		out->len = len;
}

void xdr_skip(struct xdr_in *x, size_t len)
{
	pull(x, NULL, len);
}

void xdr_skip_opaque(struct xdr_in *x, uint32_t max)
{
	uint32_t len;

	if (get_length(x, max, &len))
		xdr_skip(x, (size_t)len + rn_xdr_pad(len));
}

size_t xdr_in_pos(const struct xdr_in *x)
{
	size_t pos = x->off;

	for (unsigned i = 0; i < x->cur; i++)
		pos += x->seg[i].len;
	return pos;
}

bool xdr_in_placed_left(const struct xdr_in *x)
{
	for (unsigned i = x->cur; i < x->nseg; i++)
		if (x->seg[i].placed && (i > x->cur || x->off < x->seg[i].len))
			return true;
	return false;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/conform/conform_check.h"

#include <string.h>

#include "lib/util.h"
#include "tools/conform/nfs3.h"

bool cf_add_segs(struct cf_test *t, struct cf_chunk *chunk, const uint32_t *lens, uint32_t skew)
{
	for (; *lens != CF_END; lens++) {
		struct cf_window *w = cf_window_new(t->conn, *lens + skew);
		if (!w)
			return cf_skip(t, "this device registers no more memory");
		cf_add_seg(chunk, cf_window_seg(w, skew, *lens));
	}
	return true;
}

bool cf_chunk_filled(struct cf_test *t, const struct cf_chunk *offered, const struct cf_chunk *got,
		     uint32_t len)
{
	uint32_t left = len;

	if (offered->nsegs != got->nsegs)
		return cf_fail(t, "as many segments as were offered", "%u of %u", got->nsegs,
			       offered->nsegs);
	for (unsigned i = 0; i < got->nsegs; i++) {
		uint32_t want = rn_min(left, offered->seg[i].length);
		if (got->seg[i].length != want)
			return cf_fail(
				t, "segments filled in order, with the length of what is in them",
				"segment %u of %u has length %u instead of %u (of %u bytes)", i,
				got->nsegs, got->seg[i].length, want, len);
		left -= want;
	}
	if (left)
		return cf_fail(t, "all of the data in the chunk", "%u of %u bytes", len - left,
			       len);
	return true;
}

const uint8_t *cf_gather(struct cf_test *t, const struct cf_chunk *got, uint32_t *len)
{
	/* Checked before memory is allocated, since a server can claim any length. */
	for (unsigned i = 0; i < got->nsegs; i++)
		if (got->seg[i].length && !cf_conn_segment_data(t->conn, &got->seg[i])) {
			cf_fail(t, "segments that lie in those offered",
				"segment %u: %u bytes at %#jx", i, got->seg[i].length,
				(uintmax_t)got->seg[i].offset);
			return NULL;
		}
	uint8_t *out = cf_alloc(t, cf_chunk_len(got) + 1);

	*len = 0;
	for (unsigned i = 0; i < got->nsegs; i++) {
		const struct cf_seg *s = &got->seg[i];
		if (!s->length)
			continue;
		memcpy(out + *len, cf_conn_segment_data(t->conn, s), s->length);
		*len += s->length;
	}
	return out;
}

/* The up to three bytes behind len bytes of the chunk are as they were. */
static bool cf_chunk_no_pad(struct cf_test *t, const struct cf_chunk *offered, uint32_t len)
{
	uint32_t pad = rn_xdr_pad(len), at = 0;

	for (unsigned i = 0; i < offered->nsegs; i++) {
		const struct cf_seg *s = &offered->seg[i];
		for (uint32_t j = 0; j < s->length && at < len + pad; j++, at++) {
			if (at < len)
				continue;
			struct cf_seg one = { s->handle, 1, s->offset + j };
			const uint8_t *p = cf_conn_segment_data(t->conn, &one);
			if (p && *p != CF_FILL_BYTE)
				return cf_fail(t, "no XDR pad written into a Write chunk",
					       "byte %u behind the data is %02x", at - len, *p);
		}
	}
	return true;
}

bool cf_chunk_has(struct cf_test *t, const struct cf_chunk *offered, const struct cf_chunk *got,
		  const void *data, uint32_t len)
{
	uint32_t n;

	if (!cf_chunk_filled(t, offered, got, len))
		return false;
	const uint8_t *p = cf_gather(t, got, &n);
	if (!p)
		return false;
	for (uint32_t i = 0; i < len; i++)
		if (p[i] != ((const uint8_t *)data)[i])
			return cf_fail(t, "the item's bytes in the chunk",
				       "byte %u of %u is %02x instead of %02x", i, len, p[i],
				       ((const uint8_t *)data)[i]);
	return cf_chunk_no_pad(t, offered, len);
}

bool cf_chunk_has_pattern(struct cf_test *t, const struct cf_chunk *offered,
			  const struct cf_chunk *got, uint32_t from, uint32_t len)
{
	uint8_t *want = cf_alloc(t, len + 1);

	cf_fill_pattern(want, from, len);
	return cf_chunk_has(t, offered, got, want, len);
}

bool cf_writes_unused(struct cf_test *t, const struct cf_reply *r, unsigned first)
{
	for (unsigned i = first; i < r->h.lists.nwrites; i++)
		if (cf_chunk_len(&r->h.lists.write[i]))
			return cf_fail(t, "an unused Write chunk: every segment of length zero",
				       "Write chunk %u is returned with %ju bytes", i,
				       (uintmax_t)cf_chunk_len(&r->h.lists.write[i]));
	return true;
}

bool cf_is_refusal(const struct cf_reply *r)
{
	if (r->h.proc == CF_ERROR)
		return r->h.err == CF_ERR_CHUNK;
	return !r->accepted || r->accept != CF_SUCCESS;
}

int64_t cf_until(const struct cf_test *t, int ms)
{
	int64_t until = cf_now_ms() + ms;
	return until < t->deadline ? until : t->deadline;
}

/* RDMA_ERROR, or an RPC reply that is denied or not a success. */
static bool refuses(const struct cf_received *got, const struct cf_header *h)
{
	const uint8_t *rpc = got->data + h->size;

	if (h->proc == CF_ERROR)
		return h->err == CF_ERR_CHUNK;
	return h->proc == CF_MSG && got->len >= h->size + 24 &&
	       (cf_word(rpc + 8) || cf_word(rpc + 20));
}

bool cf_refused_or_closed(struct cf_test *t, struct cf_call *c)
{
	static const char expected[] =
		"ERR_CHUNK, an error of the RPC layer, or the end of the connection";
	struct cf_received got;
	struct cf_header h;

	if (!cf_send(t, c))
		return false;
	switch (cf_conn_receive(t->conn, &got, t->deadline)) {
	case CF_GOT_CLOSED:
		return true;
	case CF_GOT_TIMEOUT:
		return cf_fail(t, expected, "nothing in time");
	case CF_GOT_MESSAGE:
		break;
	}
	const char *why = cf_header_decode(got.data, got.len, &h);
	if (!why && h.xid == c->xid && refuses(&got, &h))
		return true;
	cf_fail(t, expected, "%s", why ? why : "another answer");
	cf_seen_words(t, got.data, got.len);
	return false;
}

uint32_t cf_peek_status(const struct cf_reply *r)
{
	struct xdr_in x = r->x;

	return xdr_get_u32(&x);
}

bool cf_open_small(struct cf_test *t)
{
	struct cf_conn_options o = cf_default_options(t->run);

	o.inline_size = CF_INLINE_MIN;
	return cf_open(t, &o) != NULL;
}

static int find_call(struct cf_call **calls, unsigned n, uint32_t xid)
{
	for (unsigned i = 0; i < n; i++)
		if (calls[i] && calls[i]->xid == xid)
			return (int)i;
	return -1;
}

bool cf_many(struct cf_test *t, struct cf_call **calls, unsigned n, unsigned window,
	     bool (*got)(struct cf_test *t, unsigned i, struct cf_call *c, struct cf_reply *r))
{
	unsigned sent = 0, answered = 0;

	while (answered < n) {
		while (sent < n && sent - answered < window)
			if (!cf_send(t, calls[sent++]))
				return false;
		struct cf_reply *r = cf_next(t);
		if (!r)
			return false;
		int i = find_call(calls, sent, r->h.xid);
		if (i < 0)
			return cf_fail(t, "each call is answered once",
				       "an answer to xid %08x, which is not in flight", r->h.xid);
		if (!cf_answers(t, calls[i], r) || (got && !got(t, i, calls[i], r)))
			return false;
		calls[i] = NULL;
		answered++;
	}
	return true;
}

unsigned cf_credits(struct cf_test *t, uint32_t want)
{
	struct cf_call *c = cf_call_new_none(t, CF_PROG_NFS, 3, 0);

	c->credits = want;
	struct cf_reply *r = cf_ask(t, c);
	return r ? rn_min(want, r->h.credits) : 0;
}

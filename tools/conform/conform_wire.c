/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/conform/conform_wire.h"

#include <stdlib.h>

/* A case that builds more than a list holds is a mistake in the tool. */
void cf_add_read(struct cf_lists *l, uint32_t position, struct cf_seg seg)
{
	if (l->nreads == CF_READS_MAX)
		abort();
	l->read[l->nreads++] = (struct cf_read){ position, seg };
}

struct cf_chunk *cf_add_write(struct cf_lists *l)
{
	if (l->nwrites == CF_WRITES_MAX)
		abort();
	return &l->write[l->nwrites++];
}

struct cf_chunk *cf_add_reply(struct cf_lists *l)
{
	l->has_reply = true;
	return &l->reply;
}

void cf_add_seg(struct cf_chunk *c, struct cf_seg seg)
{
	if (c->nsegs == CF_SEGS_MAX)
		abort();
	c->seg[c->nsegs++] = seg;
}

uint64_t cf_chunk_len(const struct cf_chunk *c)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < c->nsegs; i++)
		sum += c->seg[i].length;
	return sum;
}

void cf_put_fixed(struct xdr_out *x, uint32_t xid, uint32_t vers, uint32_t credits, uint32_t proc)
{
	xdr_put_u32(x, xid);
	xdr_put_u32(x, vers);
	xdr_put_u32(x, credits);
	xdr_put_u32(x, proc);
}

void cf_put_seg(struct xdr_out *x, const struct cf_seg *s)
{
	xdr_put_u32(x, s->handle);
	xdr_put_u32(x, s->length);
	xdr_put_u64(x, s->offset);
}

static void cf_put_chunk(struct xdr_out *x, const struct cf_chunk *c)
{
	xdr_put_u32(x, c->nsegs);
	for (unsigned i = 0; i < c->nsegs; i++)
		cf_put_seg(x, &c->seg[i]);
}

void cf_put_lists(struct xdr_out *x, const struct cf_lists *l)
{
	for (unsigned i = 0; i < l->nreads; i++) {
		xdr_put_u32(x, 1);
		xdr_put_u32(x, l->read[i].position);
		cf_put_seg(x, &l->read[i].seg);
	}
	xdr_put_u32(x, 0);
	for (unsigned i = 0; i < l->nwrites; i++) {
		xdr_put_u32(x, 1);
		cf_put_chunk(x, &l->write[i]);
	}
	xdr_put_u32(x, 0);
	xdr_put_u32(x, l->has_reply);
	if (l->has_reply)
		cf_put_chunk(x, &l->reply);
}

/* ---- replies ----------------------------------------------------------------------------------
 */

struct reader {
	const uint8_t *p;
	size_t left;
	const char *bad;
};

static uint32_t cf_header_get(struct reader *r)
{
	if (r->bad || r->left < 4) {
		if (!r->bad)
			r->bad = "the transport header ends early";
		return 0;
	}
	uint32_t v = cf_word(r->p);
	r->p += 4;
	r->left -= 4;
	return v;
}

/* The mark of an optional item: 0 or 1 (RFC 4506 section 4.19). */
static bool cf_header_get_mark(struct reader *r)
{
	uint32_t v = cf_header_get(r);

	if (v > 1)
		r->bad = "an optional-data mark is neither 0 nor 1";
	return v == 1 && !r->bad;
}

static struct cf_seg get_seg(struct reader *r)
{
	struct cf_seg s;

	s.handle = cf_header_get(r);
	s.length = cf_header_get(r);
	uint64_t high = cf_header_get(r);
	s.offset = high << 32 | cf_header_get(r);
	return s;
}

static void get_chunk(struct reader *r, struct cf_chunk *c)
{
	uint32_t n = cf_header_get(r);

	if (n > CF_SEGS_MAX) {
		r->bad = "a chunk has more segments than any call offered";
		return;
	}
	for (c->nsegs = 0; c->nsegs < n && !r->bad; c->nsegs++)
		c->seg[c->nsegs] = get_seg(r);
}

static void get_lists(struct reader *r, struct cf_lists *l)
{
	while (cf_header_get_mark(r)) {
		if (l->nreads == CF_READS_MAX) {
			r->bad = "a Read list in a reply";
			return;
		}
		l->read[l->nreads].position = cf_header_get(r);
		l->read[l->nreads++].seg = get_seg(r);
	}
	while (cf_header_get_mark(r)) {
		if (l->nwrites == CF_WRITES_MAX) {
			r->bad = "more Write chunks than any call offered";
			return;
		}
		get_chunk(r, &l->write[l->nwrites++]);
	}
	l->has_reply = cf_header_get_mark(r);
	if (l->has_reply)
		get_chunk(r, &l->reply);
}

const char *cf_header_decode(const uint8_t *msg, size_t len, struct cf_header *h)
{
	struct reader r = { msg, len, NULL };

	*h = (struct cf_header){ .xid = cf_header_get(&r) };
	h->vers = cf_header_get(&r);
	h->credits = cf_header_get(&r);
	h->proc = cf_header_get(&r);
	if (r.bad)
		return r.bad;
	switch (h->proc) {
	case CF_MSG:
	case CF_NOMSG:
		get_lists(&r, &h->lists);
		break;
	case CF_ERROR:
		h->err = cf_header_get(&r);
		if (h->err == CF_ERR_VERS) {
			h->vers_low = cf_header_get(&r);
			h->vers_high = cf_header_get(&r);
		} else if (h->err != CF_ERR_CHUNK) {
			r.bad = "rdma_err is neither ERR_VERS nor ERR_CHUNK";
		}
		break;
	default:
		r.bad = "rdma_proc is not one that a Responder may send";
	}
	h->size = len - r.left;
	return r.bad;
}

static const char *chunk_answers(const struct cf_chunk *call, const struct cf_chunk *reply)
{
	bool last = false;

	if (call->nsegs != reply->nsegs)
		return "a chunk came back with another segment count";
	for (unsigned i = 0; i < call->nsegs; i++) {
		const struct cf_seg *a = &call->seg[i], *b = &reply->seg[i];
		if (a->handle != b->handle || a->offset != b->offset)
			return "a segment came back with another handle or offset";
		if (b->length > a->length)
			return "a segment came back longer than it was";
		if (last && b->length)
			return "a chunk was not filled contiguously";
		last = last || b->length < a->length;
	}
	return NULL;
}

const char *cf_lists_answer(const struct cf_lists *call, const struct cf_header *reply)
{
	const struct cf_lists *l = &reply->lists;

	if (l->nreads)
		return "the reply has a Read list";
	if (l->nwrites != call->nwrites)
		return "the Write list came back with another number of chunks";
	for (unsigned i = 0; i < call->nwrites; i++) {
		const char *bad = chunk_answers(&call->write[i], &l->write[i]);
		if (bad)
			return bad;
	}
	if (l->has_reply != call->has_reply)
		return call->has_reply ? "the Reply chunk did not come back"
				       : "a Reply chunk came that was not offered";
	if (reply->proc == CF_NOMSG && !call->has_reply)
		return "RDMA_NOMSG, but no Reply chunk was offered";
	if (!call->has_reply)
		return NULL;
	const char *bad = chunk_answers(&call->reply, &l->reply);
	if (!bad && reply->proc == CF_MSG && cf_chunk_len(&l->reply))
		bad = "RDMA_MSG with a Reply chunk that holds something";
	if (!bad && reply->proc == CF_NOMSG && !cf_chunk_len(&l->reply))
		bad = "RDMA_NOMSG with an empty Reply chunk";
	return bad;
}

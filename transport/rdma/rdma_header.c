/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The decoder walks the words with a cursor whose error is sticky and reads as zero; optional-data
 * marks other than 0 and 1 are errors (RFC 4506 section 4.19), so that a random message does not
 * parse by luck. The private message of connection establishment is at the end.
 */
#include "transport/rdma/rdma_header.h"

#include <string.h>

#include "lib/util.h"

struct words {
	const uint8_t *p;
	size_t left;
	bool err;
};

static uint32_t rr_header_get_word(struct words *w)
{
	if (w->left < 4) {
		w->err = true;
		w->left = 0;
		return 0;
	}
	uint32_t v = rn_get32(w->p);
	w->p += 4;
	w->left -= 4;
	return v;
}

static bool rr_header_get_bool(struct words *w)
{
	uint32_t v = rr_header_get_word(w);
	if (v > 1)
		w->err = true;
	return v == 1 && !w->err;
}

static void get_segment(struct words *w, struct rr_segment *s)
{
	s->handle = rr_header_get_word(w);
	s->length = rr_header_get_word(w);
	uint64_t high = rr_header_get_word(w);
	s->offset = high << 32 | rr_header_get_word(w);
}

static void get_read_list(struct words *w, struct rr_header *h)
{
	while (rr_header_get_bool(w)) {
		if (h->nreads == RR_READ_SEGS_MAX) {
			w->err = true;
			return;
		}
		struct rr_read_segment *r = &h->read[h->nreads++];
		r->position = rr_header_get_word(w);
		get_segment(w, &r->target);
	}
}

static void get_write_chunk(struct words *w, struct rr_header *h, struct rr_write_chunk *c)
{
	uint32_t n = rr_header_get_word(w);

	*c = (struct rr_write_chunk){ .first = h->nsegs };
	if (n > RR_SEGS_MAX - h->nsegs) {
		w->err = true;
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		get_segment(w, &h->seg[h->nsegs + i]);
	h->nsegs += n;
	c->nsegs = n;
}

static void get_write_list(struct words *w, struct rr_header *h)
{
	while (rr_header_get_bool(w)) {
		if (h->nwrites == RR_WRITE_CHUNKS_MAX) {
			w->err = true;
			return;
		}
		get_write_chunk(w, h, &h->write[h->nwrites++]);
	}
}

/* True for an RDMA_ERROR with a known code, which follows the words read so far. */
static bool is_refusal(const struct words *fixed, const struct rr_header *h)
{
	struct words w = *fixed;
	const uint32_t err = rr_header_get_word(&w);

	return h->vers == RR_VERSION && h->proc == RR_ERROR && !w.err &&
	       (err == RR_ERR_VERS || err == RR_ERR_CHUNK);
}

enum rr_verdict rr_header_decode(const void *msg, size_t len, struct rr_header *h)
{
	struct words w = { msg, len, false };

	h->xid = rr_header_get_word(&w);
	h->vers = rr_header_get_word(&w);
	h->credits = rr_header_get_word(&w);
	h->proc = rr_header_get_word(&w);
	h->nreads = h->nwrites = h->nsegs = 0;
	h->has_reply = false;
	h->reply = (struct rr_write_chunk){ 0 };
	h->size = 0;
	if (is_refusal(&w, h))
		return RR_REFUSAL;
	if (len < RR_HEADER_MIN)
		return RR_DISCARD;
	if (h->vers != RR_VERSION)
		return RR_BAD_VERSION;
	if (h->proc == RR_DONE || h->proc == RR_ERROR)
		return RR_DISCARD;
	if (h->proc != RR_MSG && h->proc != RR_NOMSG)
		return RR_BAD_CHUNK;
	get_read_list(&w, h);
	get_write_list(&w, h);
	h->has_reply = rr_header_get_bool(&w);
	if (h->has_reply)
		get_write_chunk(&w, h, &h->reply);
	if (w.err) {
		h->nreads = h->nwrites = h->nsegs = 0;
		h->has_reply = false;
		return RR_BAD_CHUNK;
	}
	h->size = len - w.left;
	return RR_CALL;
}

uint64_t rr_chunk_length(const struct rr_header *h, const struct rr_write_chunk *c)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < c->nsegs; i++)
		sum += h->seg[c->first + i].length;
	return sum;
}

bool rr_header_one_handle(const struct rr_header *h, uint32_t *handle)
{
	if (!h->nreads && !h->nsegs)
		return false;
	uint32_t first = h->nreads ? h->read[0].target.handle : h->seg[0].handle;
	for (unsigned i = 0; i < h->nreads; i++)
		if (h->read[i].target.handle != first)
			return false;
	for (unsigned i = 0; i < h->nsegs; i++)
		if (h->seg[i].handle != first)
			return false;
	*handle = first;
	return true;
}

size_t rr_reply_header_size(const struct rr_header *call)
{
	/* Every Write chunk costs its mark and its count, the Reply chunk its count. */
	return RR_HEADER_MIN + 8u * call->nwrites + (call->has_reply ? 4u : 0u) +
	       16u * (size_t)call->nsegs;
}

static uint8_t *rr_header_put_word(uint8_t *p, uint32_t v)
{
	rn_put32(p, v);
	return p + 4;
}

static uint8_t *rr_header_put_chunk(uint8_t *p, const struct rr_header *call,
				    const struct rr_write_chunk *c, uint32_t written)
{
	p = rr_header_put_word(p, c->nsegs);
	for (unsigned i = 0; i < c->nsegs; i++) {
		const struct rr_segment *s = &call->seg[c->first + i];
		uint32_t n = s->length < written ? s->length : written;
		written -= n;
		p = rr_header_put_word(p, s->handle);
		p = rr_header_put_word(p, n);
		p = rr_header_put_word(p, s->offset >> 32);
		p = rr_header_put_word(p, (uint32_t)s->offset);
	}
	return p;
}

void rr_reply_header_encode(const struct rr_header *call, enum rr_proc proc, uint32_t credits,
			    const struct rr_reply_lists *lists, uint8_t *out)
{
	uint8_t *p = rr_header_put_word(out, call->xid);
	p = rr_header_put_word(p, RR_VERSION);
	p = rr_header_put_word(p, credits);
	p = rr_header_put_word(p, proc);
	p = rr_header_put_word(p, 0); /* a reply has no Read list */
	for (unsigned i = 0; i < call->nwrites; i++) {
		p = rr_header_put_word(p, 1);
		p = rr_header_put_chunk(p, call, &call->write[i], lists->bulk_len[i]);
	}
	p = rr_header_put_word(p, 0);
	p = rr_header_put_word(p, call->has_reply);
	if (call->has_reply)
		rr_header_put_chunk(p, call, &call->reply, lists->reply_len);
}

void rr_call_header_encode(uint32_t xid, uint32_t credits, uint8_t *out)
{
	uint8_t *p = rr_header_put_word(out, xid);

	p = rr_header_put_word(p, RR_VERSION);
	p = rr_header_put_word(p, credits);
	p = rr_header_put_word(p, RR_MSG);
	for (unsigned i = 0; i < 3; i++)
		p = rr_header_put_word(p, 0);
}

size_t rr_error_encode(const struct rr_header *call, enum rr_errcode err, uint32_t credits,
		       uint8_t *out)
{
	uint8_t *p = rr_header_put_word(out, call->xid);
	/* The version of the failing call, even if this server does not support it (RFC 8166
	 * section 4.5). */
	p = rr_header_put_word(p, call->vers);
	p = rr_header_put_word(p, credits);
	p = rr_header_put_word(p, RR_ERROR);
	p = rr_header_put_word(p, err);
	if (err == RR_ERR_VERS) {
		p = rr_header_put_word(p, RR_VERSION);
		p = rr_header_put_word(p, RR_VERSION);
	}
	return p - out;
}

#define PRIVATE_VERSION 1u
#define PRIVATE_R_BIT 1u
#define PRIVATE_UNIT 1024u

static const uint8_t private_magic[4] = { 0xf6, 0xab, 0x0e, 0x18 };

static uint8_t encode_size(uint32_t size)
{
	if (size < RR_INLINE_MIN)
		size = RR_INLINE_MIN;
	if (size > RR_INLINE_MAX)
		size = RR_INLINE_MAX;
	return (uint8_t)(size / PRIVATE_UNIT - 1);
}

static uint32_t decode_size(uint8_t v)
{
	return ((uint32_t)v + 1) * PRIVATE_UNIT;
}

void rr_private_encode(const struct rr_private_msg *m, uint8_t out[RR_PRIVATE_MSG_SIZE])
{
	memcpy(out, private_magic, sizeof(private_magic));
	out[4] = PRIVATE_VERSION;
	out[5] = m->remote_invalidate ? PRIVATE_R_BIT : 0;
	out[6] = encode_size(m->send_size);
	out[7] = encode_size(m->recv_size);
}

bool rr_private_find(const void *data, size_t len, struct rr_private_msg *m)
{
	const uint8_t *p = data;

	*m = (struct rr_private_msg){ false, RR_INLINE_MIN, RR_INLINE_MIN };
	if (!p)
		return false;
	for (size_t at = 0; len - at >= RR_PRIVATE_MSG_SIZE && at < len; at++) {
		const uint8_t *q = p + at;
		/* The magic with an unknown version is other data: search on. */
		if (memcmp(q, private_magic, sizeof(private_magic)) || q[4] != PRIVATE_VERSION)
			continue;
		m->remote_invalidate = q[5] & PRIVATE_R_BIT;
		m->send_size = decode_size(q[6]);
		m->recv_size = decode_size(q[7]);
		return true;
	}
	return false;
}

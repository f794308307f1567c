/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>

#include "lib/util.h"
#include "transport/rdma/rdma_chunks.h"

/* Stable, and linear for the ordered list that every client sends. */
static void sort_reads(struct rr_header *h)
{
	for (unsigned i = 1; i < h->nreads; i++) {
		struct rr_read_segment r = h->read[i];
		unsigned at = i;
		for (; at && h->read[at - 1].position > r.position; at--)
			h->read[at] = h->read[at - 1];
		h->read[at] = r;
	}
}

/* Segments of one position make one chunk (RFC 8166 section 3.4.5). */
static const char *group_reads(const struct rr_header *h, uint32_t max_message,
			       struct rr_call_plan *p)
{
	for (unsigned i = 0; i < h->nreads;) {
		if (p->nchunks == RR_READ_CHUNKS_MAX + 1)
			return "too many Read chunks";
		struct rr_read_chunk *c = &p->chunk[p->nchunks++];
		uint64_t len = 0;

		*c = (struct rr_read_chunk){ .position = h->read[i].position, .first = i };
		for (; i < h->nreads && h->read[i].position == c->position; i++)
			len += h->read[i].target.length;
		if (c->position % 4)
			return "Read position not a multiple of 4";
		if (len > max_message)
			return "Read chunk too long";
		c->nsegs = i - c->first;
		c->length = len;
	}
	return NULL;
}

/*
 * Places every chunk in the buffer. Each is at most max_message long, so 64 bits cannot overflow.
 */
static const char *place_chunks(struct rr_call_plan *p, uint64_t stream_len,
				const struct rr_call_limits *limits)
{
	uint64_t at = 0, total = p->long_call ? 0 : stream_len;

	for (unsigned i = 0; i < p->nchunks; i++) {
		struct rr_read_chunk *c = &p->chunk[i];
		total += c->length;
		if (!c->length)
			continue;
		at = (at + RR_CHUNK_ALIGN - 1) / RR_CHUNK_ALIGN * RR_CHUNK_ALIGN;
		c->buf_off = at;
		at += c->length;
		if (at > limits->max_buffer)
			return "Read chunks exceed the buffer";
	}
	if (total > limits->max_message)
		return "call too long";
	p->buf_size = at;
	return NULL;
}

static void add_stream(struct rr_call_plan *p, uint32_t from, uint32_t to)
{
	if (to > from)
		p->piece[p->npieces++] = (struct rr_piece){ .off = from, .len = to - from };
}

/*
 * A position counts bytes of the unreduced stream, which has the XDR pad of the items before it
 * whether or not the client put it into the chunk (RFC 8166 sections 3.4.5 and 3.4.5.2).
 */
static const char *interleave(struct rr_call_plan *p, uint32_t stream_len)
{
	uint64_t in_chunks = 0;
	uint32_t done = 0;

	for (unsigned i = p->long_call; i < p->nchunks; i++) {
		const struct rr_read_chunk *c = &p->chunk[i];
		if (c->position < in_chunks || c->position - in_chunks < done)
			return "Read chunks overlap";
		if (c->position - in_chunks > stream_len)
			return "Read position beyond the message";
		uint32_t at = c->position - in_chunks;
		in_chunks += (uint64_t)c->length + rn_xdr_pad(c->length);
		if (!c->length)
			continue; /* an empty item has no bytes anywhere */
		add_stream(p, done, at);
		p->piece[p->npieces++] = (struct rr_piece){ .chunk = true, .index = i };
		done = at;
	}
	add_stream(p, done, stream_len);
	return NULL;
}

const char *rr_plan_call(struct rr_header *h, uint32_t inline_len,
			 const struct rr_call_limits *limits, struct rr_call_plan *p)
{
	uint32_t stream_len = inline_len;

	p->nchunks = p->npieces = 0;
	p->buf_size = 0;
	p->long_call = h->proc == RR_NOMSG;
	sort_reads(h);
	const char *why = group_reads(h, limits->max_message, p);
	if (why)
		return why;
	bool zero = p->nchunks && p->chunk[0].position == 0;
	if (p->long_call) {
		if (!zero || !p->chunk[0].length)
			return "RDMA_NOMSG without a position-zero chunk";
		stream_len = p->chunk[0].length;
	} else if (zero) {
		return "position-zero chunk under RDMA_MSG";
	}
	if (p->nchunks > RR_READ_CHUNKS_MAX + (p->long_call ? 1u : 0u))
		return "too many Read chunks";
	why = place_chunks(p, stream_len, limits);
	return why ? why : interleave(p, stream_len);
}

uint32_t rr_reply_space(const struct rr_header *call, uint32_t threshold)
{
	size_t header = rr_reply_header_size(call);
	if (header > threshold)
		return 0; /* the lists alone do not fit inline */
	uint64_t in_line = threshold - header;
	uint64_t chunk = call->has_reply ? rr_chunk_length(call, &call->reply) : 0;
	uint64_t room = in_line > chunk ? in_line : chunk;
	return room > UINT32_MAX ? UINT32_MAX : room;
}

uint32_t rr_bulk_space(const struct rr_header *call, unsigned i)
{
	uint64_t len = i < call->nwrites ? rr_chunk_length(call, &call->write[i]) : 0;

	return len > UINT32_MAX ? UINT32_MAX : len;
}

static void add_span(struct rr_reply_plan *p, struct rr_span span)
{
	if (!span.len)
		return;
	p->span[p->nspans++] = span;
	p->stream_len += span.len;
}

/* Fills the chunk's segments in order from the spans, in order. */
static void write_spans(const struct rr_header *call, const struct rr_write_chunk *c,
			const struct rr_span *span, unsigned nspans, struct rr_reply_plan *p)
{
	unsigned s = 0;
	uint32_t used = 0; /* bytes used of segment s */

	for (unsigned i = 0; i < nspans; i++) {
		uint32_t done = 0;
		while (done < span[i].len && s < c->nsegs) {
			const struct rr_segment *seg = &call->seg[c->first + s];
			uint32_t n = rn_min(span[i].len - done, seg->length - used);
			if (!n) {
				s++;
				used = 0;
				continue;
			}
			p->write[p->nwrites++] = (struct rr_write){
				.from = { span[i].source, span[i].item, span[i].off + done, n },
				.handle = seg->handle,
				.remote = seg->offset + used,
			};
			done += n;
			used += n;
		}
	}
}

/*
 * Splits the reply between the Write chunks and the stream (RFC 8267 section 6.4.1). An item takes
 * the chunk with its index, also if it is empty; its pad goes neither into the chunk nor into the
 * stream. False if an item is longer than its chunk.
 */
static bool split_reply(const struct rr_header *call, const struct xdr_out *out, unsigned nrooms,
			struct rr_reply_plan *p)
{
	uint32_t done = 0; /* bytes of the head that are in spans */

	for (unsigned i = 0; i < out->nbulks; i++) {
		const struct xdr_out_bulk *b = &out->bulk[i];
		const struct rr_span bulk = { RR_FROM_BULK, i, 0, b->len };
		const uint32_t room = i < nrooms ? rr_bulk_space(call, i) : 0;

		if (room) {
			if (b->len > room)
				return false;
			write_spans(call, &call->write[i], &bulk, 1, p);
			p->lists.bulk_len[i] = b->len;
			continue; /* head bytes before and behind the item become one span */
		}
		add_span(p, (struct rr_span){ RR_FROM_HEAD, 0, done, b->at - done });
		done = b->at;
		add_span(p, bulk);
		add_span(p, (struct rr_span){ RR_FROM_PAD, i, 0, rn_xdr_pad(b->len) });
	}
	add_span(p, (struct rr_span){ RR_FROM_HEAD, 0, done, out->used - done });
	return true;
}

void rr_plan_reply(const struct rr_header *call, const struct xdr_out *out, unsigned nrooms,
		   uint32_t threshold, struct rr_reply_plan *p)
{
	p->lists = (struct rr_reply_lists){ 0 };
	p->header_size = rr_reply_header_size(call);
	p->stream_len = 0;
	p->nspans = p->nwrites = 0;
	p->how = RR_REPLY_TOO_LONG;
	if (!split_reply(call, out, nrooms, p))
		return;
	if ((uint64_t)p->header_size + p->stream_len <= threshold) {
		p->how = RR_REPLY_INLINE;
	} else if (call->has_reply && p->header_size <= threshold &&
		   rr_chunk_length(call, &call->reply) >= p->stream_len) {
		write_spans(call, &call->reply, p->span, p->nspans, p);
		p->lists.reply_len = p->stream_len;
		p->how = RR_REPLY_LONG;
	}
}

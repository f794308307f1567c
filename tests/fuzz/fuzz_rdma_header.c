/* SPDX-License-Identifier: BSD-2-Clause */
/* Transport header of any bytes, then the plans made of its lists. Plans must stay within the
 * announced chunks, and the decoder must accept the reply's header. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "transport/rdma/rdma_chunks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(x)                                                                                    \
	do {                                                                                       \
		if (!(x))                                                                          \
			abort();                                                                   \
	} while (0)

static const struct rr_call_limits limits = { 1u << 20, 2u << 20 };

static void check_call_plan(struct rr_header *h, uint32_t inline_len)
{
	static struct rr_call_plan p;
	uint64_t stream = 0, reads = 0;

	if (rr_plan_call(h, inline_len, &limits, &p))
		return;
	MUST(p.npieces <= RR_PIECES_MAX && p.nchunks <= RR_READ_CHUNKS_MAX + 1);
	MUST(p.buf_size <= limits.max_buffer);
	for (unsigned i = 0; i < p.nchunks; i++) {
		const struct rr_read_chunk *c = &p.chunk[i];
		MUST(c->first + c->nsegs <= h->nreads);
		MUST((uint64_t)c->buf_off + c->length <= p.buf_size);
		for (unsigned k = 0; k < c->nsegs; k++)
			reads += h->read[c->first + k].target.length;
	}
	MUST(reads <= limits.max_message);
	for (unsigned i = 0; i < p.npieces; i++) {
		MUST(!p.piece[i].chunk || p.piece[i].index < p.nchunks);
		MUST(p.piece[i].chunk || p.piece[i].off == stream);
		stream += p.piece[i].len;
	}
	MUST(stream == (p.long_call ? p.chunk[0].length : inline_len));
}

static void check_reply(const struct rr_header *h, uint32_t threshold)
{
	static struct rr_reply_plan p;
	static struct rr_header back;
	struct xdr_out x = { .used = 128 + (h->credits & 0x1fff),
			     .nbulks = h->xid >> 27 & XDR_BULKS_MAX };
	uint64_t written = 0, told;

	/* Items of many lengths at rising offsets, the last one at the end of the message or
	 * before. */
	for (unsigned i = 0; i < x.nbulks; i++)
		x.bulk[i] = (struct xdr_out_bulk){
			.at = x.used - 4 * (x.nbulks - 1 - i) - (h->credits & 4),
			.len = (h->xid & 0x7ffffff) >> i,
		};
	rr_plan_reply(h, &x, h->nwrites, threshold, &p);
	MUST(p.nwrites <= RR_WRITES_MAX && p.nspans <= RR_SPANS_MAX);
	if (p.how == RR_REPLY_TOO_LONG)
		return;
	for (unsigned i = 0; i < p.nwrites; i++)
		written += p.write[i].from.len;
	told = p.lists.reply_len;
	for (unsigned i = 0; i < RR_WRITE_CHUNKS_MAX; i++)
		told += p.lists.bulk_len[i];
	MUST(written == told);
	MUST(p.how == RR_REPLY_LONG || p.header_size + p.stream_len <= threshold);
	uint8_t *out = malloc(p.header_size);
	MUST(out);
	rr_reply_header_encode(h, p.how == RR_REPLY_LONG ? RR_NOMSG : RR_MSG, 128, &p.lists, out);
	MUST(rr_header_decode(out, p.header_size, &back) == RR_CALL);
	MUST(back.size == p.header_size && back.nsegs == h->nsegs && !back.nreads);
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct rr_header h;
	uint8_t err[RR_ERR_VERS_SIZE];
	uint32_t handle;

	if (size > 262144)
		return 0;
	enum rr_verdict v = rr_header_decode(data, size, &h);
	if (v == RR_BAD_VERSION)
		MUST(rr_error_encode(&h, RR_ERR_VERS, 1, err) == sizeof(err));
	if (v != RR_CALL)
		return 0;
	MUST(h.size <= size && h.size >= RR_HEADER_MIN);
	rr_header_one_handle(&h, &handle);
	check_call_plan(&h, size - h.size);
	check_reply(&h, 1024);
	check_reply(&h, 65536);
	return 0;
}

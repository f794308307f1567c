/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plans the use of a call's chunks (RFC 8166 sections 3.4 and 3.5). Pure: no verbs, no allocation.
 *
 * rr_plan_call: the payload stream of a call, put together from the inline bytes (or the
 * position-zero chunk) and the Read chunks, and the place of each chunk in one buffer.
 * rr_plan_reply: the bytes of a reply that go inline, and those that go by RDMA Write, with the
 * client's segment for each.
 */
#ifndef RN_TRANSPORT_RDMA_CHUNKS_H
#define RN_TRANSPORT_RDMA_CHUNKS_H

#include <stdbool.h>
#include <stdint.h>

#include "rpc/xdr_out.h"
#include "transport/rdma/rdma_header.h"

#define RR_READ_CHUNKS_MAX 16u			   /* besides the position-zero chunk */
#define RR_PIECES_MAX (2 * RR_READ_CHUNKS_MAX + 2) /* stream, chunk, stream, ... */
/* alignment in the buffer: direct I/O wants whole pages */
#define RR_CHUNK_ALIGN 4096u

struct rr_read_chunk {
	uint32_t position;
	uint32_t length;
	uint32_t buf_off; /* offset in the buffer, bytes */
	uint16_t first;	  /* its segments: nsegs entries of rr_header.read */
	uint16_t nsegs;
};

struct rr_piece {
	bool chunk; /* all of chunk[index]; else bytes of the stream */
	uint16_t index;
	uint32_t off, len; /* offset in the stream */
};

struct rr_call_plan {
	bool long_call; /* the stream is chunk[0], which is at position zero, not the inline bytes
			 */
	uint16_t nchunks;
	uint16_t npieces;
	uint32_t buf_size; /* bytes of the one buffer for all chunks; 0: nothing to read */
	struct rr_read_chunk chunk[RR_READ_CHUNKS_MAX + 1];
	struct rr_piece piece[RR_PIECES_MAX];
};

struct rr_call_limits {
	uint32_t max_message; /* bytes of the whole call */
	uint32_t max_buffer;  /* bytes of the buffer */
};

/* Sorts h->read by position (a client may list its chunks in any order) and plans. NULL, or the
 * fault of the lists as a text for the log; the client then gets ERR_CHUNK. */
const char *rr_plan_call(struct rr_header *h, uint32_t inline_len,
			 const struct rr_call_limits *limits, struct rr_call_plan *p);

/* Longest reply that the client can take as one stream: inline, or in its Reply chunk. */
uint32_t rr_reply_space(const struct rr_header *call, uint32_t threshold);
/* Length of the Write chunk for the reply's bulk item i; 0: there is none, or it is empty, and the
 * item is part of the stream. */
uint32_t rr_bulk_space(const struct rr_header *call, unsigned i);

enum rr_source { RR_FROM_HEAD, RR_FROM_BULK, RR_FROM_PAD };

struct rr_span {
	enum rr_source source;
	unsigned item;	   /* for RR_FROM_BULK: index of the item */
	uint32_t off, len; /* offset in the head, the bulk item, or the pad */
};

struct rr_write {
	struct rr_span from;
	uint32_t handle;
	uint64_t remote;
};

/* For each bulk item: the head before it, the item, its pad; then the end of the head. */
#define RR_SPANS_MAX (3 * XDR_BULKS_MAX + 1)
/* Each further span can cut one segment in two. */
#define RR_WRITES_MAX (RR_SEGS_MAX + RR_SPANS_MAX)

enum rr_reply_how {
	RR_REPLY_INLINE,   /* RDMA_MSG: header, then the spans */
	RR_REPLY_LONG,	   /* RDMA_NOMSG: the spans are written to the Reply chunk */
	RR_REPLY_TOO_LONG, /* ERR_CHUNK: the reply does not fit what the client offered */
};

struct rr_reply_plan {
	enum rr_reply_how how;
	struct rr_reply_lists lists;
	uint32_t header_size;
	uint32_t stream_len; /* bytes of the spans */
	unsigned nspans;
	struct rr_span span[RR_SPANS_MAX];
	unsigned nwrites;
	struct rr_write write[RR_WRITES_MAX];
};

/* Uses only the marks and lengths of out. */
/* nrooms: Write chunks that items may go by, from the first on; the others return empty. */
void rr_plan_reply(const struct rr_header *call, const struct xdr_out *out, unsigned nrooms,
		   uint32_t threshold, struct rr_reply_plan *p);

#endif

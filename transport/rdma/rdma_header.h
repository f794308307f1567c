/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RPC-over-RDMA version 1 transport header (RFC 8166 section 4), and the private message of connection
 * establishment (RFC 8797). Pure: no verbs, no allocation,
 * no state.
 *
 * Decoding limits every list before it stores anything; a longer one is a bad header. Words are in
 * host order once decoded; lengths and offsets are bytes.
 */
#ifndef RN_TRANSPORT_RDMA_HEADER_H
#define RN_TRANSPORT_RDMA_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RR_VERSION 1u
#define RR_FIXED_SIZE 16u /* xid, version, credits, procedure */
#define RR_HEADER_MIN 28u /* and three empty lists */
#define RR_ERR_VERS_SIZE 28u
#define RR_ERR_CHUNK_SIZE 20u
#define RR_READ_SEGS_MAX 128u /* limit for all Read chunks together */
#define RR_WRITE_CHUNKS_MAX 16u
#define RR_SEGS_MAX 128u /* limit for all Write chunks and the Reply chunk together */

enum rr_proc { RR_MSG = 0, RR_NOMSG = 1, RR_MSGP = 2, RR_DONE = 3, RR_ERROR = 4 };
enum rr_errcode { RR_ERR_VERS = 1, RR_ERR_CHUNK = 2 };

struct rr_segment {
	uint32_t handle;
	uint32_t length;
	uint64_t offset;
};

struct rr_read_segment {
	uint32_t position;
	struct rr_segment target;
};

/* A Write or Reply chunk: nsegs entries of rr_header.seg from first on. */
struct rr_write_chunk {
	uint16_t first;
	uint16_t nsegs;
};

struct rr_header {
	uint32_t xid;
	uint32_t vers;
	uint32_t credits;
	uint32_t proc;
	uint32_t size; /* bytes of the header: where the payload stream starts */
	uint16_t nreads;
	uint16_t nwrites;
	uint16_t nsegs;
	bool has_reply;
	struct rr_write_chunk reply;
	struct rr_write_chunk write[RR_WRITE_CHUNKS_MAX];
	struct rr_segment seg[RR_SEGS_MAX];
	struct rr_read_segment read[RR_READ_SEGS_MAX];
};

enum rr_verdict {
	RR_CALL, /* RDMA_MSG or RDMA_NOMSG, lists decoded */
	/* RDMA_ERROR: the client cannot take a call of this server. Shorter than other headers. */
	RR_REFUSAL,
	/* RDMA_DONE, an RDMA_ERROR with an unknown code; or shorter than any header, so that not even
	 * its xid can be trusted (RFC 8166 section 4.5) */
	RR_DISCARD,
	RR_BAD_VERSION, /* answer ERR_VERS; xid and vers are set */
	RR_BAD_CHUNK,	/* answer ERR_CHUNK; xid is set */
};

enum rr_verdict rr_header_decode(const void *msg, size_t len, struct rr_header *h);

/* Sum of a chunk's segment lengths; does not overflow, as the segments are capped. */
uint64_t rr_chunk_length(const struct rr_header *h, const struct rr_write_chunk *c);

/* The handle that all segments of all lists share, for remote invalidation. False: there is none,
 * or several. */
bool rr_header_one_handle(const struct rr_header *h, uint32_t *handle);

/*
 * The part of a reply's header about the call's Write list and Reply chunk. All segments are
 * returned with the lengths written: bulk_len[i] bytes of Write chunk i, reply_len bytes of the
 * Reply chunk.
 */
struct rr_reply_lists {
	uint32_t bulk_len[RR_WRITE_CHUNKS_MAX];
	uint32_t reply_len;
};

size_t rr_reply_header_size(const struct rr_header *call);
/* Encodes into rr_reply_header_size(call) bytes; proc is RR_MSG or RR_NOMSG. */
void rr_reply_header_encode(const struct rr_header *call, enum rr_proc proc, uint32_t credits,
			    const struct rr_reply_lists *lists, uint8_t *out);

/* RDMA_MSG of a call to the client, without chunks: RR_HEADER_MIN bytes. credits: that are asked for. */
void rr_call_header_encode(uint32_t xid, uint32_t credits, uint8_t *out);

/* RDMA_ERROR; returns the bytes used of out (at most RR_ERR_VERS_SIZE). */
size_t rr_error_encode(const struct rr_header *call, enum rr_errcode err, uint32_t credits,
		       uint8_t *out);

/*
 * The RPC-over-RDMA private message of connection establishment (RFC 8797). Pure: no verbs. Sizes
 * are in bytes, multiples of 1024 from RR_INLINE_MIN to RR_INLINE_MAX.
 */
#define RR_PRIVATE_MSG_SIZE 8u
#define RR_INLINE_MIN 1024u
#define RR_INLINE_MAX 262144u

struct rr_private_msg {
	bool remote_invalidate;
	uint32_t send_size; /* longest Send the sender of this message will make */
	uint32_t recv_size; /* longest Send it can receive */
};

/* Sizes out of range are clamped, others rounded down to 1024. */
void rr_private_encode(const struct rr_private_msg *m, uint8_t out[RR_PRIVATE_MSG_SIZE]);

/*
 * Searches the peer's private data for the message at any offset, since iWARP may have put its own
 * data in front. False: there is no whole message of version 1; *m then holds the defaults of RFC
 * 8797 section 5.1.
 */
bool rr_private_find(const void *data, size_t len, struct rr_private_msg *m);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Decoder of RPC-over-RDMA headers (RFC 8166 section 4), for the driver's own and the server's. */
#ifndef RN_TESTS_FUZZ_SESSION_RDMA_HEADER_H
#define RN_TESTS_FUZZ_SESSION_RDMA_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/conform/conform_conn.h"

#define SS_RDMA_MSG 0u
#define SS_RDMA_NOMSG 1u
#define SS_RDMA_DONE 3u
#define SS_RDMA_ERROR 4u
#define SS_RDMA_FIXED 16u
#define SS_RDMA_HEADER_MIN 28u /* the fixed words and three empty lists */
#define SS_RDMA_SEGS 512u      /* more than fit into an inline message */

/* n segments, starting at seg[first]. */
struct ss_chunk {
	unsigned first, n;
};

struct ss_rdma_header {
	uint32_t xid, vers, credits, proc;
	bool fixed; /* the four words above are valid */
	bool whole; /* the lists and all members below are valid */
	size_t size;
	unsigned nreads; /* segments of the Read list, which come first in seg */
	unsigned nwrites;
	bool has_reply;
	struct ss_chunk write[SS_RDMA_SEGS], reply;
	unsigned nsegs;
	struct cf_seg seg[SS_RDMA_SEGS];
};

void ss_rdma_parse(const uint8_t *msg, size_t len, struct ss_rdma_header *h);
uint64_t ss_chunk_length(const struct ss_rdma_header *h, const struct ss_chunk *c);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posts the RDMA Reads that fetch a call's Read chunks into r->data. While they are posted the
 * request stays on c->reading, from where it is released when they complete, or when the QP is
 * gone.
 */
#include "transport/rdma/rdma_read.h"

#include <errno.h>

#include "lib/error.h"
#include "rpc/conns.h"
#include "transport/rdma/rdma_chain.h"
#include "transport/rdma/rdma_conn.h"
#include "transport/rdma/rdma_keys.h"

static unsigned count_reads(const struct rr_req *r, const struct rr_read_segment **last)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->call.nreads; i++) {
		if (!r->call.read[i].target.length)
			continue;
		*last = &r->call.read[i];
		n++;
	}
	return n;
}

static void rr_read_add_chunk(struct rr_chain *ch, struct rr_req *r,
			      const struct rr_read_chunk *chunk, uint32_t lkey,
			      const struct rr_read_segment *last)
{
	uintptr_t at = (uintptr_t)r->data->data + chunk->buf_off;

	for (unsigned i = 0; i < chunk->nsegs; i++) {
		const struct rr_read_segment *s = &r->call.read[chunk->first + i];
		if (!s->target.length)
			continue;
		struct ibv_sge sge = { at, s->target.length, lkey };
		struct ibv_send_wr *wr =
			rr_chain_add(ch, IBV_WR_RDMA_READ, sge, rr_wr_id(r, RR_TAG_PART));
		wr->wr.rdma.remote_addr = s->target.offset;
		wr->wr.rdma.rkey = s->target.handle;
		if (s == last) {
			wr->send_flags = IBV_SEND_SIGNALED;
			wr->wr_id = rr_wr_id(r, RR_TAG_READ);
		}
		at += s->target.length;
	}
}

int rr_read_post(struct rr_req *r)
{
	struct rr_conn *c = r->conn;
	const struct rr_read_segment *last = NULL;
	struct rr_chain own, *ch;
	uint32_t lkey;
	uint64_t bytes = 0;

	r->wrs = count_reads(r, &last);
	if (c->sq_room < r->wrs)
		return -RN_EFULL;
	TAILQ_INSERT_TAIL(&c->reading, r, link);
	int rc = rr_key_for_sink(r, &lkey);
	if (rc)
		return rc;
	c->sq_room -= r->wrs;
	ch = rr_chain_start(c, &own);
	for (unsigned i = 0; i < r->plan.nchunks; i++) {
		rr_read_add_chunk(ch, r, &r->plan.chunk[i], lkey, last);
		bytes += r->plan.chunk[i].length;
	}
	rc = rr_chain_end(ch);
	if (rc)
		return rc;
	rr_conn_sending(c);
	rr_count(c->srv, read_segments, r->wrs);
	rr_count(c->srv, read_bytes, bytes);
	rpc_tally(&c->rpc.tally.bytes_in, bytes);
	return 0;
}

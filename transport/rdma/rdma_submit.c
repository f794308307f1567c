/* SPDX-License-Identifier: BSD-2-Clause */
/* Hands a complete call to the sink: RPC message in place, reply room known. */
#include "transport/rdma/rdma_submit.h"

#include "lib/util.h"
#include "rpc/conns.h"
#include "transport/rdma/rdma_conn.h"
#include "transport/rdma/rdma_request.h"
#include "transport/rdma/rdma_send.h"

void rr_bad_chunk(struct rr_req *r, enum rr_refusal what, const char *why)
{
	char name[64];

	rn_debug(r->conn->srv->cfg.log, "rdma: %s: xid %08x: ERR_CHUNK: %s",
		 rr_peer_name(r->conn, name, sizeof(name)), r->call.xid, why);
	rr_count(r->conn->srv, refused_by[what], 1);
	rr_fail(r, RR_STEP_ERR_CHUNK);
}

/* Checks the parts of the RPC message that the transport depends on: the same xid (RFC 8166 section
 * 4.5.2), and enough bytes for a call. NULL, or the fault. */
static const char *check_message(const struct rr_req *r, const uint8_t *p, uint32_t len)
{
	if (len < 8)
		return "no RPC message";
	if (rn_get32(p) != r->call.xid)
		return "two different xids";
	return NULL;
}

static void fill_segments(struct rr_req *r, uint8_t *stream)
{
	const struct rr_call_plan *plan = &r->plan;
	struct rpc_request *rpc = r->rpc;

	for (unsigned i = 0; i < plan->npieces; i++) {
		const struct rr_piece *p = &plan->piece[i];
		struct rpc_seg *s = &rpc->seg[i];
		*s = (struct rpc_seg){ .base = stream + p->off, .len = p->len };
		if (p->chunk) {
			const struct rr_read_chunk *chunk = &plan->chunk[p->index];
			*s = (struct rpc_seg){
				.base = r->data->data + chunk->buf_off,
				.len = chunk->length,
				.placed = true,
			};
		}
		if (p->chunk || plan->long_call) {
			s->payload = r->data;
			rn_payload_ref(r->data);
		}
	}
	rpc->nseg = plan->npieces;
	rn_payload_put(r->data);
	r->data = NULL;
}

_Static_assert(RR_WRITE_CHUNKS_MAX <= XDR_BULKS_MAX, "every Write chunk can have its bulk item");

static void set_reply_room(struct rr_req *r)
{
	struct rpc_request *rpc = r->rpc;

	rpc->reply_max = rr_reply_room(&r->call, r->conn->threshold);
	rpc->nbulk_rooms = r->call.nwrites;
	for (unsigned i = 0; i < r->call.nwrites; i++)
		rpc->bulk_room[i] = rr_bulk_room(&r->call, i);
}

void rr_submit(struct rr_req *r)
{
	struct rr_conn *c = r->conn;
	const struct rr_call_plan *plan = &r->plan;
	uint8_t *stream = plan->long_call ? r->data->data + plan->chunk[0].buf_off
					  : r->recv->buf + r->call.size;
	uint32_t len = plan->long_call ? plan->chunk[0].length : r->recv->len - r->call.size;
	const char *why = check_message(r, stream, len);

	/* A reply has no chunks, and came before (rdma_call.c). */
	if (len >= 8 && rn_get32(stream + 4) == RPC_REPLY) {
		rr_count(c->srv, dropped, 1);
		rr_req_done(r);
		return;
	}
	if (why) {
		rr_bad_chunk(r, RR_REFUSED_MESSAGE, why);
		return;
	}
	fill_segments(r, stream);
	r->rpc->conn = &c->rpc;
	set_reply_room(r);
	r->rpc->arrived_ns = rn_now_ns();
	rpc_conn_begin(&c->rpc, r->rpc);
	c->srv->cfg.sink.submit(c->srv->cfg.sink.ctx, r->rpc);
}

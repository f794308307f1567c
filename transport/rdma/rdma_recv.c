/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a Receive's completion to the sink. The call's inline bytes stay in the receive buffer,
 * which therefore belongs to the request until its reply is posted; two batches of buffers more
 * than the credits see to it that there is always one posted for a client that keeps to its
 * credits.
 */
#include <errno.h>
#include <string.h>

#include "transport/rdma/rdma_internal.h"

static int post_batch(struct rr_conn *c)
{
	struct ibv_recv_wr wr[RR_BATCH_MAX], *bad;
	struct ibv_sge sge[RR_BATCH_MAX];
	unsigned n = c->nrepost;

	if (!n)
		return 0;
	/* Also when it fails: the connection ends then, and until it has there may be more. */
	c->nrepost = 0;
	for (unsigned i = 0; i < n; i++) {
		struct rr_recv *r = c->repost[i];
		sge[i] = (struct ibv_sge){ (uintptr_t)r->buf, c->recv_size, c->recv_mr->lkey };
		wr[i] = (struct ibv_recv_wr){
			.wr_id = rr_wr_id(r, RR_TAG_RECV),
			.next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = &sge[i],
			.num_sge = 1,
		};
	}
	if (ibv_post_recv(c->id->qp, wr, &bad) != 0)
		return -EIO;
	c->posted += n;
	return 0;
}

int rr_recv_post(struct rr_recv *r)
{
	struct rr_conn *c = r->conn;

	if (!c->open)
		return 0;
	c->repost[c->nrepost++] = r;
	return c->nrepost < c->batch ? 0 : post_batch(c);
}

int rr_recv_post_all(struct rr_conn *c)
{
	int err = 0;

	for (unsigned i = 0; i < c->nrecvs && !err; i++)
		err = rr_recv_post(&c->recvs[i]);
	if (!err)
		err = post_batch(c);
	return err;
}

void rr_recv_arrived(struct rr_recv *r)
{
	struct rr_conn *c = r->conn;

	if (c->state == RR_ACCEPTING)
		TAILQ_INSERT_TAIL(&c->held, r, link);
	else if (c->state == RR_OPEN && !c->srv->quiet)
		rr_pool_bind(r);
}

static void bad_chunk(struct rr_req *r, const char *why)
{
	char name[64];

	rn_debug(r->conn->srv->cfg.log, "rdma: %s: xid %08x: ERR_CHUNK: %s",
		 rr_peer_name(r->conn, name, sizeof(name)), r->call.xid, why);
	rr_fail(r, RR_STEP_ERR_CHUNK);
}

static void start_call(struct rr_req *r)
{
	struct rr_conn *c = r->conn;
	struct rr_server *srv = c->srv;
	struct rr_call_limits limits = { srv->cfg.max_message, RN_PAYLOAD_MAX };
	struct rpc_address client;
	const char *why = rr_plan_call(&r->call, r->recv->len - r->call.size, &limits, &r->plan);

	rpc_address_of(&c->rpc.peer, &client);
	if (!why && r->call.nreads > c->sq_depth)
		why = "more Read segments than this device's send queue holds";
	if (!why && rr_broken_has(&srv->broken, &client, &r->call, rr_now()))
		why = "its chunks have broken a connection";
	if (why) {
		bad_chunk(r, why);
		return;
	}
	rr_count(srv, calls, 1);
	if (r->plan.long_call)
		rr_count(srv, position_zero, 1);
	if (r->plan.nchunks)
		rr_count(srv, read_chunks, r->plan.nchunks);
	if (r->plan.buf_size)
		rr_read_start(r);
	else
		rr_submit(r);
}

void rr_recv_start(struct rr_recv *recv, struct rr_req *r)
{
	struct rr_conn *c = r->conn;

	switch (rr_header_decode(recv->buf, recv->len, &r->call)) {
	case RR_CALL:
		start_call(r);
		break;
	case RR_BAD_VERSION:
		rr_fail(r, RR_STEP_ERR_VERS);
		break;
	case RR_BAD_CHUNK:
		bad_chunk(r, "transport header");
		break;
	case RR_DISCARD:
		rr_count(c->srv, dropped, 1);
		rr_req_done(r);
		break;
	}
}

static uint32_t peek(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* What the transport must know of the RPC message itself: the same xid (RFC 8166 section 4.5.2),
 * and a call. */
static const char *check_message(const struct rr_req *r, const uint8_t *p, uint32_t len)
{
	if (len < 8)
		return "no RPC message";
	if (peek(p) != r->call.xid)
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
				.ddp = true,
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

	if (why) {
		bad_chunk(r, why);
		return;
	}
	if (peek(stream + 4) == RPC_REPLY) {
		/* We made no call that it could answer. */
		rr_count(c->srv, dropped, 1);
		rr_req_done(r);
		return;
	}
	fill_segments(r, stream);
	r->rpc->conn = &c->rpc;
	set_reply_room(r);
	r->rpc->arrived_ns = rr_now();
	c->srv->cfg.sink.submit(c->srv->cfg.sink.ctx, r->rpc);
}

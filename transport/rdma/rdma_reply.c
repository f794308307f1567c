/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replies and RDMA_ERROR. A reply is one chain: its RDMA Writes, then the Send that announces them;
 * on a reliable connection the data arrive first. Inline replies are copied to the send context,
 * and the request is released at once; a request whose memory RDMA Writes read is kept until the
 * Send completes. The receive buffer is posted before the Send, so that the credit in the reply is
 * valid.
 */
#include "transport/rdma/rdma_reply.h"

#include <errno.h>
#include <string.h>

#include "lib/error.h"
#include "rpc/conns.h"
#include "transport/rdma/rdma_chain.h"
#include "transport/rdma/rdma_conn.h"
#include "transport/rdma/rdma_keys.h"
#include "transport/rdma/rdma_recv.h"

/* Hands r to the connection's loop, which posts all replies that wait by then together. */
static void rr_reply_hand_over(struct rr_req *r, enum rr_step step)
{
	struct rr_conn *c = r->conn;

	r->step = step;
	pthread_mutex_lock(&c->lock);
	TAILQ_INSERT_TAIL(&c->replies, r, link);
	/* under the lock: r keeps the connection alive, and belongs to the loop afterwards */
	rr_conn_send_locked(c);
	pthread_mutex_unlock(&c->lock);
}

void rr_reply(struct rpc_request *rpc)
{
	rr_reply_hand_over(rpc->transport_private, RR_STEP_REPLY);
}

void rr_drop(struct rpc_request *rpc)
{
	struct rr_req *r = rpc->transport_private;

	rr_count(r->conn->srv, dropped, 1);
	atomic_fetch_add_explicit(&rpc->conn->tally.dropped, 1, memory_order_relaxed);
	rr_reply_hand_over(r, RR_STEP_DROP);
}

static void rr_reply_refuse(struct rpc_request *rpc, enum rr_refusal what)
{
	struct rr_req *r = rpc->transport_private;

	rr_count(r->conn->srv, refused_by[what], 1);
	rr_reply_hand_over(r, RR_STEP_ERR_CHUNK);
}

void rr_too_long(struct rpc_request *rpc)
{
	rr_reply_refuse(rpc, RR_REFUSED_REPLY);
}

void rr_garbage(struct rpc_request *rpc)
{
	rr_reply_refuse(rpc, RR_REFUSED_MESSAGE);
}

static int repost_recv(struct rr_req *r)
{
	struct rr_recv *recv = r->recv;

	r->recv = NULL;
	return recv ? rr_recv_post(recv) : 0;
}

static void count_error(struct rr_conn *c, enum rr_errcode code)
{
	if (code == RR_ERR_VERS) {
		rr_count(c->srv, err_vers, 1);
		rpc_tally(&c->shown.err_vers, 1);
	} else {
		rr_count(c->srv, err_chunk, 1);
		rpc_tally(&c->shown.err_chunk, 1);
	}
}

int rr_error_post(struct rr_req *r, enum rr_errcode code)
{
	struct rr_conn *c = r->conn;
	struct rr_send *s = rr_send_take(c, 1);
	struct rr_chain own, *ch;

	if (!s)
		return -RN_EFULL;
	int rc = repost_recv(r);
	if (rc)
		return rc;
	uint32_t len = rr_error_encode(&r->call, code, c->credits, s->buf);
	ch = rr_chain_start(c, &own);
	rr_chain_add_send(ch, s, len);
	/* Before it goes, so that whoever has the answer finds it counted. */
	count_error(c, code);
	rc = rr_chain_end(ch);
	if (rc)
		return rc;
	rr_sent(c, s);
	return 0;
}

static uint8_t *bulk_bytes(const struct xdr_out *out, const struct rr_span *span)
{
	const struct xdr_out_bulk *b = &out->bulk[span->item];

	return b->payload->data + b->off + span->off;
}

static int head_key(struct rr_req *r, uint32_t *lkey)
{
	const struct xdr_out *out = &r->rpc->out;
	const struct rn_payload *holder = r->rpc->head;

	if (r->rpc->long_head && out->base == r->rpc->long_head->data)
		holder = r->rpc->long_head;
	return rr_key_for_source(r, holder, out->base, out->used, lkey);
}

/* Address and key of a span's bytes; one key for the whole item. */
static int locate(struct rr_req *r, const struct rr_span *span, struct ibv_sge *sge)
{
	struct rr_conn *c = r->conn;
	const struct xdr_out *out = &r->rpc->out;
	const struct xdr_out_bulk *b = &out->bulk[span->item];

	sge->length = span->len;
	switch (span->source) {
	case RR_FROM_BULK:
		sge->addr = (uintptr_t)bulk_bytes(out, span);
		return rr_key_for_source(r, b->payload, b->payload->data + b->off, b->len,
					 &sge->lkey);
	case RR_FROM_HEAD:
		sge->addr = (uintptr_t)out->base + span->off;
		return head_key(r, &sge->lkey);
	case RR_FROM_PAD:
		break;
	}
	sge->addr = (uintptr_t)c->zeros;
	sge->lkey = c->send_mr->lkey;
	return 0;
}

static int add_writes(struct rr_chain *ch, struct rr_req *r, const struct rr_reply_plan *plan)
{
	for (unsigned i = 0; i < plan->nwrites; i++) {
		const struct rr_write *w = &plan->write[i];
		struct ibv_sge sge;
		int rc = locate(r, &w->from, &sge);

		if (rc)
			return rc;
		struct ibv_send_wr *wr =
			rr_chain_add(ch, IBV_WR_RDMA_WRITE, sge, rr_wr_id(r, RR_TAG_PART));
		wr->wr.rdma.remote_addr = w->remote;
		wr->wr.rdma.rkey = w->handle;
	}
	return 0;
}

/* Encodes the header, and the spans if they go inline; returns the length of the Send. */
static uint32_t encode_send(struct rr_req *r, const struct rr_reply_plan *plan, struct rr_send *s)
{
	const struct xdr_out *out = &r->rpc->out;
	uint8_t *p = s->buf + plan->header_size;
	bool is_long = plan->how == RR_REPLY_LONG;

	rr_reply_header_encode(&r->call, is_long ? RR_NOMSG : RR_MSG, r->conn->credits,
			       &plan->lists, s->buf);
	if (is_long)
		return plan->header_size;
	for (unsigned i = 0; i < plan->nspans; i++) {
		const struct rr_span *span = &plan->span[i];
		if (span->source == RR_FROM_HEAD)
			memcpy(p, out->base + span->off, span->len);
		else if (span->source == RR_FROM_BULK)
			memcpy(p, bulk_bytes(out, span), span->len);
		else
			memset(p, 0, span->len);
		p += span->len;
	}
	return p - s->buf;
}

static void invalidate(struct rr_req *r, struct ibv_send_wr *wr)
{
	struct rr_conn *c = r->conn;
	uint32_t handle;

	if (!c->invalidate || !c->dev->invalidate || !rr_header_one_handle(&r->call, &handle))
		return;
	wr->opcode = IBV_WR_SEND_WITH_INV;
	wr->invalidate_rkey = handle;
	/* siw's library reads the handle from here. */
	wr->wr.rdma.rkey = handle;
	rr_count(c->srv, invalidations, 1);
}

static void count_reply(struct rr_conn *c, const struct rr_reply_plan *plan)
{
	struct rr_server *srv = c->srv;
	uint64_t bytes = plan->lists.reply_len;

	rr_count(srv, replies, 1);
	for (unsigned i = 0; i < RR_WRITE_CHUNKS_MAX; i++) {
		if (!plan->lists.bulk_len[i])
			continue;
		rr_count(srv, write_chunks, 1);
		bytes += plan->lists.bulk_len[i];
	}
	if (plan->how == RR_REPLY_LONG)
		rr_count(srv, reply_chunks, 1);
	rr_count(srv, write_segments, plan->nwrites);
	rr_count(srv, write_bytes, bytes);
	rpc_tally(&c->rpc.tally.bytes_out, bytes);
}

static int rr_reply_post_chain(struct rr_req *r, const struct rr_reply_plan *plan,
			       struct rr_send *s)
{
	struct rr_chain own, *ch;
	int rc = repost_recv(r);

	if (rc)
		return rc;
	ch = rr_chain_start(r->conn, &own);
	rc = add_writes(ch, r, plan);
	if (rc)
		return rc;
	invalidate(r, rr_chain_add_send(ch, s, encode_send(r, plan, s)));
	rc = rr_chain_end(ch);
	if (rc)
		return rc;
	rr_sent(r->conn, s);
	return 0;
}

int rr_reply_post(struct rr_req *r, bool *kept)
{
	struct rr_conn *c = r->conn;
	struct rr_reply_plan plan;

	rr_plan_reply(&r->call, &r->rpc->out, r->rpc->nbulk_rooms, c->threshold, &plan);
	if (plan.how == RR_REPLY_TOO_LONG || plan.nwrites + 1 > c->sq_depth) {
		int rc = rr_error_post(r, RR_ERR_CHUNK);

		if (!rc)
			rr_count(c->srv, refused_by[RR_REFUSED_REPLY], 1);
		return rc;
	}
	struct rr_send *s = rr_send_take(c, plan.nwrites + 1);
	if (!s)
		return -RN_EFULL;
	if (plan.nwrites) {
		s->req = r;
		*kept = true;
	}
	int rc = rr_reply_post_chain(r, &plan, s);
	if (!rc)
		count_reply(c, &plan);
	return rc;
}

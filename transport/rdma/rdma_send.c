/* SPDX-License-Identifier: BSD-2-Clause */
/*
* Sending on a connection: chains of work requests, the RDMA Reads that fetch a call's chunks, replies and RDMA_ERROR,
 * and the queue of what does not fit. All but the operations that workers call are on the connection's loop.
 */
#include "transport/rdma/rdma_private.h"

#include <errno.h>
#include <string.h>

#include "lib/error.h"
#include "rpc/conns.h"

/* Chains of work requests, and the Sends that end them. */

static void rr_chain_reset(struct rr_chain *ch, struct rr_conn *c)
{
	ch->conn = c;
	ch->n = 0;
	ch->err = 0;
}

struct rr_chain *rr_chain_start(struct rr_conn *c, struct rr_chain *own)
{
	if (c->gather)
		return c->gather;
	rr_chain_reset(own, c);
	return own;
}

/* The device supports invalidation, but its user library does not. */
static void stop_invalidating(struct rr_device *dev, struct ibv_send_wr *wr)
{
	dev->invalidate = false;
	for (; wr; wr = wr->next)
		if (wr->opcode == IBV_WR_SEND_WITH_INV)
			wr->opcode = IBV_WR_SEND;
}

static void rr_chain_post(struct rr_chain *ch)
{
	struct ibv_send_wr *bad = NULL;

	if (!ch->n || ch->err)
		return;
	for (unsigned i = 0; i < ch->n; i++) {
		ch->wr[i].sg_list = &ch->sge[i];
		ch->wr[i].next = i + 1 < ch->n ? &ch->wr[i + 1] : NULL;
	}
	rr_count(ch->conn->srv, posts, 1);
	int rc = ibv_post_send(ch->conn->id->qp, ch->wr, &bad);
	if (rc && bad && bad->opcode == IBV_WR_SEND_WITH_INV) {
		stop_invalidating(ch->conn->dev, bad);
		rc = ibv_post_send(ch->conn->id->qp, bad, &bad);
	}
	/* Drivers return errno values of either sign. */
	ch->err = rc > 0 ? -rc : rc;
	ch->n = 0;
}

/* A work request for the caller to complete, valid until the next call. */
static struct ibv_send_wr *rr_chain_add(struct rr_chain *ch, enum ibv_wr_opcode op,
					struct ibv_sge sge, uint64_t wr_id)
{
	if (ch->n == RR_POST_BATCH)
		rr_chain_post(ch);
	if (ch->n == RR_POST_BATCH)
		ch->n = 0; /* failed before: nothing more will be posted */
	ch->sge[ch->n] = sge;
	ch->wr[ch->n] = (struct ibv_send_wr){ .wr_id = wr_id, .num_sge = 1, .opcode = op };
	return &ch->wr[ch->n++];
}

int rr_chain_end(struct rr_chain *ch)
{
	if (ch != ch->conn->gather)
		rr_chain_post(ch);
	return ch->err;
}

void rr_gather_start(struct rr_conn *c, struct rr_chain *ch)
{
	rr_chain_reset(ch, c);
	c->gather = ch;
}

int rr_gather_end(struct rr_conn *c)
{
	struct rr_chain *ch = c->gather;

	c->gather = NULL;
	rr_chain_post(ch);
	return ch->err;
}

struct rr_send *rr_send_take(struct rr_conn *c, unsigned wrs)
{
	struct rr_send *s = SLIST_FIRST(&c->free_sends);
	const bool unsignaled = wrs == 1 && c->nunsignaled < c->unsignaled_max;

	if (!s || (!unsignaled && c->sq_free < wrs))
		return NULL;
	SLIST_REMOVE_HEAD(&c->free_sends, link);
	s->wrs = unsignaled ? 0 : wrs;
	c->sq_free -= s->wrs;
	return s;
}

struct ibv_send_wr *rr_chain_add_send(struct rr_chain *ch, struct rr_send *s, uint32_t len)
{
	struct rr_conn *c = ch->conn;
	struct ibv_sge sge = { (uintptr_t)s->buf, len, c->send_mr->lkey };
	const enum rr_tag tag = s->wrs ? RR_TAG_SEND : RR_TAG_UNSIGNALED;
	struct ibv_send_wr *wr = rr_chain_add(ch, IBV_WR_SEND, sge, rr_wr_id(s, tag));

	wr->send_flags = s->wrs ? IBV_SEND_SIGNALED : 0;
	rpc_tally(&c->rpc.tally.bytes_out, len);
	return wr;
}

void rr_sent(struct rr_conn *c, struct rr_send *s)
{
	s->earlier = c->unsignaled;
	if (s->wrs == 0) {
		c->unsignaled = s;
		c->nunsignaled++;
		/* the work that a completion would have counted for */
		c->loop->work += TURN_WORK / 2;
		return;
	}
	c->unsignaled = NULL;
	c->nunsignaled = 0;
	rr_conn_sending(c);
}

/*
 * RDMA Reads fetch a call's Read chunks into r->data. While they are posted the request stays on c->reading, from where
 * it is released when they complete, or when the QP is gone.
 */

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

/* On the loop. 0, -RN_EFULL (no room in the send queue), or an error that ends the connection; but
 * for -RN_EFULL r is in c->reading afterwards. */
static int rr_read_post(struct rr_req *r)
{
	struct rr_conn *c = r->conn;
	const struct rr_read_segment *last = NULL;
	struct rr_chain own, *ch;
	uint32_t lkey;
	uint64_t bytes = 0;

	r->wrs = count_reads(r, &last);
	if (c->sq_free < r->wrs)
		return -RN_EFULL;
	TAILQ_INSERT_TAIL(&c->reading, r, link);
	int rc = rr_key_for_sink(r, &lkey);
	if (rc)
		return rc;
	c->sq_free -= r->wrs;
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

/*
 * Replies and RDMA_ERROR. A reply is one chain: its RDMA Writes, then the Send that announces them;
 * on a reliable connection the data arrive first. Inline replies are copied to the send context,
 * and the request is released at once; a request whose memory RDMA Writes read is kept until the
 * Send completes. The receive buffer is posted before the Send, so that the credit in the reply is
 * valid.
 */

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

static int rr_error_post(struct rr_req *r, enum rr_errcode code)
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

/* On the loop: 0, -RN_EFULL (no room in the send queue), or an error that ends the connection.
 * *kept: r stays until the Send completes, or the QP is gone. */
static int rr_reply_post(struct rr_req *r, bool *kept)
{
	struct rr_conn *c = r->conn;
	struct rr_reply_plan plan;

	rr_plan_reply(&r->call, &r->rpc->out, r->rpc->nbulk_spaces, c->threshold, &plan);
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

/* The queue: work that fits is posted, other work waits in order for completions. */

/* *release: nothing of r is in use by the QP. */
static int post_step(struct rr_req *r, bool *release)
{
	bool kept = false;
	int rc;

	switch (r->step) {
	case RR_STEP_READ:
		rc = rr_read_post(r);
		*release = false;
		return rc;
	case RR_STEP_REPLY:
		rc = rr_reply_post(r, &kept);
		break;
	case RR_STEP_ERR_VERS:
		rc = rr_error_post(r, RR_ERR_VERS);
		break;
	case RR_STEP_DROP:
		rc = 0;
		break;
	default:
		rc = rr_error_post(r, RR_ERR_CHUNK);
		break;
	}
	*release = !kept;
	return rc;
}

void rr_post(struct rr_req *r)
{
	struct rr_conn *c = r->conn;
	bool release = true;
	int rc = 0;

	if (c->open) {
		rc = TAILQ_EMPTY(&c->waiting) ? post_step(r, &release) : -RN_EFULL;
		if (rc == -RN_EFULL) {
			TAILQ_INSERT_TAIL(&c->waiting, r, link);
			rr_count(c->srv, sq_waits, 1);
			return;
		}
	}
	if (rc)
		rr_conn_close(c, "cannot post");
	if (release)
		rr_req_done(r);
}

void rr_fail(struct rr_req *r, enum rr_step step)
{
	r->step = step;
	rr_post(r);
}

void rr_post_waiting(struct rr_conn *c)
{
	struct rr_req *r;

	while (c->open && (r = TAILQ_FIRST(&c->waiting))) {
		bool release = false;
		TAILQ_REMOVE(&c->waiting, r, link);
		int rc = post_step(r, &release);
		if (rc == -RN_EFULL) {
			TAILQ_INSERT_HEAD(&c->waiting, r, link);
			return;
		}
		if (rc)
			rr_conn_close(c, "cannot post");
		if (release)
			rr_req_done(r);
	}
}

/* Gives back the contexts of a Send and of the unsignaled ones before it. */
static void rr_sends_give_back(struct rr_conn *c, struct rr_send *s)
{
	struct rr_send *earlier;

	for (; s; s = earlier) {
		earlier = s->earlier;
		c->sq_free += s->wrs;
		SLIST_INSERT_HEAD(&c->free_sends, s, link);
	}
}

void rr_send_done(struct rr_conn *c, struct rr_send *s)
{
	struct rr_req *r = s->req;

	s->req = NULL;
	rr_sends_give_back(c, s);
	if (r)
		rr_req_done(r);
	rr_post_waiting(c);
	rr_back_post(c);
}

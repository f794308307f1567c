/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a Receive's completion to the executor. A call without Read chunks is handed over at once, its RPC message in place and the
 * room of its reply known.
 *
 * The Read chunks of others are pulled into one payload buffer first: memory, then the RDMA Reads. One buffer holds all
 * chunks, so that a request never holds memory while it waits for more. The buffer belongs to the request.
 */
#include "transport/rdma/rdma_private.h"

#include "lib/util.h"
#include "rpc/conns.h"

/* Answers ERR_CHUNK; why goes to the log at debug level. */
static void rr_bad_chunk(struct rr_req *r, enum rr_refusal what, const char *why)
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

static void set_reply_space(struct rr_req *r)
{
	struct rpc_request *rpc = r->rpc;

	rpc->reply_max = rr_reply_space(&r->call, r->conn->threshold);
	rpc->nbulk_spaces = r->call.nwrites;
	for (unsigned i = 0; i < r->call.nwrites; i++)
		rpc->bulk_space[i] = rr_bulk_space(&r->call, i);
}

/* Hands r to the executor; a message that is no call is answered or dropped. */
static void rr_submit(struct rr_req *r)
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
	set_reply_space(r);
	r->rpc->arrived_ns = rn_now_ns();
	rpc_conn_begin(&c->rpc, r->rpc);
	c->srv->cfg.executor.submit(c->srv->cfg.executor.ctx, r->rpc);
}

static void on_memory(struct ev_task *t)
{
	struct rr_req *r = rn_container_of(t, struct rr_req, task);
	struct rr_conn *c = r->conn;

	TAILQ_REMOVE(&c->hungry, r, link);
	rr_post(r); /* releases r if the connection has closed */
}

/* Called on any thread. */
static void memory_ready(struct rn_payload_waiter *w, struct rn_payload *p)
{
	struct rr_req *r = rn_container_of(w, struct rr_req, waiter);

	r->data = p;
	ev_loop_post(r->conn->loop, &r->task);
}

static void rr_pull_start(struct rr_req *r)
{
	struct rr_conn *c = r->conn;
	struct rr_server *srv = c->srv;

	r->step = RR_STEP_READ;
	r->waiter.ready = memory_ready;
	r->waiter.account = &c->rpc.client->memory;
	r->task.run = on_memory;
	/* Queued first: ready may be called at once, on another thread. */
	TAILQ_INSERT_TAIL(&c->hungry, r, link);
	struct rn_payload *p = rn_payload_get_or_wait(srv->cfg.pool, r->plan.buf_size, &r->waiter);
	if (!p) {
		rr_count(srv, waits_memory, 1);
		return;
	}
	TAILQ_REMOVE(&c->hungry, r, link);
	r->data = p;
	rr_post(r);
}

void rr_pull_cancel(struct rr_conn *c)
{
	struct rr_req *r, *next;

	for (r = TAILQ_FIRST(&c->hungry); r; r = next) {
		next = TAILQ_NEXT(r, link);
		if (rn_payload_wait_cancel(c->srv->cfg.pool, &r->waiter) < 0)
			continue; /* its task is on its way */
		TAILQ_REMOVE(&c->hungry, r, link);
		rr_req_done(r);
	}
}

void rr_pull_done(struct rr_req *r)
{
	struct rr_conn *c = r->conn;

	c->sq_free += r->wrs;
	/* The peer can change the data until its key has ended. */
	if (rr_keys_end(r) < 0) {
		rr_conn_close(c, "cannot end a key");
		return;
	}
	TAILQ_REMOVE(&c->reading, r, link);
	rr_submit(r);
	rr_post_waiting(c);
}

/* True if the client replies to a call: what else is wrong with its header is no reason to answer
 * (RFC 8166 section 4.5). A reply in a chunk is found when it has been read. */
static bool is_reply(const struct rr_req *r)
{
	return r->call.proc == RR_MSG && r->recv->len >= r->call.size + 8 &&
	       rn_get32(r->recv->buf + r->call.size + 4) == RPC_REPLY;
}

static void rr_call_take_reply(struct rr_req *r)
{
	struct rr_conn *c = r->conn;

	if (r->call.proc == RR_ERROR)
		rr_back_refused(r);
	else
		rr_back_reply(r, r->recv->buf + r->call.size, r->recv->len - r->call.size);
	rr_req_done(r);
	rr_back_post(c);
}

static void count_call(struct rr_server *srv, const struct rr_req *r)
{
	const struct rr_header *h = &r->call;

	rr_count(srv, calls, 1);
	if (r->plan.long_call)
		rr_count(srv, position_zero, 1);
	if (r->plan.nchunks)
		rr_count(srv, read_chunks, r->plan.nchunks);
	if (h->nreads)
		rr_count(srv, listed_read, h->nreads);
	if (h->has_reply)
		rr_count(srv, listed_reply, h->reply.nsegs);
	if (h->nwrites)
		rr_count(srv, listed_write, h->nsegs - (h->has_reply ? h->reply.nsegs : 0u));
}

static void start_call(struct rr_req *r)
{
	struct rr_conn *c = r->conn;
	struct rr_server *srv = c->srv;
	struct rr_call_limits limits = { srv->cfg.max_message, RN_PAYLOAD_MAX };
	struct rpc_address client;
	enum rr_refusal what = RR_REFUSED_CHUNKS;
	const char *why = rr_plan_call(&r->call, r->recv->len - r->call.size, &limits, &r->plan);

	rpc_address_of(&c->rpc.peer, &client);
	if (!why && r->call.nreads > c->sq_depth)
		why = "more Read segments than this device's send queue holds";
	if (!why && rr_broken_has(&srv->broken, &client, &r->call, rn_now_ns())) {
		why = "its chunks have broken a connection";
		what = RR_REFUSED_BROKEN;
	}
	if (why) {
		rr_bad_chunk(r, what, why);
		return;
	}
	count_call(srv, r);
	if (r->plan.buf_size)
		rr_pull_start(r);
	else
		rr_submit(r);
}

void rr_call_start(struct rr_recv *recv, struct rr_req *r)
{
	struct rr_conn *c = r->conn;

	switch (rr_header_decode(recv->buf, recv->len, &r->call)) {
	case RR_CALL:
		if (is_reply(r))
			rr_call_take_reply(r);
		else
			start_call(r);
		break;
	case RR_REFUSAL:
		rr_call_take_reply(r);
		break;
	case RR_BAD_VERSION:
		rr_fail(r, RR_STEP_ERR_VERS);
		break;
	case RR_BAD_CHUNK:
		rr_bad_chunk(r, RR_REFUSED_HEADER, "transport header");
		break;
	case RR_DISCARD:
		rr_count(c->srv, dropped, 1);
		rr_req_done(r);
		break;
	}
}

void rr_call_arrived(struct rr_recv *r)
{
	struct rr_conn *c = r->conn;

	if (c->state == RR_ACCEPTING)
		TAILQ_INSERT_TAIL(&c->held, r, link);
	else if (c->state == RR_OPEN && !c->srv->quiesced)
		rr_pool_bind(r);
}

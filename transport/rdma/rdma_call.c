/* SPDX-License-Identifier: BSD-2-Clause */
/* From a Receive's completion to the sink, or to the RDMA Reads that come before it. */
#include "transport/rdma/rdma_call.h"

#include "lib/util.h"
#include "transport/rdma/rdma_back.h"
#include "transport/rdma/rdma_pull.h"
#include "transport/rdma/rdma_request.h"
#include "transport/rdma/rdma_send.h"
#include "transport/rdma/rdma_submit.h"

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

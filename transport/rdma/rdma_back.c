/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls to the client, in the reverse direction of RFC 8167. They go inline, without chunks, since
 * callbacks are small; so they share the inline threshold of replies (section 4.2).
 *
 * Credits of this direction are counted apart (section 4.1). Until the client has granted some in a
 * reply to a call there is one. A call takes a credit until its reply comes, however late: the client
 * has a Receive posted for as many calls as it has granted, and a Send that finds none would break
 * the connection. Only answers to calls that were sent here count, RDMA_ERROR among them. A call that
 * is given up before it was sent is dropped, so no more wait than rpc/backchannel.h allows. This side has Receives for
 * rr_back.most replies besides those for the client's calls (rdma_accept.c).
 *
 * Any thread hands a call over to the connection's loop, as with replies.
 */
#include "transport/rdma/rdma_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "rpc/backchannel.h"

struct rr_back_msg {
	STAILQ_ENTRY(rr_back_msg) link;
	struct rn_budget *budget; /* that its memory is of */
	uint32_t len;
	uint8_t msg[];
};

static void call_free(struct rr_back_msg *call)
{
	rn_budget_give(call->budget, sizeof(*call) + call->len);
	free(call);
}

/* Memory of connections, which payload cannot use up, or else any. NULL: there is none. */
static struct rn_budget *rr_back_take_memory(struct rr_server *srv, size_t size)
{
	if (rn_budget_take(&srv->conn_memory, size))
		return &srv->conn_memory;
	return rn_budget_take(srv->cfg.budget, size) ? srv->cfg.budget : NULL;
}

int rr_back_call(struct rpc_conn *rc, const uint8_t *msg, uint32_t len)
{
	struct rr_conn *c = rn_container_of(rc, struct rr_conn, rpc);
	struct rr_server *srv = c->srv;
	const size_t size = sizeof(struct rr_back_msg) + len;
	struct rr_back_msg *call;

	if (RR_HEADER_MIN + len > c->threshold)
		return -EMSGSIZE;
	struct rn_budget *budget = rr_back_take_memory(srv, size);

	if (!budget)
		return -ENOMEM;
	call = malloc(size);
	if (!call) {
		rn_budget_give(budget, size);
		return -ENOMEM;
	}
	call->budget = budget;
	call->len = len;
	memcpy(call->msg, msg, len);
	pthread_mutex_lock(&c->lock);
	STAILQ_INSERT_TAIL(&c->back.handed, call, link);
	rr_conn_send_locked(c);
	pthread_mutex_unlock(&c->lock);
	return 0;
}

/* Copies the call behind its header. 0 or -errno. */
static int rr_back_post_call(struct rr_conn *c, const struct rr_back_msg *call, struct rr_send *s)
{
	struct rr_chain own, *ch = rr_chain_start(c, &own);

	rr_call_header_encode(rn_get32(call->msg), c->back.most, s->buf);
	memcpy(s->buf + RR_HEADER_MIN, call->msg, call->len);
	rr_chain_add_send(ch, s, RR_HEADER_MIN + call->len);
	int rc = rr_chain_end(ch);

	if (rc)
		return rc;
	rr_sent(c, s);
	rr_count(c->srv, callbacks, 1);
	return 0;
}

static void take_handed(struct rr_conn *c)
{
	pthread_mutex_lock(&c->lock);
	STAILQ_CONCAT(&c->back.waiting, &c->back.handed);
	pthread_mutex_unlock(&c->lock);
}

void rr_back_post(struct rr_conn *c)
{
	struct rr_back *b = &c->back;
	struct rr_back_msg *call;

	take_handed(c);
	/* Replies that wait for the send queue go first. */
	while (c->open && TAILQ_EMPTY(&c->waiting) && b->ncalls < b->credits &&
	       (call = STAILQ_FIRST(&b->waiting))) {
		struct rr_send *s = rr_send_take(c, 1);

		if (!s)
			return;
		STAILQ_REMOVE_HEAD(&b->waiting, link);
		b->xid[b->ncalls++] = rn_get32(call->msg);
		int rc = rr_back_post_call(c, call, s);

		call_free(call);
		if (rc)
			rr_conn_close(c, "cannot post");
	}
}

/* True if a call with that xid was sent and not answered; it is then answered. */
static bool take_xid(struct rr_back *b, uint32_t xid)
{
	for (unsigned i = 0; i < b->ncalls; i++) {
		if (b->xid[i] != xid)
			continue;
		b->xid[i] = b->xid[--b->ncalls];
		return true;
	}
	return false;
}

/* True if an answer with this header is to a call that was sent: it gives back the credit, and
 * grants some. A grant of none would be the end, so one is left. */
static bool take_answer(struct rr_conn *c, const struct rr_header *h)
{
	if (!take_xid(&c->back, h->xid))
		return false;
	c->back.credits = (unsigned)rn_min(rn_max(h->credits, 1), c->back.most);
	return true;
}

/* A reply never has chunks, as no call offers any, nor two xids. */
static bool rr_back_reply_is_plain(const struct rr_header *h, const uint8_t *msg)
{
	return !h->nreads && !h->nwrites && !h->has_reply && rn_get32(msg) == h->xid;
}

void rr_back_reply(struct rr_req *r, uint8_t *msg, uint32_t len)
{
	struct rr_conn *c = r->conn;
	bool used = rr_back_reply_is_plain(&r->call, msg);

	if (used)
		take_answer(c, &r->call);
	used = used && len <= RPC_CALLBACK_REPLY &&
	       rpc_backchannel_reply(&c->rpc, msg, len) == RPC_REPLY_USED;
	if (!used)
		rr_count(c->srv, dropped, 1);
}

void rr_back_refused(struct rr_req *r)
{
	struct rr_conn *c = r->conn;

	if (!take_answer(c, &r->call) || !rpc_backchannel_refused(&c->rpc, r->call.xid))
		rr_count(c->srv, dropped, 1);
}

void rr_back_forget(struct rr_conn *c)
{
	struct rr_back_list keep = STAILQ_HEAD_INITIALIZER(keep);
	struct rr_back_msg *call;

	take_handed(c);
	while ((call = STAILQ_FIRST(&c->back.waiting))) {
		STAILQ_REMOVE_HEAD(&c->back.waiting, link);
		if (rpc_backchannel_awaits(&c->rpc, rn_get32(call->msg)))
			STAILQ_INSERT_TAIL(&keep, call, link);
		else
			call_free(call);
	}
	STAILQ_CONCAT(&c->back.waiting, &keep);
}

void rr_back_end(struct rr_conn *c)
{
	struct rr_back_msg *call;

	rpc_backchannel_close(&c->rpc);
	take_handed(c);
	while ((call = STAILQ_FIRST(&c->back.waiting))) {
		STAILQ_REMOVE_HEAD(&c->back.waiting, link);
		call_free(call);
	}
}

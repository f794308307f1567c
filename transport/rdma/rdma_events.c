/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of a connection that other threads and the connection manager ask for, run on its loop. */
#include "transport/rdma/rdma_events.h"

#include "lib/util.h"
#include "rpc/backchannel.h"
#include "transport/rdma/rdma_back.h"
#include "transport/rdma/rdma_call.h"
#include "transport/rdma/rdma_chain.h"
#include "transport/rdma/rdma_conn.h"
#include "transport/rdma/rdma_cq.h"
#include "transport/rdma/rdma_end.h"
#include "transport/rdma/rdma_reply.h"
#include "transport/rdma/rdma_send.h"

static void rr_conn_destroy(struct rpc_conn *rc)
{
	rr_conn_free(rn_container_of(rc, struct rr_conn, rpc));
}

const struct rpc_conn_ops rr_conn_ops = {
	.netid = "rdma",
	.reliable = true,
	.reply = rr_reply,
	.drop = rr_drop,
	.too_long = rr_too_long,
	.says_too_long = true,
	.garbage = rr_garbage,
	.call = rr_back_call,
	.destroy = rr_conn_destroy,
};

static void on_established(struct rr_conn *c)
{
	struct rr_recv *r;

	if (c->state != RR_ACCEPTING)
		return;
	c->state = RR_OPEN;
	while (c->state == RR_OPEN && (r = TAILQ_FIRST(&c->held))) {
		TAILQ_REMOVE(&c->held, r, link);
		rr_call_arrived(r);
	}
}

/* Replies take no turn: their calls had theirs, and a post is short. */
void rr_conn_send(struct ev_task *t)
{
	struct rr_conn *c = rn_container_of(t, struct rr_conn, send_task);
	struct rr_req_list list = TAILQ_HEAD_INITIALIZER(list);
	struct rr_chain chain;
	struct rr_req *r;

	pthread_mutex_lock(&c->lock);
	c->sends_handed = false;
	TAILQ_CONCAT(&list, &c->replies, link);
	pthread_mutex_unlock(&c->lock);
	rr_gather_start(c, &chain);
	while ((r = TAILQ_FIRST(&list))) {
		TAILQ_REMOVE(&list, r, link);
		c->loop->work += TURN_WORK / 2;
		rr_post(r);
	}
	rr_back_post(c);
	if (rr_gather_end(c) < 0)
		rr_conn_close(c, "cannot post");
	rpc_conn_put(&c->rpc);
}

void rr_conn_visit(struct turn *t, uint64_t until)
{
	struct rr_conn *c = rn_container_of(t, struct rr_conn, turn);

	if (c->state != RR_DEAD)
		rr_cq_poll(c, until);
	if (t->since_ns)
		rpc_conn_put(&c->rpc); /* the reference of the wait; the turn has one of its own */
}

void rr_conn_run(struct ev_task *t)
{
	struct rr_conn *c = rn_container_of(t, struct rr_conn, task);
	unsigned events = atomic_exchange(&c->events, 0);

	if (events & RR_EV_ESTABLISHED)
		on_established(c);
	if (events & RR_EV_LOST && c->state < RR_CLOSING)
		c->lost = true;
	if (events & RR_EV_CLOSE)
		rr_conn_close(c, "disconnected");
	if (events & RR_EV_EXPIRE) {
		rpc_backchannel_expire(&c->rpc, rn_now_ns());
		rr_back_forget(c);
	}
	if (events & RR_EV_RELEASE)
		rr_conn_release(c);
	if (events & RR_EV_POLL)
		rr_conn_take_turn(c);
	rpc_conn_put(&c->rpc);
}

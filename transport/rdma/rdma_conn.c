/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a connection, and what other threads ask of it.
 *
 * Order of the end: no more posting (open is false), QP to the error state, flushed completions
 * reaped, QP, CQ, memory regions, protection domain, device, id, memory. What the QP might still
 * touch is released only after the QP is gone.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/checked.h"
#include "transport/rdma/rdma_internal.h"

const struct rpc_conn_ops rr_conn_ops = {
	.netid = "rdma",
	.reliable = true,
	.reply = rr_reply,
	.drop = rr_drop,
	.too_long = rr_too_long,
	.says_too_long = true,
	.garbage = rr_too_long, /* the answer is the same: ERR_CHUNK */
	.destroy = rr_conn_destroy,
};

const char *rr_peer_name(const struct rr_conn *c, char *buf, size_t len)
{
	const struct sockaddr *sa = (const struct sockaddr *)&c->rpc.peer;
	socklen_t size = sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						   : sizeof(struct sockaddr_in);

	if (getnameinfo(sa, size, buf, len, NULL, 0, NI_NUMERICHOST) != 0)
		snprintf(buf, len, "?");
	return buf;
}

void rr_conn_destroy(struct rpc_conn *rc)
{
	rr_conn_free(rn_container_of(rc, struct rr_conn, rpc));
}

void rr_conn_notify(struct rr_conn *c, unsigned events)
{
	if (atomic_fetch_or(&c->events, events))
		return; /* the task is on its way */
	rpc_conn_ref(&c->rpc);
	ev_loop_post(c->loop, &c->task);
}

static void on_established(struct rr_conn *c)
{
	struct rr_recv *r;

	if (c->state != RR_ACCEPTING)
		return;
	c->state = RR_OPEN;
	while (c->state == RR_OPEN && (r = TAILQ_FIRST(&c->held))) {
		TAILQ_REMOVE(&c->held, r, link);
		rr_recv_arrived(r);
	}
}

static void post_replies(struct rr_conn *c)
{
	struct rr_req_list list = TAILQ_HEAD_INITIALIZER(list);
	struct rr_req *r;

	pthread_mutex_lock(&c->lock);
	TAILQ_CONCAT(&list, &c->replies, link);
	pthread_mutex_unlock(&c->lock);
	while ((r = TAILQ_FIRST(&list))) {
		TAILQ_REMOVE(&list, r, link);
		ev_loop_turns(c->loop)->work += TURN_WORK / 2;
		rr_post(r);
	}
}

void rr_conn_take_turn(struct rr_conn *c, unsigned todo)
{
	const bool waits = turn_waits(&c->turn);

	c->todo |= todo;
	turn_take(ev_loop_turns(c->loop), &c->rpc.client->loop[c->loop_index], &c->turn);
	/* It may be dead before its turn comes, but replies that it has still are released then. */
	if (!waits && turn_waits(&c->turn))
		rpc_conn_ref(&c->rpc);
}

void rr_conn_visit(struct turn *t, uint64_t until)
{
	struct rr_conn *c = rn_container_of(t, struct rr_conn, turn);
	const unsigned todo = c->todo;

	c->todo = 0;
	if (todo & RR_EV_REPLIES)
		post_replies(c);
	if (todo & RR_EV_POLL && c->state != RR_DEAD)
		rr_cq_poll(c, until);
	if (t->since_ns)
		rpc_conn_put(&c->rpc); /* the wait's; the turn has one of its own */
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
	if (events & (RR_EV_REPLIES | RR_EV_POLL))
		rr_conn_take_turn(c, events & (RR_EV_REPLIES | RR_EV_POLL));
	rpc_conn_put(&c->rpc);
}

void rr_conn_sending(struct rr_conn *c)
{
	c->posted++;
	if (c->sending++ == 0)
		c->sending_ns = rr_now();
}

/* QP, CQ, memory regions. Nothing is posted any more. */
void rr_conn_end_verbs(struct rr_conn *c)
{
	struct rr_server *srv = c->srv;

	if (c->id->qp) {
		rdma_destroy_qp(c->id);
		rr_uncount(srv, qps, 1);
	}
	if (c->cq) {
		rr_cq_ack(c);
		if (ibv_destroy_cq(c->cq) == 0)
			rr_uncount(srv, cqs, 1);
		c->cq = NULL;
	}
	if (c->recv_mr && ibv_dereg_mr(c->recv_mr) == 0)
		rr_uncount(srv, mrs, 1);
	if (c->send_mr && ibv_dereg_mr(c->send_mr) == 0)
		rr_uncount(srv, mrs, 1);
	c->recv_mr = c->send_mr = NULL;
}

/* On loops[0]: see rdma_cm.c. The device goes before the id, which keeps an unplugged device's
 * context alive. */
static void end_id(struct ev_task *t)
{
	struct rr_conn *c = rn_container_of(t, struct rr_conn, end_task);
	struct rr_server *srv = c->srv;

	rr_device_put(c->dev);
	c->dev = NULL;
	rdma_destroy_id(c->id);
	c->id = NULL;
	pthread_mutex_lock(&srv->lock);
	LIST_REMOVE(c, link);
	pthread_mutex_unlock(&srv->lock);
	rpc_conn_put(&c->rpc);
}

static void release_posted(struct rr_conn *c)
{
	struct rr_req *r;

	for (unsigned i = 0; i < c->nsends; i++) {
		struct rr_req *sent = c->sends[i].req;
		c->sends[i].req = NULL;
		if (sent)
			rr_req_done(sent);
	}
	while ((r = TAILQ_FIRST(&c->reading))) {
		TAILQ_REMOVE(&c->reading, r, link);
		rr_req_done(r);
	}
}

static void finish(struct rr_conn *c)
{
	c->state = RR_DEAD;
	event_free(c->flush_timer);
	c->flush_timer = NULL;
	rr_conn_end_verbs(c);
	release_posted(c);
	rr_domain_end(c);
	c->end_task.run = end_id;
	ev_loop_post(c->srv->cfg.loops[0], &c->end_task);
}

void rr_conn_flush_timeout(evutil_socket_t fd, short what, void *arg)
{
	struct rr_conn *c = arg;

	(void)fd;
	(void)what;
	if (c->state == RR_CLOSING)
		finish(c);
}

void rr_conn_check_flushed(struct rr_conn *c)
{
	if (c->state != RR_CLOSING)
		return;
	if (c->posted == 0)
		finish(c);
}

static void start_flush_timer(struct rr_conn *c)
{
	struct timeval tv = { RR_FLUSH_MS / 1000, RR_FLUSH_MS % 1000 * 1000 };

	event_add(c->flush_timer, &tv);
}

void rr_conn_close(struct rr_conn *c, const char *why)
{
	struct rr_req *r;
	char name[INET6_ADDRSTRLEN + 8];

	if (c->state >= RR_CLOSING)
		return;
	c->state = RR_CLOSING;
	rr_count(c->srv, disconnects, 1);
	rn_debug(c->srv->cfg.log, "rdma: %s: closed: %s", rr_peer_name(c, name, sizeof(name)), why);
	c->open = false;
	rdma_disconnect(c->id);
	/* Where the connection manager has given up already, the QP still has to be flushed. */
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	ibv_modify_qp(c->id->qp, &attr, IBV_QP_STATE);
	while ((r = TAILQ_FIRST(&c->waiting))) {
		TAILQ_REMOVE(&c->waiting, r, link);
		rr_req_done(r);
	}
	TAILQ_INIT(&c->held);
	rr_pool_forget(c);
	rr_read_cancel(c);
	start_flush_timer(c);
}

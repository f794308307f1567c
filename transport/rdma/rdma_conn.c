/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection on its loop: turns, completions, events that other threads and the connection manager ask for, and its
 * end.
 */
#include "transport/rdma/rdma_private.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "lib/util.h"
#include "rpc/backchannel.h"
#include "rpc/conns.h"
#include "transport/event_loop.h"

const char *rr_peer_name(const struct rr_conn *c, char *buf, size_t len)
{
	const struct sockaddr *sa = (const struct sockaddr *)&c->rpc.peer;
	socklen_t size = sa->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						   : sizeof(struct sockaddr_in);

	if (getnameinfo(sa, size, buf, len, NULL, 0, NI_NUMERICHOST) != 0)
		snprintf(buf, len, "?");
	return buf;
}

void rr_conn_notify(struct rr_conn *c, unsigned events)
{
	if (atomic_fetch_or(&c->events, events))
		return; /* the task is on its way */
	rpc_conn_ref(&c->rpc);
	ev_loop_post(c->loop, &c->task);
}

void rr_conn_send_locked(struct rr_conn *c)
{
	if (c->sends_handed)
		return;
	c->sends_handed = true;
	rpc_conn_ref(&c->rpc);
	ev_loop_post(c->loop, &c->send_task);
}

/* Has completions handled when it is the client's turn. On the loop, with a reference. */
static void rr_conn_take_turn(struct rr_conn *c)
{
	const bool waits = turn_waits(&c->turn);

	turn_take(c->loop, &c->rpc.client->loop[c->loop_index], &c->turn);
	/* The connection may be dead before its turn comes. */
	if (!waits && turn_waits(&c->turn))
		rpc_conn_ref(&c->rpc);
}

void rr_conn_sending(struct rr_conn *c)
{
	c->posted++;
	if (c->sending++ == 0)
		c->sending_ns = rn_now_ns();
}

void rr_conn_close(struct rr_conn *c, const char *why)
{
	char name[INET6_ADDRSTRLEN + 8];

	if (c->state >= RR_CLOSING)
		return;
	c->state = RR_CLOSING;
	rr_count(c->srv, disconnects, 1);
	rn_debug(c->srv->cfg.log, "rdma: %s: closed: %s", rr_peer_name(c, name, sizeof(name)), why);
	c->open = false;
	rdma_disconnect(c->id);
	/* If the connection manager has given up already, the QP still has to be flushed. */
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	ibv_modify_qp(c->id->qp, &attr, IBV_QP_STATE);
	rr_conn_notify(c, RR_EV_RELEASE);
}

/*
 * The end of a connection.
 *
 * Order: no more posting (rr_conn_close), QP in the error state, flushed completions reaped, then
 * QP, CQ, memory regions, protection domain, device, id, memory. Memory that the QP might still
 * touch is released only after the QP is gone.
 */

void rr_conn_free(struct rr_conn *c)
{
	struct rr_server *srv = c->srv;

	rpc_conns_leave(&c->rpc);
	ev_load_leave(c->loop);
	rr_back_end(c);
	if (c->recv_block)
		munmap(c->recv_block, c->recv_block_size);
	if (c->send_block)
		munmap(c->send_block, c->send_block_size);
	free(c->recvs);
	free(c->sends);
	if (c->flush_timer)
		event_free(c->flush_timer);
	rn_budget_give(&srv->conn_memory, c->budget);
	rr_uncount(srv, conn_bytes, c->budget);
	rr_uncount(srv, credits, c->budget ? c->credits : 0);
	rpc_client_put(c->rpc.client);
	pthread_mutex_destroy(&c->lock);
	free(c);
	pthread_mutex_lock(&srv->lock);
	srv->live--;
	pthread_cond_broadcast(&srv->gone);
	pthread_mutex_unlock(&srv->lock);
}

/* Destroys QP, CQ and memory regions. Nothing may be posted any more. */
void rr_conn_end_verbs(struct rr_conn *c)
{
	struct rr_server *srv = c->srv;

	if (c->id->qp) {
		rdma_destroy_qp(c->id);
		rr_uncount(srv, qps, 1);
	}
	if (c->cq) {
		if (c->cq_unacked)
			ibv_ack_cq_events(c->cq, c->cq_unacked);
		c->cq_unacked = 0;
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

/* On loops[0]: see rdma_accept.c. The device goes before the id, which keeps an unplugged device's
 * context alive. */
static void end_id(struct ev_task *t)
{
	struct rr_conn *c = rn_container_of(t, struct rr_conn, end_task);
	struct rr_server *srv = c->srv;

	rr_device_put(c->dev);
	c->dev = NULL;
	rr_id_end(srv, c->id, c->connected);
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

static void start_flush_timer(struct rr_conn *c)
{
	struct timeval tv = { RR_FLUSH_MS / 1000, RR_FLUSH_MS % 1000 * 1000 };

	event_add(c->flush_timer, &tv);
}

/* Once, after rr_conn_close: gives back the requests that wait for something. */
static void release_waiting(struct rr_conn *c)
{
	struct rr_req *r;

	while ((r = TAILQ_FIRST(&c->waiting))) {
		TAILQ_REMOVE(&c->waiting, r, link);
		rr_req_done(r);
	}
	TAILQ_INIT(&c->held);
	rr_pool_forget(c);
	rr_pull_cancel(c);
}

/* On the loop, after rr_conn_close: gives back the requests that wait. */
static void rr_conn_release(struct rr_conn *c)
{
	if (c->state != RR_CLOSING || c->released)
		return;
	c->released = true;
	release_waiting(c);
	rr_back_end(c);
	start_flush_timer(c);
}

static void rr_conn_finish(struct rr_conn *c)
{
	rr_conn_release(c);
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
		rr_conn_finish(c);
}

/* On the loop: ends a closed connection if no completion is missing. */
static void rr_conn_check_flushed(struct rr_conn *c)
{
	if (c->state != RR_CLOSING)
		return;
	if (c->posted == 0)
		rr_conn_finish(c);
}

/*
 * Completions. A completion queue is armed and then drained once more, because entries that came in
 * between raise no event. While there is work it is polled for poll_usec before it is armed again.
 * Events are acknowledged in batches, and the rest before the queue is destroyed, which waits for
 * them.
 */

#define CQ_ENTRIES 16
#define CQ_ACK_BATCH 64
#define CQ_EVENTS_AT_ONCE 64u
#define CQ_FULL_ROUNDS 8u

static void on_error(struct rr_conn *c, const struct ibv_wc *wc)
{
	if (wc->status == IBV_WC_WR_FLUSH_ERR && c->state >= RR_CLOSING)
		return;
	if (wc->status != IBV_WC_WR_FLUSH_ERR)
		rr_count(c->srv, cq_errors, 1);
	rr_conn_close(c, ibv_wc_status_str(wc->status));
}

/*
 * Finds the call that broke the connection: the first entry of the send queue to fail, or the one
 * under way when the peer ended the connection. If the client sends that call again, it would break
 * the next connection. iWARP's Writes complete before the peer has looked at them, so only its
 * Reads are suspected.
 */
static void blame(struct rr_conn *c, enum rr_tag tag, void *what, enum ibv_wc_status status)
{
	if (tag == RR_TAG_RECV || c->blamed)
		return;
	c->blamed = true;
	if (tag == RR_TAG_SEND || tag == RR_TAG_UNSIGNALED)
		return;
	const struct rr_req *r = what;
	struct rpc_address client;

	rpc_address_of(&c->rpc.peer, &client);
	if (status == IBV_WC_REM_ACCESS_ERR)
		rr_broken_add(&c->srv->broken, &client, &r->call, RR_PROVEN, rn_now_ns());
	else if (c->dev->iwarp && c->lost && r->step == RR_STEP_READ)
		rr_broken_add(&c->srv->broken, &client, &r->call, RR_SUSPECTED, rn_now_ns());
}

/*
 * On error only wr_id and status are valid; the memory of the chain is kept until the QP is gone.
 */
static void rr_cq_complete(struct rr_conn *c, const struct ibv_wc *wc)
{
	void *what = (void *)(uintptr_t)(wc->wr_id & ~(uint64_t)RR_TAG_MASK);
	enum rr_tag tag = wc->wr_id & RR_TAG_MASK;

	if (tag != RR_TAG_PART && tag != RR_TAG_UNSIGNALED)
		c->posted--;
	if (tag == RR_TAG_SEND || tag == RR_TAG_READ)
		c->sending_ns = --c->sending ? rn_now_ns() : 0;
	if (wc->status != IBV_WC_SUCCESS) {
		c->lost |= c->state == RR_OPEN;
		blame(c, tag, what, wc->status);
		on_error(c, wc);
		return;
	}
	if (tag == RR_TAG_RECV) {
		struct rr_recv *r = what;
		r->len = wc->byte_len;
		rpc_tally(&c->rpc.tally.bytes_in, wc->byte_len);
		rr_call_arrived(r);
	} else if (tag == RR_TAG_SEND) {
		rr_send_done(c, what);
	} else if (tag == RR_TAG_READ) {
		rr_pull_done(what);
	}
}

/* Entries handled, or -1 if the queue is broken. */
static int rr_cq_drain(struct rr_conn *c)
{
	struct ibv_wc wc[CQ_ENTRIES];
	int n = ibv_poll_cq(c->cq, CQ_ENTRIES, wc);

	if (n < 0) {
		rr_count(c->srv, cq_errors, 1);
		rr_conn_close(c, "completion queue failed");
		return -1;
	}
	rr_count(c->srv, completions, (uint64_t)n);
	/* a call makes two completions, or counts as much (rr_sent) */
	c->loop->work += (uint64_t)n * (TURN_WORK / 2);
	for (int i = 0; i < n; i++)
		rr_cq_complete(c, &wc[i]);
	return n;
}

/* Polls for a bounded time; entries handled. */
static int spin(struct rr_conn *c)
{
	uint64_t until = rn_now_ns() + (uint64_t)c->srv->cfg.poll_usec * 1000;
	int n = 0;

	while (n == 0 && rn_now_ns() < until)
		n = rr_cq_drain(c);
	return n;
}

static void poll_rounds(struct rr_conn *c, uint64_t until)
{
	const struct ev_loop *loop = c->loop;
	bool armed = false, found = false;

	do {
		int n = rr_cq_drain(c);
		if (n == 0 && found && !armed && c->srv->cfg.poll_usec && c->state == RR_OPEN)
			n = spin(c);
		if (n < 0)
			return;
		if (n > 0) {
			found = true;
			armed = false;
			continue;
		}
		if (armed) {
			if (found)
				c->active_ns = rn_now_ns();
			return;
		}
		armed = ibv_req_notify_cq(c->cq, 0) == 0;
		if (!armed) {
			rr_conn_close(c, "completion queue cannot be armed");
			return;
		}
	} while (loop->work < until);
	c->active_ns = rn_now_ns();
	rr_conn_notify(c, RR_EV_POLL);
}

/* Handles completions until ev_loop.work has come up to `until`, or there are no more. */
static void rr_cq_poll(struct rr_conn *c, uint64_t until)
{
	poll_rounds(c, until);
	rr_conn_check_flushed(c);
}

static void acknowledge(struct rr_conn *c)
{
	if (c->cq_unacked)
		ibv_ack_cq_events(c->cq, c->cq_unacked);
	c->cq_unacked = 0;
}

/* Reads one event and queues its connection. False: there is none. */
static bool rr_cq_next_event(struct ibv_comp_channel *comp)
{
	struct ibv_cq *cq;
	void *ctx;

	if (ibv_get_cq_event(comp, &cq, &ctx) != 0)
		return false;
	struct rr_conn *c = ctx;

	if (++c->cq_unacked >= CQ_ACK_BATCH)
		acknowledge(c);
	rpc_conn_ref(&c->rpc);
	rr_conn_take_turn(c);
	rpc_conn_put(&c->rpc);
	return true;
}

/*
 * Learns how many events come together. With one call at a time there is one event; to find that no
 * other one waits costs a system call, and the loop looks again anyway before it sleeps.
 */
static void learn(struct rr_channel *ch, unsigned events)
{
	if (events < ch->at_once) {
		ch->at_once = (unsigned)rn_max(events, 1);
		ch->full = 0;
	} else if (++ch->full == CQ_FULL_ROUNDS) {
		ch->at_once = (unsigned)rn_min(2 * events, CQ_EVENTS_AT_ONCE);
		ch->full = 0;
	}
}

void rr_cq_event(evutil_socket_t fd, short what, void *arg)
{
	struct rr_channel *ch = arg;
	unsigned n = 0;

	(void)fd;
	(void)what;
	while (n < ch->at_once && rr_cq_next_event(ch->comp))
		n++;
	learn(ch, n);
}

/* Events, and the callbacks of the loop and of the RPC layer. */

static void rr_conn_destroy(struct rpc_conn *rc)
{
	rr_conn_free(rn_container_of(rc, struct rr_conn, rpc));
}

static const struct rpc_conn_ops rr_conn_ops = {
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
static void rr_conn_send(struct ev_task *t)
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

/* rr_conn.turn */
static void rr_conn_run_turn(struct turn *t, uint64_t until)
{
	struct rr_conn *c = rn_container_of(t, struct rr_conn, turn);

	if (c->state != RR_DEAD)
		rr_cq_poll(c, until);
	if (t->since_ns)
		rpc_conn_put(&c->rpc); /* the reference of the wait; the turn has one of its own */
}

/* rr_conn.task */
static void rr_conn_run(struct ev_task *t)
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

struct rr_conn *rr_conn_new(struct rr_server *srv, struct rdma_cm_id *id, struct rr_device *dev)
{
	struct rr_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	pthread_mutex_lock(&srv->lock);
	srv->live++;
	pthread_mutex_unlock(&srv->lock);
	c->srv = srv;
	c->dev = dev;
	c->id = id;
	c->loop_index = ev_place(srv->cfg.loops, srv->cfg.nloops);
	c->loop = srv->cfg.loops[c->loop_index];
	c->rpc.ops = &rr_conn_ops;
	c->rpc.refs = 1;
	c->task.run = rr_conn_run;
	c->send_task.run = rr_conn_send;
	c->turn.conn = &c->rpc;
	c->turn.run = rr_conn_run_turn;
	c->made_ns = rn_now_ns();
	c->active_ns = c->made_ns;
	pthread_mutex_init(&c->lock, NULL);
	TAILQ_INIT(&c->held);
	TAILQ_INIT(&c->hungry);
	TAILQ_INIT(&c->waiting);
	TAILQ_INIT(&c->reading);
	TAILQ_INIT(&c->replies);
	SLIST_INIT(&c->free_sends);
	STAILQ_INIT(&c->back.handed);
	STAILQ_INIT(&c->back.waiting);
	c->back.credits = 1;
	return c;
}

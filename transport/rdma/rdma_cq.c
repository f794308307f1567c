/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completions. A completion queue is armed and then drained once more, because entries that came in
 * between raise no event. While there is work it is polled for poll_usec before it is armed again.
 * Events are acknowledged in batches, and the rest before the queue is destroyed, which waits for
 * them.
 */
#include "transport/rdma/rdma_cq.h"

#include "lib/util.h"
#include "rpc/conns.h"
#include "transport/rdma/rdma_call.h"
#include "transport/rdma/rdma_conn.h"
#include "transport/rdma/rdma_end.h"
#include "transport/rdma/rdma_pull.h"
#include "transport/rdma/rdma_send.h"

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
	if (tag == RR_TAG_SEND || tag == RR_TAG_QUIET)
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

	if (tag != RR_TAG_PART && tag != RR_TAG_QUIET)
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

void rr_cq_poll(struct rr_conn *c, uint64_t until)
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

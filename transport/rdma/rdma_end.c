/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a connection.
 *
 * Order: no more posting (rr_conn_close), QP in the error state, flushed completions reaped, then
 * QP, CQ, memory regions, protection domain, device, id, memory. Memory that the QP might still
 * touch is released only after the QP is gone.
 */
#include "transport/rdma/rdma_end.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "lib/util.h"
#include "rpc/conns.h"
#include "transport/load.h"
#include "transport/rdma/rdma_back.h"
#include "transport/rdma/rdma_device.h"
#include "transport/rdma/rdma_keys.h"
#include "transport/rdma/rdma_pull.h"
#include "transport/rdma/rdma_request.h"

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

void rr_conn_release(struct rr_conn *c)
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

void rr_conn_check_flushed(struct rr_conn *c)
{
	if (c->state != RR_CLOSING)
		return;
	if (c->posted == 0)
		rr_conn_finish(c);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pulls a call's Read chunks into one payload buffer before the call is submitted: memory first,
 * then the RDMA Reads. One buffer holds all chunks, so that a request never holds memory while it
 * waits for more. The buffer belongs to the request.
 */
#include "transport/rdma/rdma_pull.h"

#include "lib/util.h"
#include "transport/rdma/rdma_conn.h"
#include "transport/rdma/rdma_keys.h"
#include "transport/rdma/rdma_request.h"
#include "transport/rdma/rdma_send.h"
#include "transport/rdma/rdma_submit.h"

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

void rr_pull_start(struct rr_req *r)
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

	c->sq_room += r->wrs;
	/* The peer can change the data until its key has ended. */
	if (rr_keys_end(r) < 0) {
		rr_conn_close(c, "cannot end a key");
		return;
	}
	TAILQ_REMOVE(&c->reading, r, link);
	rr_submit(r);
	rr_post_waiting(c);
}

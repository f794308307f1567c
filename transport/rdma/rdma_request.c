/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pool of requests that all connections share: each connection may have its credits' worth in
 * work, few ever do. Some are made at start, so that a message that finds none will get one that
 * comes back.
 */
#include <errno.h>
#include <stdlib.h>

#include "lib/checked.h"
#include "transport/rdma/rdma_internal.h"

#define REQS_MIN 16u
#define REQS_MAX 4096u

static void req_free(struct rr_req *r, struct rn_budget *budget)
{
	rpc_request_free(r->rpc);
	free(r);
	rn_budget_give(budget, sizeof(struct rr_req) + sizeof(struct rpc_request));
}

static struct rr_req *req_new(struct rr_server *srv)
{
	size_t size = sizeof(struct rr_req) + sizeof(struct rpc_request);

	if (!rn_budget_take(srv->cfg.budget, size))
		return NULL;
	struct rr_req *r = calloc(1, sizeof(*r));
	if (r)
		r->rpc = rpc_request_new(srv->cfg.pool);
	if (!r || !r->rpc) {
		free(r);
		rn_budget_give(srv->cfg.budget, size);
		return NULL;
	}
	r->rpc->transport_private = r;
	return r;
}

int rr_pool_init(struct rr_server *srv)
{
	struct rr_pool *p = &srv->pool;

	pthread_mutex_init(&p->lock, NULL);
	TAILQ_INIT(&p->idle);
	TAILQ_INIT(&p->starving);
	p->max = REQS_MAX;
	while (p->count < REQS_MIN) {
		struct rr_req *r = req_new(srv);
		if (!r)
			return -ENOMEM;
		TAILQ_INSERT_HEAD(&p->idle, r, link);
		p->nidle++;
		p->count++;
	}
	return 0;
}

void rr_pool_fini(struct rr_server *srv)
{
	struct rr_req *r;

	while ((r = TAILQ_FIRST(&srv->pool.idle))) {
		TAILQ_REMOVE(&srv->pool.idle, r, link);
		req_free(r, srv->cfg.budget);
	}
	pthread_mutex_destroy(&srv->pool.lock);
}

static void bind_request(struct rr_recv *recv, struct rr_req *r)
{
	r->recv = recv;
	r->conn = recv->conn;
	rpc_conn_ref(&r->conn->rpc);
	rr_recv_start(recv, r);
}

static void put(struct rr_server *srv, struct rr_req *r)
{
	struct rr_pool *p = &srv->pool;
	struct rr_recv *next;

	pthread_mutex_lock(&p->lock);
	next = TAILQ_FIRST(&p->starving);
	if (next) {
		TAILQ_REMOVE(&p->starving, next, link);
		next->granted = r;
	} else {
		/* The one used last is warm. */
		TAILQ_INSERT_HEAD(&p->idle, r, link);
		p->nidle++;
	}
	pthread_mutex_unlock(&p->lock);
	if (next)
		ev_loop_post(next->conn->loop, &next->task);
}

/* A message that waited has its request; its connection may be closing by now. */
static void on_granted(struct ev_task *t)
{
	struct rr_recv *recv = rn_container_of(t, struct rr_recv, task);
	struct rr_conn *c = recv->conn;
	struct rr_req *r = recv->granted;

	recv->granted = NULL;
	if (c->state == RR_OPEN)
		bind_request(recv, r);
	else
		put(c->srv, r);
	rpc_conn_put(&c->rpc);
}

/* Takes an idle request, or makes one; else queues recv. */
static struct rr_req *get_or_starve(struct rr_server *srv, struct rr_recv *recv)
{
	struct rr_pool *p = &srv->pool;

	pthread_mutex_lock(&p->lock);
	struct rr_req *r = TAILQ_FIRST(&p->idle);
	if (r) {
		TAILQ_REMOVE(&p->idle, r, link);
		p->nidle--;
	} else if (p->count < p->max && (r = req_new(srv))) {
		p->count++;
	} else {
		recv->task.run = on_granted;
		rpc_conn_ref(&recv->conn->rpc);
		TAILQ_INSERT_TAIL(&p->starving, recv, link);
		rr_count(srv, waits_memory, 1);
	}
	pthread_mutex_unlock(&p->lock);
	return r;
}

void rr_pool_bind(struct rr_recv *recv)
{
	struct rr_req *r = get_or_starve(recv->conn->srv, recv);

	if (r)
		bind_request(recv, r);
}

void rr_pool_forget(struct rr_conn *c)
{
	struct rr_pool *p = &c->srv->pool;
	struct rr_recv *r, *next;
	unsigned n = 0;

	pthread_mutex_lock(&p->lock);
	for (r = TAILQ_FIRST(&p->starving); r; r = next) {
		next = TAILQ_NEXT(r, link);
		if (r->conn != c)
			continue;
		TAILQ_REMOVE(&p->starving, r, link);
		n++;
	}
	pthread_mutex_unlock(&p->lock);
	/* Not the last references: the caller, a task or an event of the connection, outlives them.
	 */
	while (n--)
		rpc_conn_put(&c->rpc);
}

void rr_req_done(struct rr_req *r)
{
	struct rr_conn *c = r->conn;

	if (r->recv && rr_recv_post(r->recv) < 0)
		rr_conn_notify(c, RR_EV_CLOSE);
	r->recv = NULL;
	r->conn = NULL;
	rn_payload_put(r->data);
	r->data = NULL;
	rpc_request_reset(r->rpc);
	put(c->srv, r);
	rpc_conn_put(&c->rpc); /* c, and after it the server, may be gone */
}

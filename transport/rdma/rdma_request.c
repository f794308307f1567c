/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receives, and the pool of requests that all connections share.
 *
 * The inline bytes of a call stay in the receive buffer, which therefore belongs to the request until its reply is
 * posted. A connection has two batches of buffers more than its credits, so that a client that keeps to its credits
 * always finds one posted.
 *
 * Each connection may have its credits' worth of calls under way, few ever do. Some requests are made at start, so that
 * a message that finds none gets one that comes back.
 *
 * A client may have as many requests as are still left for others, and always one. Messages that wait for a request wait
 * in a fair queue by client. A client without a request is never refused because of other memory that it holds; so a
 * client that waits for its quota has a request, whose return wakes it.
 */
#include "transport/rdma/rdma_private.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/util.h"
#include "rpc/conns.h"

static int post_batch(struct rr_conn *c)
{
	struct ibv_recv_wr wr[RR_BATCH_MAX], *bad;
	struct ibv_sge sge[RR_BATCH_MAX];
	unsigned n = c->nrepost;

	if (!n)
		return 0;
	/* Cleared even on failure: the connection ends then, and more buffers may come until it
	 * has. */
	c->nrepost = 0;
	for (unsigned i = 0; i < n; i++) {
		struct rr_recv *r = c->repost[i];
		sge[i] = (struct ibv_sge){ (uintptr_t)r->buf, c->recv_size, c->recv_mr->lkey };
		wr[i] = (struct ibv_recv_wr){
			.wr_id = rr_wr_id(r, RR_TAG_RECV),
			.next = i + 1 < n ? &wr[i + 1] : NULL,
			.sg_list = &sge[i],
			.num_sge = 1,
		};
	}
	if (ibv_post_recv(c->id->qp, wr, &bad) != 0)
		return -EIO;
	c->posted += n;
	return 0;
}

int rr_recv_post(struct rr_recv *r)
{
	struct rr_conn *c = r->conn;

	if (!c->open)
		return 0;
	c->repost[c->nrepost++] = r;
	return c->nrepost < c->batch ? 0 : post_batch(c);
}

int rr_recv_post_all(struct rr_conn *c)
{
	int rc = 0;

	for (unsigned i = 0; i < c->nrecvs && !rc; i++)
		rc = rr_recv_post(&c->recvs[i]);
	if (!rc)
		rc = post_batch(c);
	return rc;
}

#define REQS_MIN 16u
#define REQS_MAX 4096u
#define REQ_BYTES (sizeof(struct rr_req) + sizeof(struct rpc_request))
/* with the head of its reply, which is payload memory */
#define HELD_BYTES (REQ_BYTES + RPC_HEAD_SIZE)
#define WAITER_TRIES 64

static void req_free(struct rr_req *r, struct rn_budget *budget)
{
	rpc_request_free(r->rpc);
	free(r);
	rn_budget_give(budget, REQ_BYTES);
}

static struct rr_req *req_new(struct rr_server *srv)
{
	if (!rn_budget_take(srv->cfg.budget, REQ_BYTES))
		return NULL;
	struct rr_req *r = calloc(1, sizeof(*r));
	if (r)
		r->rpc = rpc_request_new(srv->cfg.pool);
	if (!r || !r->rpc) {
		free(r);
		rn_budget_give(srv->cfg.budget, REQ_BYTES);
		return NULL;
	}
	r->rpc->transport_private = r;
	return r;
}

size_t rr_pool_memory(void)
{
	return REQS_MIN * HELD_BYTES;
}

int rr_pool_init(struct rr_server *srv)
{
	struct rr_pool *p = &srv->pool;

	pthread_mutex_init(&p->lock, NULL);
	TAILQ_INIT(&p->idle);
	rn_fq_init(&p->starving, 1);
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
	rr_call_start(recv, r);
}

/* The functions below, down to grant(), are called under the pool's lock. */

static bool rr_client_may_have_req(struct rr_server *srv, const struct rpc_client *client)
{
	const struct rr_pool *p = &srv->pool;
	const unsigned others = p->max - (p->count - p->nidle);

	return client->arrivals_held == 0 ||
	       (client->arrivals_held < others &&
		rn_payload_may_hold(srv->cfg.pool, &client->requests, HELD_BYTES));
}

static bool rr_recv_may_start(void *srv, const struct rn_fq_item *it)
{
	return rr_client_may_have_req(srv,
				      rn_container_of(it, struct rr_recv, turn)->conn->rpc.client);
}

static void rr_client_charge(struct rpc_client *client)
{
	client->arrivals_held++;
	atomic_fetch_add_explicit(&client->requests.bytes, HELD_BYTES, memory_order_relaxed);
}

static void rr_client_discharge(struct rpc_client *client)
{
	client->arrivals_held--;
	atomic_fetch_sub_explicit(&client->requests.bytes, HELD_BYTES, memory_order_relaxed);
}

/* An idle request, charged to client; NULL: there is none. */
static struct rr_req *rr_pool_take_idle(struct rr_pool *p, struct rpc_client *client)
{
	struct rr_req *r = TAILQ_FIRST(&p->idle);

	if (!r)
		return NULL;
	TAILQ_REMOVE(&p->idle, r, link);
	p->nidle--;
	rr_client_charge(client);
	return r;
}

/* Gives requests to waiting messages that may have one, and puts those on list. */
static void grant(struct rr_server *srv, struct rr_recv_list *list)
{
	struct rr_pool *p = &srv->pool;
	struct rn_fq_item *it;

	while (p->nidle &&
	       (it = rn_fq_pop_if(&p->starving, WAITER_TRIES, rr_recv_may_start, srv))) {
		struct rr_recv *recv = rn_container_of(it, struct rr_recv, turn);

		recv->granted = rr_pool_take_idle(p, recv->conn->rpc.client);
		TAILQ_INSERT_TAIL(list, recv, link);
	}
}

/* Returns r, which was charged to client, to the pool. */
static void rr_pool_put(struct rr_server *srv, struct rr_req *r, struct rpc_client *client)
{
	struct rr_recv_list list = TAILQ_HEAD_INITIALIZER(list);
	struct rr_pool *p = &srv->pool;
	struct rr_recv *recv;

	pthread_mutex_lock(&p->lock);
	rr_client_discharge(client);
	/* At the head, as it is still in the processor's cache. */
	TAILQ_INSERT_HEAD(&p->idle, r, link);
	p->nidle++;
	grant(srv, &list);
	pthread_mutex_unlock(&p->lock);
	while ((recv = TAILQ_FIRST(&list))) {
		TAILQ_REMOVE(&list, recv, link);
		ev_loop_post(recv->conn->loop, &recv->task);
	}
}

/* A message that waited has got its request; its connection may be closing by now. */
static void on_granted(struct ev_task *t)
{
	struct rr_recv *recv = rn_container_of(t, struct rr_recv, task);
	struct rr_conn *c = recv->conn;
	struct rr_req *r = recv->granted;

	recv->granted = NULL;
	if (c->state == RR_OPEN)
		bind_request(recv, r);
	else
		rr_pool_put(c->srv, r, c->rpc.client);
	rpc_conn_put(&c->rpc);
}

/* Takes an idle request, or makes one; else queues recv. */
static struct rr_req *get_or_starve(struct rr_server *srv, struct rr_recv *recv)
{
	struct rpc_client *client = recv->conn->rpc.client;
	struct rr_pool *p = &srv->pool;
	struct rr_req *r = NULL;

	pthread_mutex_lock(&p->lock);
	if (!rn_fq_waits(&client->arrivals) && rr_client_may_have_req(srv, client)) {
		r = rr_pool_take_idle(p, client);
		if (!r && p->count < p->max && (r = req_new(srv))) {
			p->count++;
			rr_client_charge(client);
		}
	}
	if (!r) {
		recv->task.run = on_granted;
		rpc_conn_ref(&recv->conn->rpc);
		rn_fq_push(&p->starving, &client->arrivals, &recv->turn, 1);
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
	struct rn_fq_item *it, *next;
	unsigned n = 0;

	pthread_mutex_lock(&p->lock);
	for (it = TAILQ_FIRST(&c->rpc.client->arrivals.items); it; it = next) {
		next = TAILQ_NEXT(it, link);
		if (rn_container_of(it, struct rr_recv, turn)->conn != c)
			continue;
		rn_fq_remove(&p->starving, it);
		n++;
	}
	pthread_mutex_unlock(&p->lock);
	/* These are not the last references: the caller, a task or an event of the connection, has
	 * one. */
	while (n--)
		rpc_conn_put(&c->rpc);
}

void rr_req_done(struct rr_req *r)
{
	struct rr_conn *c = r->conn;

	if (r->recv && rr_recv_post(r->recv) < 0)
		rr_conn_notify(c, RR_EV_CLOSE);
	r->recv = NULL;
	rpc_conn_end(&c->rpc, r->rpc);
	rr_keys_end(r);
	r->nmrs = 0; /* a region that could not be deregistered has lost its queue pair */
	r->conn = NULL;
	rn_payload_put(r->data);
	r->data = NULL;
	rpc_request_reset(r->rpc);
	rr_pool_put(c->srv, r, c->rpc.client);
	rpc_conn_put(&c->rpc); /* c, and after it the server, may be gone */
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests of one loop. A connection holds one only from a record's first byte until its reply is
 * out, so that idle connections need none. Some requests are made at start and never freed: with
 * them a daemon whose budget is used up still works, if slowly. A client may hold as much in
 * requests as is still left in all (see lib/payload.h), and always one.
 */
#include "transport/tcp/tcp_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/util.h"

#define POOL_READY 64u /* requests made at start for each loop, if half of the reserve allows it */
#define POOL_READY_LEAST 32u
#define RESERVE_PART 8 /* fraction of the budget, for requests */
#define RESERVE_MAX 1024u
#define POOL_IDLE_MAX 128u
#define RETRY_USEC 20000

static unsigned reserve_of(size_t whole, unsigned nloops)
{
	const size_t part = whole / RESERVE_PART / TCP_REQUEST_BYTES;

	return (unsigned)rn_max(rn_min(part, RESERVE_MAX), POOL_READY_LEAST * nloops);
}

/* Requests that each loop makes at start. */
static unsigned ready_of(unsigned reserve, unsigned nloops)
{
	return (unsigned)rn_max(rn_min(reserve / nloops / 2, POOL_READY), POOL_READY_LEAST);
}

size_t tcp_pool_memory(unsigned nloops, size_t whole)
{
	const unsigned reserve = reserve_of(whole, nloops);

	return reserve * TCP_REQUEST_BYTES +
	       (size_t)nloops * ready_of(reserve, nloops) * RPC_HEAD_SIZE;
}

int tcp_pool_reserve(struct tcp_server *srv)
{
	srv->reserve = reserve_of(srv->cfg.budget->max, srv->cfg.nloops);
	if (!rn_budget_take(srv->cfg.budget, srv->reserve * TCP_REQUEST_BYTES))
		return -ENOMEM;
	atomic_store(&srv->prepaid, srv->reserve);
	return 0;
}

void tcp_pool_unreserve(struct tcp_server *srv)
{
	rn_budget_give(srv->cfg.budget, srv->reserve * TCP_REQUEST_BYTES);
}

static bool take_prepaid(struct tcp_server *srv)
{
	unsigned n = atomic_load(&srv->prepaid);

	while (n && !atomic_compare_exchange_weak(&srv->prepaid, &n, n - 1))
		;
	return n > 0;
}

static void pay_back(struct tcp_server *srv, bool prepaid)
{
	if (prepaid)
		atomic_fetch_add(&srv->prepaid, 1);
	else
		rn_budget_give(srv->cfg.budget, TCP_REQUEST_BYTES);
}

static struct tcp_req *tcp_req_make(struct tcp_server *srv)
{
	bool prepaid = take_prepaid(srv);

	if (!prepaid && !rn_budget_take(srv->cfg.budget, TCP_REQUEST_BYTES))
		return NULL;
	struct tcp_req *t = calloc(1, sizeof(*t));
	if (t)
		t->rpc = rpc_request_new(srv->cfg.pool);
	if (!t || !t->rpc) {
		free(t);
		pay_back(srv, prepaid);
		return NULL;
	}
	t->prepaid = prepaid;
	atomic_fetch_add(&srv->made, 1);
	t->rpc->transport_private = t;
	return t;
}

static void tcp_req_unmake(struct tcp_server *srv, struct tcp_req *t)
{
	bool prepaid = t->prepaid;

	atomic_fetch_sub(&srv->made, 1);
	rpc_request_free(t->rpc);
	free(t);
	pay_back(srv, prepaid);
}

int tcp_pool_fill(struct tcp_loop *loop)
{
	const unsigned ready = ready_of(loop->srv->reserve, loop->srv->cfg.nloops);

	for (unsigned i = 0; i < ready; i++) {
		struct tcp_req *t = tcp_req_make(loop->srv);
		if (!t)
			return -ENOMEM;
		tcp_pool_put(loop, t);
	}
	return 0;
}

static void tcp_req_charge(struct tcp_req *t, struct rpc_client *client)
{
	t->client = client;
	atomic_fetch_add_explicit(&client->requests.bytes, TCP_HELD_BYTES, memory_order_relaxed);
}

static void tcp_req_discharge(struct tcp_req *t)
{
	if (!t->client)
		return; /* new, from tcp_req_make() */
	atomic_fetch_sub_explicit(&t->client->requests.bytes, TCP_HELD_BYTES, memory_order_relaxed);
	t->client = NULL;
}

static bool tcp_client_may_have_req(const struct tcp_loop *loop, struct rpc_client *client)
{
	return rn_payload_may_hold(loop->srv->cfg.pool, &client->requests, TCP_HELD_BYTES);
}

/* An idle request, or a new one, charged to client. NULL: there is no memory. */
static struct tcp_req *tcp_pool_take_req(struct tcp_loop *loop, struct rpc_client *client)
{
	pthread_mutex_lock(&loop->lock);
	struct tcp_req *t = STAILQ_FIRST(&loop->idle);
	if (t) {
		STAILQ_REMOVE_HEAD(&loop->idle, link);
		loop->nidle--;
	}
	pthread_mutex_unlock(&loop->lock);
	if (!t)
		t = tcp_req_make(loop->srv);
	if (t) {
		t->sent = 0;
		t->rpc->nseg = 0;
		tcp_req_charge(t, client);
	}
	return t;
}

struct tcp_req *tcp_pool_get(struct tcp_loop *loop, struct rpc_client *client)
{
	if (!tcp_client_may_have_req(loop, client))
		return NULL;
	struct tcp_req *t = tcp_pool_take_req(loop, client);

	if (!t)
		loop->memory_wait_ns = rn_now_ns();
	return t;
}

struct tcp_req *tcp_pool_get_from_afar(struct tcp_loop *loop, struct rpc_client *client)
{
	return tcp_client_may_have_req(loop, client) ? tcp_pool_take_req(loop, client) : NULL;
}

void tcp_pool_put(struct tcp_loop *loop, struct tcp_req *t)
{
	bool wake = false, keep;

	tcp_req_discharge(t);
	rpc_request_reset(t->rpc);
	t->rpc->conn = NULL;
	pthread_mutex_lock(&loop->lock);
	keep = loop->nidle < POOL_IDLE_MAX;
	if (keep) {
		STAILQ_INSERT_HEAD(&loop->idle, t, link);
		loop->nidle++;
		wake = loop->hungry && !loop->waking;
		if (wake) {
			loop->hungry = false;
			loop->waking = true;
		}
	}
	pthread_mutex_unlock(&loop->lock);
	if (!keep)
		tcp_req_unmake(loop->srv, t);
	if (wake)
		ev_loop_post(loop->ev, &loop->wake);
}

void tcp_pool_free(struct tcp_loop *loop)
{
	struct tcp_req *t;

	while ((t = STAILQ_FIRST(&loop->idle))) {
		STAILQ_REMOVE_HEAD(&loop->idle, link);
		tcp_req_unmake(loop->srv, t);
	}
	loop->nidle = 0;
}

unsigned tcp_pool_idle(struct tcp_loop *loop)
{
	pthread_mutex_lock(&loop->lock);
	unsigned n = loop->nidle;
	pthread_mutex_unlock(&loop->lock);
	return n;
}

/* Has tcp_feed run when a request comes back, or soon. On the loop. */
static void tcp_pool_await(struct tcp_loop *loop)
{
	static const struct timeval soon = { 0, RETRY_USEC };

	pthread_mutex_lock(&loop->lock);
	/* The timer finds a request that came back in between, and memory that others gave back. */
	loop->hungry = true;
	pthread_mutex_unlock(&loop->lock);
	event_add(loop->retry, &soon);
}

void tcp_pool_starve(struct tcp_conn *c)
{
	struct tcp_loop *loop = c->loop;

	tcp_count(loop->srv, waits_memory, 1);
	TAILQ_INSERT_TAIL(&loop->starving, c, starving);
	tcp_pool_await(loop);
}

void tcp_pool_unstarve(struct tcp_conn *c)
{
	TAILQ_REMOVE(&c->loop->starving, c, starving);
}

/* Connections that wait for a request go on, those of needy clients first. On the loop. */

#define FEED_AT_ONCE 16u /* requests that a client must be able to get before it goes on */

/*
 * True if another connection of the client may go on, besides those that this round has let go on.
 */
static bool tcp_feed_may_go_on(struct tcp_loop *loop, struct rpc_client *client)
{
	struct rpc_loop_part *s = &client->loop[loop->index];

	if (s->feed != loop->feed) {
		s->feed = loop->feed;
		s->fed = 0;
	}
	if (!rn_payload_may_hold(loop->srv->cfg.pool, &client->requests,
				 (s->fed + 1) * FEED_AT_ONCE * TCP_HELD_BYTES))
		return false;
	s->fed++;
	return true;
}

static bool has_none(const struct tcp_conn *c)
{
	return atomic_load_explicit(&c->rpc.client->requests.bytes, memory_order_relaxed) == 0;
}

/* Clients without any request go first: there may be few of them among many that wait for more. */
static void needy_first(struct tcp_loop *loop, struct tcp_conn_list *out)
{
	struct tcp_conn_list others = TAILQ_HEAD_INITIALIZER(others);
	struct tcp_conn *c;

	while ((c = TAILQ_FIRST(&loop->starving))) {
		TAILQ_REMOVE(&loop->starving, c, starving);
		if (has_none(c))
			TAILQ_INSERT_TAIL(out, c, starving);
		else
			TAILQ_INSERT_TAIL(&others, c, starving);
	}
	TAILQ_CONCAT(out, &others, starving);
}

void tcp_feed(struct tcp_loop *loop)
{
	struct tcp_conn_list again = TAILQ_HEAD_INITIALIZER(again);
	struct tcp_conn *c;

	loop->feed++;
	pthread_mutex_lock(&loop->lock);
	loop->hungry = false;
	pthread_mutex_unlock(&loop->lock);
	/* Connections that find nothing go back to the end of loop->starving. */
	needy_first(loop, &again);
	while ((c = TAILQ_FIRST(&again))) {
		TAILQ_REMOVE(&again, c, starving);
		if (tcp_feed_may_go_on(loop, c->rpc.client)) {
			tcp_read_forgive_wait(c);
			c->pause = TCP_GOING;
			tcp_read_resume(c);
		} else {
			TAILQ_INSERT_TAIL(&loop->starving, c, starving);
		}
	}
	if (!TAILQ_EMPTY(&loop->starving))
		tcp_pool_await(loop);
}

void tcp_feed_wake(struct ev_task *task)
{
	struct tcp_loop *loop = rn_container_of(task, struct tcp_loop, wake);

	pthread_mutex_lock(&loop->lock);
	loop->waking = false;
	pthread_mutex_unlock(&loop->lock);
	tcp_feed(loop);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/udp/udp_pool.h"

#include <errno.h>
#include <stdlib.h>

#define REQUEST_BYTES (sizeof(struct udp_req) + sizeof(struct rpc_request))
#define HELD_BYTES (REQUEST_BYTES + RPC_HEAD_SIZE + sizeof(struct udp_conn))

static struct udp_req *udp_req_make(struct udp_server *s)
{
	if (!rn_budget_take(s->cfg.budget, REQUEST_BYTES))
		return NULL;
	struct udp_req *r = calloc(1, sizeof(*r));

	if (r)
		r->rpc = rpc_request_new(s->cfg.pool);
	if (!r || !r->rpc) {
		free(r);
		rn_budget_give(s->cfg.budget, REQUEST_BYTES);
		return NULL;
	}
	r->rpc->transport_private = r;
	atomic_fetch_add(&s->made, 1);
	return r;
}

static void udp_req_unmake(struct udp_server *s, struct udp_req *r)
{
	atomic_fetch_sub(&s->made, 1);
	rpc_request_free(r->rpc);
	free(r);
	rn_budget_give(s->cfg.budget, REQUEST_BYTES);
}

size_t udp_pool_memory(void)
{
	return UDP_READY * (REQUEST_BYTES + RPC_HEAD_SIZE);
}

int udp_pool_fill(struct udp_server *s)
{
	for (unsigned i = 0; i < UDP_READY; i++) {
		struct udp_req *r = udp_req_make(s);

		if (!r)
			return -ENOMEM;
		STAILQ_INSERT_HEAD(&s->idle, r, link);
		s->nidle++;
	}
	return 0;
}

void udp_pool_free(struct udp_server *s)
{
	struct udp_req *r;

	while ((r = STAILQ_FIRST(&s->idle))) {
		STAILQ_REMOVE_HEAD(&s->idle, link);
		udp_req_unmake(s, r);
	}
	s->nidle = 0;
}

bool udp_pool_enter(struct udp_conn *c)
{
	struct udp_server *s = c->from->srv;
	struct rpc_client *client = c->rpc.client;

	pthread_mutex_lock(&s->lock);
	const bool room = client->datagrams < UDP_CALLS_MAX - s->busy;
	if (room) {
		s->busy++;
		client->datagrams++;
	}
	pthread_mutex_unlock(&s->lock);
	return room;
}

bool udp_pool_enter_stranger(struct udp_conn *c)
{
	struct udp_server *s = c->from->srv;

	pthread_mutex_lock(&s->lock);
	c->stranger = s->strangers < UDP_STRANGERS_MAX;
	s->strangers += c->stranger;
	pthread_mutex_unlock(&s->lock);
	return c->stranger;
}

void udp_pool_leave(struct udp_conn *c)
{
	struct udp_server *s = c->from->srv;

	pthread_mutex_lock(&s->lock);
	s->busy--;
	s->strangers -= c->stranger;
	c->rpc.client->datagrams--;
	if (s->busy == 0)
		pthread_cond_broadcast(&s->gone);
	pthread_mutex_unlock(&s->lock);
}

struct udp_req *udp_pool_get(struct udp_server *s, struct rpc_client *client)
{
	if (!rn_payload_may_hold(s->cfg.pool, &client->requests, HELD_BYTES))
		return NULL;
	pthread_mutex_lock(&s->lock);
	struct udp_req *r = STAILQ_FIRST(&s->idle);
	if (r) {
		STAILQ_REMOVE_HEAD(&s->idle, link);
		s->nidle--;
	}
	pthread_mutex_unlock(&s->lock);
	if (!r)
		r = udp_req_make(s);
	if (r)
		atomic_fetch_add_explicit(&client->requests.bytes, HELD_BYTES,
					  memory_order_relaxed);
	return r;
}

void udp_pool_put(struct udp_server *s, struct udp_req *r, struct rpc_client *client)
{
	atomic_fetch_sub_explicit(&client->requests.bytes, HELD_BYTES, memory_order_relaxed);
	rpc_request_reset(r->rpc);
	r->rpc->conn = NULL;
	pthread_mutex_lock(&s->lock);
	const bool keep = s->nidle < UDP_READY;
	if (keep) {
		STAILQ_INSERT_HEAD(&s->idle, r, link);
		s->nidle++;
	}
	pthread_mutex_unlock(&s->lock);
	if (!keep)
		udp_req_unmake(s, r);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection as all layers above use it: room for calls, its task, its turns, its standing. */
#include "transport/tcp/tcp_conn.h"

bool tcp_conn_has_room(const struct tcp_conn *c)
{
	return c->inflight < c->window && c->out_bytes < TCP_OUT_MAX;
}

void tcp_conn_post_locked(struct tcp_conn *c)
{
	if (c->posted)
		return;
	c->posted = true;
	rpc_conn_ref(&c->rpc);
	ev_loop_post(c->loop->ev, &c->task);
}

void tcp_conn_take_turn(struct tcp_conn *c)
{
	rpc_conn_ref(&c->rpc); /* the visit may close it */
	turn_take(c->loop->ev, &c->rpc.client->loop[c->loop->index], &c->turn);
	rpc_conn_put(&c->rpc);
}

void tcp_conn_worked(struct tcp_conn *c, uint64_t work)
{
	c->work += work;
	c->loop->ev->work += work;
}

enum rpc_standing tcp_conn_standing(struct tcp_conn *c)
{
	const struct tcp_config *cfg = &c->srv->cfg;

	return cfg->standing ? cfg->standing(cfg->standing_ctx, &c->rpc) : RPC_ADMITTED;
}

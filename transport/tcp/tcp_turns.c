/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whom the loop serves next. In one pass of the loop a client gets one visit's worth of reading,
 * and of writing what its sockets did not take from the workers, straight away; its connections
 * that are ready beyond that wait in a fair queue by client, from which one visit's worth is served
 * at the end of each pass. So the loop is back at its descriptors after a bounded time, and a
 * client with a single call waits for about one visit to each other client, not to each of their
 * connections.
 *
 * Work is counted in bytes: those received and sent, and TCP_CALL_WORK for each call.
 */
#include "lib/checked.h"
#include "transport/tcp/tcp_internal.h"

#define VISIT_WORK (256u << 10)

void tcp_turns_init(struct tcp_loop *loop)
{
	rn_fq_init(&loop->turns, VISIT_WORK);
	loop->pass = 1;
}

/* The loop will come by once more when the descriptors that are ready now have been seen to. */
static void open_pass(struct tcp_loop *loop)
{
	if (loop->in_pass)
		return;
	loop->in_pass = true;
	event_active(loop->pass_ev, EV_TIMEOUT, 1);
}

/* Returns the work that it was. */
static uint64_t visit(struct tcp_conn *c)
{
	struct tcp_loop *loop = c->loop;
	const uint64_t start = loop->work;

	if (c->writable)
		tcp_write_some(c);
	if (!loop->quiet)
		tcp_read_some(c, start + VISIT_WORK);
	return loop->work - start;
}

void tcp_turns_take(struct tcp_conn *c)
{
	struct tcp_loop *loop = c->loop;
	struct rpc_loop_share *r = &c->rpc.client->loop[loop->index];

	if (c->turn.flow)
		return;
	open_pass(loop);
	if (r->pass != loop->pass) {
		r->pass = loop->pass;
		r->work = 0;
	}
	if (r->work >= VISIT_WORK || rn_fq_waits(&r->flow)) {
		c->turn_ns = tcp_now();
		rn_fq_push(&loop->turns, &r->flow, &c->turn, 1);
		return;
	}
	rpc_conn_ref(&c->rpc); /* the visit may close it; the client is its */
	r->work += visit(c);
	rpc_conn_put(&c->rpc);
}

/* The peer's time stands still while it is us who keep it waiting. */
static void forgive(struct tcp_conn *c)
{
	const uint64_t waited = tcp_now() - c->turn_ns;

	c->record_ns += waited;
	pthread_mutex_lock(&c->lock);
	c->out_ns += waited;
	pthread_mutex_unlock(&c->lock);
}

void tcp_turns_leave(struct tcp_conn *c)
{
	if (c->turn.flow)
		rn_fq_remove(&c->loop->turns, &c->turn);
}

void tcp_turns_pass(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval now;
	struct tcp_loop *loop = arg;
	const uint64_t end = loop->work + VISIT_WORK;
	struct rn_fq_item *it;

	(void)fd;
	(void)what;
	loop->pass++;
	while (loop->work < end && (it = rn_fq_pop(&loop->turns))) {
		struct tcp_conn *c = rn_container_of(it, struct tcp_conn, turn);

		rpc_conn_ref(&c->rpc);
		forgive(c);
		rn_fq_charge(&loop->turns, &c->rpc.client->loop[loop->index].flow, visit(c));
		rpc_conn_put(&c->rpc);
	}
	loop->in_pass = loop->turns.nitems > 0;
	if (loop->in_pass) /* after a look at the descriptors */
		event_add(loop->pass_ev, &now);
}

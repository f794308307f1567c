/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/turns.h"

#include <errno.h>
#include <event2/event.h>

#include "lib/util.h"
#include "lib/clock.h"
#include "transport/event_loop.h"

/* Makes the loop run once more after the descriptors that are ready now have been served. */
static void open_pass(struct ev_loop *loop)
{
	ev_load_awake(loop);
	if (loop->in_pass)
		return;
	loop->in_pass = true;
	event_active(loop->pass_ev, EV_TIMEOUT, 1);
}

static uint64_t turn_quantum(const struct ev_loop *loop)
{
	return loop->pass - loop->shared_pass < TURN_SHARED_PASSES ? TURN_QUANTUM_SHARED
								   : TURN_QUANTUM;
}

/* Gives t of the client that has part its turn; returns the work done. */
static uint64_t turn_run(struct ev_loop *loop, const struct rpc_loop_part *part, struct turn *t)
{
	const uint64_t start = loop->work;

	if (part != loop->client && loop->client)
		loop->shared_pass = loop->pass;
	loop->client = part;
	t->run(t, start + turn_quantum(loop));
	t->since_ns = 0;
	return loop->work - start;
}

void turn_take(struct ev_loop *loop, struct rpc_loop_part *part, struct turn *t)
{
	if (turn_waits(t))
		return;
	open_pass(loop);
	if (part->pass != loop->pass) {
		part->pass = loop->pass;
		part->work = 0;
	}
	if (part->work < turn_quantum(loop) && !rn_fq_waits(&part->flow)) {
		part->work += turn_run(loop, part, t);
		return;
	}
	t->since_ns = rn_now_ns();
	t->flow = &part->flow;
	rn_fq_push(&loop->queue, &part->flow, &t->item, 1);
}

void turn_leave(struct ev_loop *loop, struct turn *t)
{
	if (turn_waits(t))
		rn_fq_remove(&loop->queue, &t->item);
}

static void on_pass(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval now;
	struct ev_loop *loop = arg;
	const uint64_t end = loop->work + turn_quantum(loop);
	struct rn_fq_item *it;

	(void)fd;
	(void)what;
	ev_load_awake(loop);
	loop->pass++;
	while (loop->work < end && (it = rn_fq_pop(&loop->queue))) {
		struct turn *t = rn_container_of(it, struct turn, item);
		struct rn_fq_flow *flow = t->flow;
		struct rpc_conn *conn = t->conn;

		rpc_conn_ref(conn); /* the turn may close the connection, which holds the client */
		rn_fq_charge(&loop->queue, flow,
			     turn_run(loop, rn_container_of(flow, struct rpc_loop_part, flow), t));
		rpc_conn_put(conn);
	}
	loop->in_pass = loop->queue.nitems > 0;
	if (loop->in_pass) /* after the descriptors have been looked at */
		event_add(loop->pass_ev, &now);
}

int turns_init(struct ev_loop *loop)
{
	rn_fq_init(&loop->queue, TURN_QUANTUM_SHARED);
	loop->pass = TURN_SHARED_PASSES; /* alone so far */
	loop->pass_ev = event_new(loop->base, -1, 0, on_pass, loop);
	return loop->pass_ev ? 0 : -ENOMEM;
}

void turns_fini(struct ev_loop *loop)
{
	if (loop->pass_ev)
		event_free(loop->pass_ev);
	loop->pass_ev = NULL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/turns.h"

#include <errno.h>
#include <event2/event.h>

#include "lib/util.h"
#include "lib/clock.h"
#include "transport/load.h"

/* Makes the loop run once more after the descriptors that are ready now have been served. */
static void open_pass(struct turns *ts)
{
	ev_load_awake(ts->load);
	if (ts->in_pass)
		return;
	ts->in_pass = true;
	event_active(ts->pass_ev, EV_TIMEOUT, 1);
}

static uint64_t visit_size(const struct turns *ts)
{
	return ts->pass - ts->shared_pass < TURN_SHARED_PASSES ? TURN_VISIT_SHARED : TURN_VISIT;
}

/* Visits t of the client that has share; returns the work done. */
static uint64_t visit(struct turns *ts, const struct rpc_loop_share *share, struct turn *t)
{
	const uint64_t start = ts->work;

	if (share != ts->client && ts->client)
		ts->shared_pass = ts->pass;
	ts->client = share;
	t->visit(t, start + visit_size(ts));
	t->since_ns = 0;
	return ts->work - start;
}

void turn_take(struct turns *ts, struct rpc_loop_share *share, struct turn *t)
{
	if (turn_waits(t))
		return;
	open_pass(ts);
	if (share->pass != ts->pass) {
		share->pass = ts->pass;
		share->work = 0;
	}
	if (share->work < visit_size(ts) && !rn_fq_waits(&share->flow)) {
		share->work += visit(ts, share, t);
		return;
	}
	t->since_ns = rn_now_ns();
	t->flow = &share->flow;
	rn_fq_push(&ts->queue, &share->flow, &t->item, 1);
}

void turn_leave(struct turns *ts, struct turn *t)
{
	if (turn_waits(t))
		rn_fq_remove(&ts->queue, &t->item);
}

static void on_pass(evutil_socket_t fd, short what, void *arg)
{
	static const struct timeval now;
	struct turns *ts = arg;
	const uint64_t end = ts->work + visit_size(ts);
	struct rn_fq_item *it;

	(void)fd;
	(void)what;
	ev_load_awake(ts->load);
	ts->pass++;
	while (ts->work < end && (it = rn_fq_pop(&ts->queue))) {
		struct turn *t = rn_container_of(it, struct turn, item);
		struct rn_fq_flow *flow = t->flow;
		struct rpc_conn *conn = t->conn;

		rpc_conn_ref(conn); /* the visit may close the connection, which holds the client */
		rn_fq_charge(&ts->queue, flow,
			     visit(ts, rn_container_of(flow, struct rpc_loop_share, flow), t));
		rpc_conn_put(conn);
	}
	ts->in_pass = ts->queue.nitems > 0;
	if (ts->in_pass) /* after the descriptors have been looked at */
		event_add(ts->pass_ev, &now);
}

int turns_init(struct turns *ts, struct event_base *base, struct ev_load *load)
{
	ts->load = load;
	rn_fq_init(&ts->queue, TURN_VISIT_SHARED);
	ts->pass = TURN_SHARED_PASSES; /* alone so far */
	ts->pass_ev = event_new(base, -1, 0, on_pass, ts);
	return ts->pass_ev ? 0 : -ENOMEM;
}

void turns_fini(struct turns *ts)
{
	if (ts->pass_ev)
		event_free(ts->pass_ev);
	ts->pass_ev = NULL;
}

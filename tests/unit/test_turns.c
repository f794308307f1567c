/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns of clients on an event thread: how long a turn is, and who is served next. */
#include <criterion/criterion.h>
#include <event2/event.h>
#include <string.h>

#include "lib/util.h"
#include "transport/event_loop.h"
#include "transport/turns.h"

struct client {
	struct rpc_loop_part share;
	struct rpc_conn conn;
	struct turn turn;
	struct ev_loop *loop;
	uint64_t todo;	  /* work that its connection has */
	uint64_t longest; /* work of its longest turn */
};

static void on_turn(struct turn *t, uint64_t until)
{
	struct client *c = rn_container_of(t, struct client, turn);
	struct ev_loop *loop = c->loop;
	const uint64_t start = loop->work;

	while (c->todo && loop->work < until) {
		loop->work += TURN_WORK;
		c->todo -= TURN_WORK;
	}
	c->longest = rn_max(c->longest, loop->work - start);
}

static void loop_open(struct ev_loop *l)
{
	memset(l, 0, sizeof(*l));
	l->base = event_base_new();
	cr_assert_not_null(l->base);
	ev_load_init(l, rn_now_ns());
	cr_assert_eq(turns_init(l), 0);
}

static void loop_close(struct ev_loop *l)
{
	turns_fini(l);
	event_base_free(l->base);
}

static void client_init(struct client *c, struct ev_loop *l)
{
	memset(c, 0, sizeof(*c));
	c->loop = l;
	rn_fq_flow_init(&c->share.flow);
	atomic_init(&c->conn.refs, 1);
	c->turn.conn = &c->conn;
	c->turn.run = on_turn;
}

static void client_has(struct client *c, uint64_t todo)
{
	c->todo += todo;
	turn_take(c->loop, &c->share, &c->turn);
}

/* One pass: descriptors that are ready, then the clients that wait. */
static void pass(struct ev_loop *l, struct client *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (c[i].todo)
			turn_take(l, &c[i].share, &c[i].turn);
	cr_assert_geq(event_base_loop(l->base, EVLOOP_ONCE | EVLOOP_NONBLOCK), 0);
}

Test(turns, a_client_alone_has_long_turns, .timeout = 20)
{
	struct ev_loop l;
	struct client c;

	loop_open(&l);
	client_init(&c, &l);
	client_has(&c, 10 * TURN_QUANTUM);
	while (c.todo)
		pass(&l, &c, 1);
	cr_expect_eq(c.longest, TURN_QUANTUM);
	loop_close(&l);
}

Test(turns, a_single_call_waits_for_a_short_turn, .timeout = 20)
{
	struct ev_loop l;
	struct client flood, polite;
	uint64_t before;

	loop_open(&l);
	client_init(&flood, &l);
	client_init(&polite, &l);
	client_has(&polite, TURN_WORK);
	client_has(&flood, 20 * TURN_QUANTUM);
	flood.longest = 0;
	for (int i = 0; i < 8; i++) {
		before = l.work;
		pass(&l, &flood, 1);
		cr_expect_leq(l.work - before, 2 * TURN_QUANTUM_SHARED);
		client_has(&polite, TURN_WORK);
		cr_expect_eq(polite.todo, 0, "it is served at once");
	}
	cr_expect_eq(flood.longest, TURN_QUANTUM_SHARED);
	flood.todo = 0;
	pass(&l, &flood, 1);
	loop_close(&l);
}

Test(turns, clients_that_wait_are_served_by_turns, .timeout = 20)
{
	struct ev_loop l;
	struct client c[3];

	loop_open(&l);
	for (size_t i = 0; i < 3; i++) {
		client_init(&c[i], &l);
		client_has(&c[i], 8 * TURN_QUANTUM);
	}
	for (int i = 0; i < 12; i++)
		pass(&l, c, 3);
	for (size_t i = 1; i < 3; i++) {
		const uint64_t a = c[0].todo, b = c[i].todo;

		cr_expect_leq(a > b ? a - b : b - a, TURN_QUANTUM + TURN_QUANTUM_SHARED);
	}
	while (c[0].todo || c[1].todo || c[2].todo)
		pass(&l, c, 3);
	loop_close(&l);
}

Test(turns, turns_are_long_again_when_the_other_has_gone, .timeout = 20)
{
	struct ev_loop l;
	struct client c, gone;

	loop_open(&l);
	client_init(&c, &l);
	client_init(&gone, &l);
	client_has(&gone, TURN_WORK);
	for (unsigned i = 0; i < TURN_SHARED_PASSES; i++) {
		client_has(&c, TURN_QUANTUM);
		while (c.todo)
			pass(&l, &c, 1);
	}
	c.longest = 0;
	client_has(&c, 2 * TURN_QUANTUM);
	while (c.todo)
		pass(&l, &c, 1);
	cr_expect_eq(c.longest, TURN_QUANTUM);
	loop_close(&l);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A loop that was busy for most of the last second, while another one was idle for half of it,
 * gives that one a connection. The best is the one with whose part of the work both have the same.
 * None is given whose part is nearly all of the work, since the other loop would have too much
 * then, nor one that makes next to no work.
 *
 * A loop waits after each until its load has been measured again, and a connection stays with a
 * loop for a while, so that none goes back and forth.
 */
#include "transport/tcp/tcp_balance.h"

#include "lib/clock.h"
#include "transport/load.h"
#include "transport/tcp/tcp_move.h"

#define BUSY (EV_LOAD_FULL * 85 / 100) /* load above which a loop gives connections away */
#define PART_LEAST (EV_LOAD_FULL * 3 / 100)
/* After a move the measurement under way says little: the next one counts. */
#define GIVE_NS (RN_NS_PER_SECOND * 3 / 2)

/* A search for the connection to give away. Loads are of EV_LOAD_FULL. */
struct search {
	struct tcp_loop *to; /* NULL: no connection is wanted */
	uint64_t now;
	unsigned load, gap; /* this loop's, and by how much the other's is less */
	uint64_t all;	    /* work of this loop since its last tick, of all transports */
	struct tcp_conn *best;
	unsigned part; /* load that the best one makes */
};

static unsigned distance(unsigned a, unsigned b)
{
	return a > b ? a - b : b - a;
}

static void tcp_balance_consider(struct search *s, struct tcp_conn *c)
{
	const unsigned part = (unsigned)(s->load * c->work / (s->all + 1));

	if (part < PART_LEAST || part > s->gap / 4 * 3 || s->now < c->stays_until)
		return;
	if (s->best && distance(part, s->gap / 2) >= distance(s->part, s->gap / 2))
		return;
	if (!tcp_move_may(c))
		return;
	s->best = c;
	s->part = part;
}

/* Finds a loop that has room, if this one has too much. */
static void find_room(struct tcp_loop *loop, struct search *s)
{
	const struct tcp_config *cfg = &loop->srv->cfg;
	const unsigned at = ev_place_least(cfg->loops, cfg->nloops);
	const unsigned least = ev_load_expected(cfg->loops[at]);

	if (s->load < BUSY || least >= EV_PLACE_IDLE || at == loop->index)
		return;
	if (loop->quiesced || loop->leaving || s->now < loop->gave_ns + GIVE_NS)
		return;
	s->to = &loop->srv->loops[at];
	s->gap = s->load - least;
}

void tcp_balance_tick(struct tcp_loop *loop)
{
	struct search s = {
		.now = rn_now_ns(),
		.load = ev_load_measured(loop->ev),
		.all = loop->ev->work - loop->work_seen,
	};
	struct tcp_conn *c;

	loop->work_seen = loop->ev->work;
	find_room(loop, &s);
	TAILQ_FOREACH (c, &loop->conns, link) {
		if (s.to)
			tcp_balance_consider(&s, c);
		c->work = 0;
	}
	if (!s.best)
		return;
	loop->gave_ns = s.now;
	ev_load_expect(s.to->ev, s.part);
	tcp_move_begin(s.best, s.to);
}

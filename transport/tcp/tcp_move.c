/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection's way from one loop to another. It leaves at a moment of rest, with no request in
 * flight, be it a call of the client or one to the client: no worker uses the connection then, and
 * none of its calls is lost, answered twice or overtaken. To come to rest it stops reading (TCP_LEAVING) while replies go out.
 * If that takes longer than LEAVE_USEC, because a call lasts or the peer does not take its replies,
 * the connection stays and reads on.
 *
 * A record that was read in part moves along, with its request, its buffers and its time limits.
 * The limits are put off by the time in which the server did not read, and by no more. Requests of
 * the pools are all alike, so one that was taken from the old loop's pool may be put into the new
 * one's.
 *
 * On its way the connection is on no list. Other threads may make calls to the client meanwhile;
 * what these leave to the loop waits behind the arrival. The way ends before the server does: no
 * connection leaves a quiesced loop, and connections are closed when all loops are quiesced, so that
 * arrivals come before that.
 */
#include "transport/tcp/tcp_private.h"

#include "lib/clock.h"
#include "lib/util.h"
#include "transport/event_loop.h"

#define LEAVE_USEC 100000

/* The list is ordered by the time of the last input. */
static void tcp_conn_list_insert(struct tcp_conn_list *list, struct tcp_conn *c)
{
	struct tcp_conn *before = TAILQ_LAST(list, tcp_conn_list);

	while (before && before->active_ns > c->active_ns)
		before = TAILQ_PREV(before, tcp_conn_list, link);
	if (before)
		TAILQ_INSERT_AFTER(list, before, c, link);
	else
		TAILQ_INSERT_HEAD(list, c, link);
}

void tcp_move_settle(struct tcp_conn *c)
{
	struct event_base *base = c->loop->ev->base;

	event_assign(&c->rd, base, c->fd, EV_READ | EV_PERSIST, tcp_read_ready, c);
	event_assign(&c->wr, base, c->fd, EV_WRITE, tcp_write_ready, c);
	c->work = 0;
	tcp_conn_list_insert(&c->loop->conns, c);
}

bool tcp_move_may(const struct tcp_conn *c)
{
	/* Reading that goes on after a pause has not added the event yet, and has input to use. */
	return c->open && !c->rpc.dialed && !c->eof && c->pause == TCP_GOING &&
	       !c->loop->quiesced && event_pending(&c->rd, EV_READ, NULL);
}

static void read_on(struct tcp_conn *c)
{
	const uint64_t now = rn_now_ns();

	c->pause = TCP_GOING;
	c->stays_until = now + TCP_STAY_SECONDS * RN_NS_PER_SECOND;
	tcp_rate_suspend(c, now - c->left_ns);
	if (!c->loop->quiesced && event_add(&c->rd, NULL) < 0)
		tcp_conn_close(c, TCP_CLOSE_ERROR, "no memory for an event");
	else if (!c->loop->quiesced)
		tcp_read_pending(c);
}

static void arrive(struct ev_task *task)
{
	struct tcp_conn *c = rn_container_of(task, struct tcp_conn, arrival);

	tcp_move_settle(c);
	read_on(c);
}

/* Logs the move. The connection has left already, so its new loop's thread may change c->loop. */
static void tcp_move_log(const struct tcp_conn *c, const struct tcp_loop *from)
{
	const struct tcp_loop *to = from->leaves_to;

	rn_debug(c->srv->cfg.log,
		 "tcp: connection %llu moves from event thread %u (load %u of %u) to %u (%u)",
		 (unsigned long long)c->rpc.id, from->index, ev_load_measured(from->ev),
		 EV_LOAD_FULL, to->index, ev_load_measured(to->ev));
}

/* Takes the connection off its loop. */
static void detach(struct tcp_conn *c)
{
	struct tcp_loop *from = c->loop;

	from->leaving = NULL;
	event_del(from->patience);
	event_del(&c->wr);
	TAILQ_REMOVE(&from->conns, c, link);
	ev_load_leave(from->ev);
}

/*
 * Hands the connection over if it is at rest, else has its task run when it may be; c->lock is held.
 * A task that another thread posts from then on, for a call to the client, runs after the arrival.
 */
static bool depart_locked(struct tcp_conn *c)
{
	struct tcp_loop *to = c->loop->leaves_to;

	if (c->inflight || c->posted || c->broken || turn_waits(&c->turn)) {
		c->post_on_reply = true;
		return false;
	}
	detach(c);
	ev_load_join(to->ev);
	c->loop = to;
	c->arrival.run = arrive;
	tcp_count(c->srv, moved, 1); /* before a client can see that it moved */
	ev_loop_post(to->ev, &c->arrival);
	return true;
}

void tcp_move_begin(struct tcp_conn *c, struct tcp_loop *to)
{
	static const struct timeval patience = { 0, LEAVE_USEC };
	struct tcp_loop *from = c->loop;

	c->pause = TCP_LEAVING;
	c->left_ns = rn_now_ns();
	event_del(&c->rd);
	if (turn_waits(&c->turn) && !c->writable) { /* the next loop finds what there is to read */
		turn_leave(from->ev, &c->turn);
		c->left_ns = c->turn.since_ns;
		c->turn.since_ns = 0;
	}
	from->leaving = c;
	from->leaves_to = to;
	event_add(from->patience, &patience);
	tcp_move_go_on(c);
}

void tcp_move_go_on(struct tcp_conn *c)
{
	const struct tcp_loop *from = c->loop;

	if (from->quiesced)
		return;
	rpc_conn_ref(&c->rpc); /* the next loop may close it at once */
	pthread_mutex_lock(&c->lock);
	const bool gone = depart_locked(c);
	pthread_mutex_unlock(&c->lock);
	if (gone)
		tcp_move_log(c, from);
	rpc_conn_put(&c->rpc);
}

void tcp_move_timeout(evutil_socket_t fd, short what, void *arg)
{
	struct tcp_loop *loop = arg;
	struct tcp_conn *c = loop->leaving;

	(void)fd;
	(void)what;
	loop->leaving = NULL;
	if (c)
		read_on(c);
}

/*
 * A loop that was busy for most of the last second, while another one was idle for half of it,
 * gives that one a connection. The best is the one with whose part of the work both have the same.
 * None is given whose part is nearly all of the work, since the other loop would have too much
 * then, nor one that makes next to no work.
 *
 * A loop waits after each until its load has been measured again, and a connection stays with a
 * loop for a while, so that none goes back and forth.
 */

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

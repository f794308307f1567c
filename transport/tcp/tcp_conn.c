/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection's life: made on the listener's loop, started, attended to and closed on its own.
 * Closing takes it off the loop and shuts the socket down; the descriptor goes with the last
 * reference, when the requests in flight have come back.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/checked.h"
#include "lib/clock.h"
#include "transport/tcp/tcp_internal.h"

#define KEEPALIVE_IDLE 60 /* seconds */
#define KEEPALIVE_INTERVAL 15
#define KEEPALIVE_PROBES 4

/* None of them is worth refusing a client for. */
static void set_options(int fd)
{
	static const struct {
		int level, name, value;
	} opts[] = {
		{ IPPROTO_TCP, TCP_NODELAY, 1 },
		{ SOL_SOCKET, SO_KEEPALIVE, 1 },
		{ IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE },
		{ IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_INTERVAL },
		{ IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES },
	};

	for (size_t i = 0; i < rn_array_size(opts); i++)
		(void)setsockopt(fd, opts[i].level, opts[i].name, &opts[i].value,
				 sizeof(opts[i].value));
}

static void attend(struct ev_task *task)
{
	struct tcp_conn *c = rn_container_of(task, struct tcp_conn, task);

	pthread_mutex_lock(&c->lock);
	c->posted = false;
	bool broken = c->broken;
	bool blocked = c->blocked;
	bool over = c->eof && !c->inflight;
	bool room = tcp_conn_has_room(c);
	if (!room && c->pause == TCP_WAIT_ROOM)
		c->want_room = true;
	pthread_mutex_unlock(&c->lock);

	if (!c->open) {
		tcp_read_stop(c); /* memory may have come after the end */
	} else if (broken) {
		tcp_conn_close(c, TCP_CLOSE_ERROR, "send failed");
	} else if (over) {
		tcp_conn_close(c, TCP_CLOSE_PEER, "end of stream");
	} else {
		if (blocked && !event_pending(&c->wr, EV_WRITE, NULL))
			event_add(&c->wr, NULL);
		if (c->pause == TCP_WAIT_ROOM && room)
			c->pause = TCP_GOING;
		tcp_read_resume(c);
	}
	rpc_conn_put(&c->rpc);
}

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

/* The peer's time stands still while it is us who keep it waiting. */
static void forgive(struct tcp_conn *c, uint64_t waited)
{
	c->record_ns += waited;
	pthread_mutex_lock(&c->lock);
	c->out_ns += waited;
	pthread_mutex_unlock(&c->lock);
}

static void visit(struct turn *t, uint64_t until)
{
	struct tcp_conn *c = rn_container_of(t, struct tcp_conn, turn);

	if (t->since_ns)
		forgive(c, rn_now_ns() - t->since_ns);
	if (c->writable)
		tcp_write_some(c);
	if (!c->loop->quiet)
		tcp_read_some(c, until);
}

void tcp_conn_take_turn(struct tcp_conn *c)
{
	rpc_conn_ref(&c->rpc); /* the visit may close it */
	turn_take(c->loop->turns, &c->rpc.client->loop[c->loop->index], &c->turn);
	rpc_conn_put(&c->rpc);
}

static void start(struct ev_task *task)
{
	struct tcp_conn *c = rn_container_of(task, struct tcp_conn, task);
	struct tcp_loop *loop = c->loop;
	struct event_base *base = ev_loop_base(loop->ev);

	event_assign(&c->rd, base, c->fd, EV_READ | EV_PERSIST, tcp_read_ready, c);
	event_assign(&c->wr, base, c->fd, EV_WRITE, tcp_write_ready, c);
	c->task.run = attend;
	c->active_ns = c->useful_ns = rn_now_ns();
	c->open = true;
	TAILQ_INSERT_TAIL(&loop->conns, c, link);
	(void)tcp_conn_standing(c);
	if (tcp_room_is_over(c))
		tcp_conn_close(c, TCP_CLOSE_ERROR, "too many of a host that no export is for");
	else if (!loop->quiet && event_add(&c->rd, NULL) < 0)
		tcp_conn_close(c, TCP_CLOSE_ERROR, "no memory for an event");
}

enum rpc_standing tcp_conn_standing(struct tcp_conn *c)
{
	const struct tcp_config *cfg = &c->loop->srv->cfg;

	return cfg->standing ? cfg->standing(cfg->standing_ctx, &c->rpc) : RPC_ADMITTED;
}

int tcp_conn_new(struct tcp_server *srv, int fd, const struct sockaddr_storage *peer)
{
	struct tcp_conn *c = calloc(1, sizeof(*c)); /* in the budget since start */
	struct rpc_client *client = c ? rpc_client_get(srv->cfg.clients, peer) : NULL;

	if (!client) {
		free(c);
		close(fd);
		return -ENOMEM;
	}
	uint64_t id = atomic_fetch_add(&srv->next_id, 1);
	socklen_t len = sizeof(c->rpc.local);

	set_options(fd);
	c->rpc.ops = &tcp_conn_ops;
	c->rpc.peer = *peer;
	c->rpc.client = client;
	(void)getsockname(fd, (struct sockaddr *)&c->rpc.local, &len);
	c->rpc.id = id;
	atomic_init(&c->rpc.refs, 1);
	c->loop = &srv->loops[id % srv->cfg.nloops];
	c->fd = fd;
	tcp_record_start(&c->rec, srv->cfg.max_record);
	pthread_mutex_init(&c->lock, NULL);
	STAILQ_INIT(&c->out);
	c->window = (unsigned)rn_min(TCP_WINDOW, srv->cfg.max_requests);
	c->turn.conn = &c->rpc;
	c->turn.visit = visit;
	c->task.run = start;
	pthread_mutex_lock(&srv->lock);
	srv->live++;
	pthread_mutex_unlock(&srv->lock);
	ev_loop_post(c->loop->ev, &c->task);
	return 0;
}

void tcp_conn_close(struct tcp_conn *c, enum tcp_close_reason why, const char *text)
{
	struct tcp_server *srv = c->loop->srv;

	if (!c->open)
		return;
	c->open = false;
	if (why == TCP_CLOSE_IDLE)
		tcp_count(srv, closed_idle, 1);
	else if (why == TCP_CLOSE_ERROR)
		tcp_count(srv, closed_error, 1);
	rn_debug(srv->cfg.log, "tcp: connection %llu closed: %s", (unsigned long long)c->rpc.id,
		 text);
	event_del(&c->rd);
	event_del(&c->wr);
	TAILQ_REMOVE(&c->loop->conns, c, link);
	turn_leave(c->loop->turns, &c->turn);
	if (c->pause == TCP_WAIT_REQUEST)
		tcp_pool_unstarve(c);
	if (c->pause == TCP_WAIT_PAYLOAD && !rn_payload_wait_cancel(srv->cfg.pool, &c->waiter))
		rpc_conn_put(&c->rpc); /* never the last: the list's is still there */
	c->pause = TCP_GOING;
	tcp_read_stop(c);
	shutdown(c->fd, SHUT_RDWR);
	pthread_mutex_lock(&c->lock);
	c->closed = true;
	pthread_mutex_unlock(&c->lock);
	tcp_write_discard(c);
	rpc_conn_put(&c->rpc);
}

void tcp_conn_destroy(struct rpc_conn *rc)
{
	struct tcp_conn *c = rn_container_of(rc, struct tcp_conn, rpc);
	struct tcp_server *srv = c->loop->srv;

	close(c->fd);
	pthread_mutex_destroy(&c->lock);
	rpc_client_put(c->rpc.client);
	free(c);
	pthread_mutex_lock(&srv->lock);
	if (!--srv->live)
		pthread_cond_broadcast(&srv->gone);
	pthread_mutex_unlock(&srv->lock);
}

static bool lately(uint64_t then, uint64_t now)
{
	return then && now < then + 2 * TCP_PRESSED_SECONDS * RN_NS_PER_SECOND;
}

/* Is somebody waiting because there is no memory, or was there lately? */
static bool under_pressure(struct tcp_loop *loop, uint64_t now)
{
	if (rn_payload_short(loop->srv->cfg.pool))
		loop->pressed_ns = now;
	return lately(loop->pressed_ns, now);
}

static bool waits_for_memory(const struct tcp_conn *c)
{
	return c->pause == TCP_WAIT_REQUEST || c->pause == TCP_WAIT_PAYLOAD;
}

/* A client whose own calls wait for memory (its share may be used up, while there is enough for
 * others) is under pressure too. */
static bool client_pressed(struct tcp_conn *c, uint64_t now)
{
	struct rpc_client *client = c->rpc.client;

	if (waits_for_memory(c) ||
	    atomic_load_explicit(&client->memory.waiting, memory_order_relaxed))
		atomic_store_explicit(&client->pressed_ns, now, memory_order_relaxed);
	return lately(atomic_load_explicit(&client->pressed_ns, memory_order_relaxed), now);
}

/*
 * A peer that neither reads its replies nor ends its record in time holds memory that others may
 * need. While they do wait for it, standing still for a few seconds is enough.
 */
static void check_times(struct tcp_conn *c, uint64_t now, bool pressed)
{
	const struct tcp_config *cfg = &c->loop->srv->cfg;

	pressed = client_pressed(c, now) || pressed;
	if (turn_waits(&c->turn)) /* it is us who keep it waiting */
		return;
	uint64_t stall = cfg->stall_seconds * RN_NS_PER_SECOND;
	uint64_t still = pressed ? TCP_PRESSED_SECONDS * RN_NS_PER_SECOND : stall;
	uint64_t idle = cfg->idle_seconds * RN_NS_PER_SECOND;

	pthread_mutex_lock(&c->lock);
	unsigned inflight = c->inflight;
	bool stuck =
		!STAILQ_EMPTY(&c->out) && (now > c->out_ns + stall || now > c->moved_ns + still);
	pthread_mutex_unlock(&c->lock);

	bool in_record = (c->cur || c->part) && !waits_for_memory(c);
	/* While it is paused it is the server that does not read. */
	bool slow = in_record && c->pause == TCP_GOING && tcp_room_is_slow(c, now, pressed);

	if (stuck)
		tcp_conn_close(c, TCP_CLOSE_ERROR, "the peer does not read its replies");
	else if (in_record && (now > c->record_ns + stall || slow ||
			       (now > c->record_ns + still && now > c->active_ns + still)))
		tcp_conn_close(c, TCP_CLOSE_ERROR, "a record was not completed in time");
	else if (idle && !inflight && !in_record && c->pause == TCP_GOING &&
		 now > c->active_ns + idle)
		tcp_conn_close(c, TCP_CLOSE_IDLE, "idle");
}

/* Before any of them is closed, since memory then goes to whoever waits for it. */
static void find_slow_clients(struct tcp_loop *loop, uint64_t now)
{
	struct tcp_conn *c, *next;

	TAILQ_FOREACH (c, &loop->conns, link) {
		if (!turn_waits(&c->turn) && c->pause == TCP_GOING &&
		    tcp_room_is_slow(c, now, true))
			rpc_client_is_slow(c->rpc.client, now);
	}
	/* What others wait for shall not go from one connection of a slow client to the next. */
	for (c = TAILQ_FIRST(&loop->conns); c; c = next) {
		next = TAILQ_NEXT(c, link);
		if (waits_for_memory(c) && c->cur && rpc_client_was_slow(c->rpc.client, now))
			tcp_conn_close(c, TCP_CLOSE_ERROR, "others need the memory");
	}
}

void tcp_conn_tick(struct tcp_loop *loop)
{
	uint64_t now = rn_now_ns();
	bool pressed = under_pressure(loop, now);
	struct tcp_conn *c, *next;

	if (pressed)
		find_slow_clients(loop, now);
	for (c = TAILQ_FIRST(&loop->conns); c; c = next) {
		next = TAILQ_NEXT(c, link);
		check_times(c, now, pressed);
	}
	tcp_room_unjam(loop, now);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The start of a connection: made on the listener's loop, started and attended to on its own. */
#include "transport/tcp/tcp_start.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/util.h"
#include "lib/clock.h"
#include "transport/placement.h"
#include "transport/tcp/tcp_close.h"
#include "transport/tcp/tcp_conn.h"
#include "transport/tcp/tcp_move.h"
#include "transport/tcp/tcp_read.h"
#include "transport/tcp/tcp_room.h"
#include "transport/tcp/tcp_write.h"

#define KEEPALIVE_IDLE 60 /* seconds */
#define KEEPALIVE_INTERVAL 15
#define KEEPALIVE_PROBES 4

static const struct rpc_conn_ops conn_ops = {
	.netid = "tcp",
	.reliable = true,
	.keeps_port = true,
	.takes_pipes = true,
	.reply = tcp_reply,
	.drop = tcp_drop,
	.too_long = tcp_give_up,
	.garbage = tcp_give_up,
	.call = tcp_call,
	.destroy = tcp_conn_destroy,
};

/* Sets socket options; a failure is no reason to refuse a client. */
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

/* Reads on, or leaves, if it has waited for that. */
static void go_on(struct tcp_conn *c, bool room)
{
	if (c->pause == TCP_LEAVING) {
		tcp_move_go_on(c);
		return;
	}
	if (c->pause == TCP_WAIT_ROOM && room)
		c->pause = TCP_GOING;
	tcp_read_resume(c);
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
		tcp_drop_input(c); /* memory may have come after the end */
	} else if (broken) {
		tcp_conn_close(c, TCP_CLOSE_ERROR, "send failed");
	} else if (over) {
		tcp_conn_close(c, TCP_CLOSE_PEER, "end of stream");
	} else {
		if (!blocked)
			tcp_write_held(c);
		if (blocked && !event_pending(&c->wr, EV_WRITE, NULL))
			event_add(&c->wr, NULL);
		go_on(c, room);
	}
	rpc_conn_put(&c->rpc);
}

/* The peer's time limits are suspended while the server keeps it waiting. */
static void forgive(struct tcp_conn *c, uint64_t since)
{
	const uint64_t now = rn_now_ns(), waited = now - since;

	c->record_ns += waited;
	if (c->pause == TCP_LEAVING) /* the time from then on is not forgiven yet */
		c->left_ns = now;
	pthread_mutex_lock(&c->lock);
	c->out_ns += waited;
	pthread_mutex_unlock(&c->lock);
}

static void visit(struct turn *t, uint64_t until)
{
	struct tcp_conn *c = rn_container_of(t, struct tcp_conn, turn);

	if (t->since_ns)
		forgive(c, t->since_ns);
	if (c->writable)
		tcp_write_some(c);
	if (!c->loop->quiesced)
		tcp_read_some(c, until);
}

static void start(struct ev_task *task)
{
	struct tcp_conn *c = rn_container_of(task, struct tcp_conn, task);

	c->task.run = attend;
	c->active_ns = c->useful_ns = rn_now_ns();
	c->open = true;
	tcp_move_settle(c);
	(void)tcp_conn_standing(c);
	if (tcp_room_is_over(c))
		tcp_conn_close(c, TCP_CLOSE_ERROR, "too many of a host that no export is for");
	else if (!c->loop->quiesced && event_add(&c->rd, NULL) < 0)
		tcp_conn_close(c, TCP_CLOSE_ERROR, "no memory for an event");
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
	socklen_t len = sizeof(c->rpc.local);

	set_options(fd);
	c->rpc.ops = &conn_ops;
	c->rpc.peer = *peer;
	c->rpc.client = client;
	(void)getsockname(fd, (struct sockaddr *)&c->rpc.local, &len);
	c->rpc.id = atomic_fetch_add(&srv->next_id, 1);
	atomic_init(&c->rpc.refs, 1);
	c->srv = srv;
	c->loop = &srv->loops[ev_place(srv->cfg.loops, srv->cfg.nloops)];
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

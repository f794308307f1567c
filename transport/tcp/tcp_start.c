/* SPDX-License-Identifier: BSD-2-Clause */
/* The start of a connection: made on the listener's loop, or by any thread if it goes to a client;
 * started and attended to on its own loop. */
#include "transport/tcp/tcp_start.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/error.h"
#include "lib/util.h"
#include "lib/clock.h"
#include "rpc/backchannel.h"
#include "rpc/conns.h"
#include "transport/load.h"
#include "transport/tcp/tcp_close.h"
#include "transport/tcp/tcp_conn.h"
#include "transport/tcp/tcp_move.h"
#include "transport/tcp/tcp_read.h"
#include "transport/tcp/tcp_room.h"
#include "transport/tcp/tcp_tls.h"
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
	.hang_up = tcp_conn_hang_up,
	.destroy = tcp_conn_destroy,
};

/* Sets socket options; a failure is no reason to refuse a client. */
static void tcp_set_socket_options(int fd)
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
static void tcp_conn_go_on(struct tcp_conn *c, bool room)
{
	if (c->pause == TCP_LEAVING) {
		tcp_move_go_on(c);
		return;
	}
	if (c->pause == TCP_WAIT_TLS || c->pause == TCP_SHAKING) {
		tcp_tls_go_on(c);
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
	bool unwanted = c->unwanted;
	bool broken = c->broken;
	bool blocked = c->blocked;
	bool over = c->eof && !c->inflight;
	bool room = tcp_conn_has_room(c);
	if (!room && c->pause == TCP_WAIT_ROOM)
		c->want_room = true;
	pthread_mutex_unlock(&c->lock);

	if (!c->open) {
		tcp_drop_input(c); /* memory may have come after the end */
	} else if (unwanted) {
		tcp_conn_close(c, TCP_CLOSE_PEER, "not needed any more");
	} else if (broken) {
		tcp_conn_close(c, TCP_CLOSE_ERROR, "send failed");
	} else if (over) {
		tcp_conn_close(c, TCP_CLOSE_PEER, "end of stream");
	} else {
		if (!blocked)
			tcp_write_held(c);
		if (blocked && !event_pending(&c->wr, EV_WRITE, NULL))
			event_add(&c->wr, NULL);
		tcp_conn_go_on(c, room);
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

static void tcp_conn_visit(struct turn *t, uint64_t until)
{
	struct tcp_conn *c = rn_container_of(t, struct tcp_conn, turn);

	if (t->since_ns)
		forgive(c, t->since_ns);
	if (c->writable)
		tcp_write_some(c);
	if (!c->loop->quiesced)
		tcp_read_some(c, until);
}

/* Waits for the end of connect(), with what is to be sent by then. */
static void await_connection(struct tcp_conn *c)
{
	pthread_mutex_lock(&c->lock);
	c->posted = false;
	const bool unwanted = c->unwanted;
	pthread_mutex_unlock(&c->lock);

	if (unwanted)
		tcp_conn_close(c, TCP_CLOSE_PEER, "not needed any more");
	else if (event_add(&c->wr, NULL) < 0)
		tcp_conn_close(c, TCP_CLOSE_ERROR, "no memory for an event");
}

static void tcp_conn_start(struct ev_task *task)
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
	else if (c->rpc.dialed)
		await_connection(c);
}

/* Makes a connection that is not counted yet; its loop is chosen. NULL: no memory. */
static struct tcp_conn *tcp_conn_make(struct tcp_server *srv, int fd,
				      const struct sockaddr_storage *peer)
{
	struct tcp_conn *c = calloc(1, sizeof(*c)); /* in the budget since start */
	struct rpc_client *client = c ? rpc_client_get(srv->cfg.clients, peer) : NULL;

	if (!client) {
		free(c);
		return NULL;
	}
	socklen_t len = sizeof(c->rpc.local);

	tcp_set_socket_options(fd);
	c->rpc.ops = &conn_ops;
	c->rpc.peer = *peer;
	c->rpc.client = client;
	(void)getsockname(fd, (struct sockaddr *)&c->rpc.local, &len);
	atomic_init(&c->rpc.refs, 1);
	c->srv = srv;
	c->fd = fd;
	c->io = &tcp_io_plain;
	c->max_record = srv->cfg.max_record;
	pthread_mutex_init(&c->lock, NULL);
	STAILQ_INIT(&c->out);
	c->window = (unsigned)rn_min(TCP_WINDOW, srv->cfg.max_requests);
	c->turn.conn = &c->rpc;
	c->turn.visit = tcp_conn_visit;
	c->task.run = tcp_conn_start;
	return c;
}

/* Hands a connection that was counted to its loop. */
static void launch(struct tcp_conn *c)
{
	struct tcp_server *srv = c->srv;

	tcp_record_start(&c->rec, c->max_record);
	c->loop = &srv->loops[ev_place(srv->cfg.loops, srv->cfg.nloops)];
	rpc_conns_enter(rpc_clients_conns(srv->cfg.clients), &c->rpc);
	ev_loop_post(c->loop->ev, &c->task);
}

int tcp_conn_new(struct tcp_server *srv, int fd, const struct sockaddr_storage *peer)
{
	struct tcp_conn *c = tcp_conn_make(srv, fd, peer);

	if (!c) {
		close(fd);
		return -ENOMEM;
	}
	pthread_mutex_lock(&srv->lock);
	srv->live++;
	pthread_mutex_unlock(&srv->lock);
	launch(c);
	return 0;
}

/*
 * Counts a connection to a client, if there may be one more. A client may have as many as are still
 * left in all, so that there are some for the next client.
 */
static bool count_dialed(struct tcp_server *srv, struct rpc_client *client)
{
	const unsigned most = srv->cfg.max_connections / TCP_DIALED_SHARE + 1;
	bool room;

	pthread_mutex_lock(&srv->lock);
	room = srv->live < srv->cfg.max_connections && srv->dialed + client->dialed < most;
	if (room) {
		srv->live++;
		srv->dialed++;
		client->dialed++;
	}
	pthread_mutex_unlock(&srv->lock);
	return room;
}

/* Frees a connection that no loop has seen. */
static void tcp_conn_discard(struct tcp_conn *c)
{
	close(c->fd);
	pthread_mutex_destroy(&c->lock);
	rpc_client_put(c->rpc.client);
	free(c);
}

int tcp_conn_new_dialed(struct tcp_server *srv, int fd, const struct sockaddr_storage *peer,
			uint32_t reply_max, struct tcp_conn **out)
{
	struct tcp_conn *c = tcp_conn_make(srv, fd, peer);

	if (!c) {
		close(fd);
		return -ENOMEM;
	}
	if (!count_dialed(srv, c->rpc.client)) {
		tcp_conn_discard(c);
		return -RN_EFULL;
	}
	c->rpc.dialed = true;
	c->max_record = rn_max(reply_max, RPC_CALLBACK_REPLY);
	/* Until tcp_conn_start(), other threads queue what they send, and post no task. */
	c->blocked = c->posted = true;
	rpc_conn_ref(&c->rpc);
	*out = c;
	launch(c);
	return 0;
}

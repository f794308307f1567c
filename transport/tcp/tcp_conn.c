/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections, from their start to their end: made on the listener's loop, or by any thread if it goes to a client;
 * started and attended to on their own loop.
 */
#include "transport/tcp/tcp_private.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/host.h"
#include "lib/util.h"
#include "rpc/backchannel.h"
#include "rpc/conns.h"
#include "transport/event_loop.h"

/* Connections as the other files use them: room for further calls, the task that reads and sends, turns, the admission of the client. */

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
	rpc_conn_ref(&c->rpc); /* the turn may close it */
	turn_take(c->loop->ev, &c->rpc.client->loop[c->loop->index], &c->turn);
	rpc_conn_put(&c->rpc);
}

void tcp_conn_worked(struct tcp_conn *c, uint64_t work)
{
	c->work += work;
	c->loop->ev->work += work;
}

enum rpc_admission tcp_conn_admission(struct tcp_conn *c)
{
	const struct tcp_config *cfg = &c->srv->cfg;

	return cfg->admission ? cfg->admission(cfg->admission_ctx, &c->rpc) : RPC_ADMITTED;
}

/*
 * The end of a connection. Closing takes it off the loop and shuts the socket down; the descriptor
 * is closed with the last reference, when the requests in flight have come back.
 */

struct rn_payload *tcp_take_granted(struct tcp_conn *c)
{
	pthread_mutex_lock(&c->lock);
	struct rn_payload *p = c->granted;
	c->granted = NULL;
	pthread_mutex_unlock(&c->lock);
	return p;
}

void tcp_drop_input(struct tcp_conn *c)
{
	rn_payload_put(tcp_take_granted(c));
	if (c->cur)
		tcp_pool_put(c->loop, c->cur);
	c->cur = NULL;
	if (c->asked)
		tcp_pool_put(c->loop, c->asked);
	c->asked = NULL;
	free(c->pending);
	c->pending = NULL;
	c->pending_len = 0;
	c->part = false;
}

void tcp_conn_close(struct tcp_conn *c, enum tcp_close_reason why, const char *text)
{
	struct tcp_server *srv = c->srv;

	if (!c->open)
		return;
	tcp_write_held(c); /* of calls before what ends the connection */
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
	ev_load_leave(c->loop->ev);
	if (c->loop->leaving == c) {
		c->loop->leaving = NULL;
		event_del(c->loop->patience);
	}
	turn_leave(c->loop->ev, &c->turn);
	if (c->pause == TCP_WAIT_REQUEST)
		tcp_pool_unstarve(c);
	if (c->pause == TCP_WAIT_PAYLOAD && !rn_payload_wait_cancel(srv->cfg.pool, &c->waiter))
		rpc_conn_put(&c->rpc); /* never the last: the list's reference is still held */
	c->pause = TCP_GOING;
	tcp_drop_input(c);
	if (c->io->end)
		c->io->end(c);
	shutdown(c->fd, SHUT_RDWR);
	pthread_mutex_lock(&c->lock);
	c->closed = true;
	pthread_mutex_unlock(&c->lock);
	tcp_write_discard(c);
	rpc_backchannel_close(&c->rpc);
	rpc_conn_put(&c->rpc);
}

/* Has the loop close a connection that the server has made: rpc_conn_ops.hang_up. Any thread. */
static void tcp_conn_hang_up(struct rpc_conn *rc)
{
	struct tcp_conn *c = rn_container_of(rc, struct tcp_conn, rpc);

	pthread_mutex_lock(&c->lock);
	c->unwanted = true;
	if (!c->closed)
		tcp_conn_post_locked(c);
	pthread_mutex_unlock(&c->lock);
}

static void uncount_dialed(struct tcp_conn *c)
{
	pthread_mutex_lock(&c->srv->lock);
	c->srv->dialed--;
	c->rpc.client->dialed--;
	pthread_mutex_unlock(&c->srv->lock);
}

/* Frees it: rpc_conn_ops.destroy. */
static void tcp_conn_destroy(struct rpc_conn *rc)
{
	struct tcp_conn *c = rn_container_of(rc, struct tcp_conn, rpc);
	struct tcp_server *srv = c->srv;

	rpc_conns_leave(rc);
	tcp_tls_free(c);
	close(c->fd);
	pthread_mutex_destroy(&c->lock);
	if (c->rpc.dialed)
		uncount_dialed(c);
	rpc_client_put(c->rpc.client);
	free(c);
	pthread_mutex_lock(&srv->lock);
	if (!--srv->live)
		pthread_cond_broadcast(&srv->gone);
	pthread_mutex_unlock(&srv->lock);
}

/* The start. */

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
		c->post_on_reply = true;
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

static void tcp_conn_run_turn(struct turn *t, uint64_t until)
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
	(void)tcp_conn_admission(c);
	if (tcp_conn_is_over_quota(c))
		tcp_conn_close(c, TCP_CLOSE_ERROR, "too many of a host that no export is for");
	else if (c->pending) /* read by the program before this one */
		tcp_conn_take_turn(c);
	else if (!c->loop->quiesced && event_add(&c->rd, NULL) < 0)
		tcp_conn_close(c, TCP_CLOSE_ERROR, "no memory for an event");
	else if (c->rpc.dialed)
		await_connection(c);
}

struct tcp_conn *tcp_conn_make(struct tcp_server *srv, int fd, const struct sockaddr_storage *peer)
{
	struct tcp_conn *c = calloc(1, sizeof(*c)); /* in the budget since start */
	struct rpc_client *client = c ? rpc_client_get(srv->cfg.clients, peer) : NULL;

	if (!client) {
		free(c);
		return NULL;
	}
	socklen_t len = sizeof(c->rpc.local);

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
	c->turn.run = tcp_conn_run_turn;
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
	tcp_set_socket_options(fd);
	tcp_conn_admit(c);
	return 0;
}

void tcp_conn_admit(struct tcp_conn *c)
{
	pthread_mutex_lock(&c->srv->lock);
	c->srv->live++;
	pthread_mutex_unlock(&c->srv->lock);
	launch(c);
}

/*
 * Counts a connection to a client, if there may be one more. A client may have as many as are still
 * left in all, so that there are some for the next client.
 */
static bool count_dialed(struct tcp_server *srv, struct rpc_client *client)
{
	const unsigned most = srv->cfg.max_connections / TCP_DIALED_PART + 1;
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

void tcp_conn_discard(struct tcp_conn *c)
{
	close(c->fd);
	free(c->pending);
	pthread_mutex_destroy(&c->lock);
	rpc_client_put(c->rpc.client);
	free(c);
}

/* Makes a connection to a client, whose connect() was called. Takes fd, on error too. reply_max: as in
 * struct rpc_route. *out has a reference for the caller. 0; -RN_EFULL: there are too many; -ENOMEM. Any thread. */
static int tcp_conn_new_dialed(struct tcp_server *srv, int fd, const struct sockaddr_storage *peer,
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
	tcp_set_socket_options(fd);
	c->rpc.dialed = true;
	c->max_record = rn_max(reply_max, RPC_CALLBACK_REPLY);
	/* Until tcp_conn_start(), other threads queue what they send, and post no task. */
	c->blocked = c->posted = true;
	rpc_conn_ref(&c->rpc);
	*out = c;
	launch(c);
	return 0;
}

/* Connections to clients (rpc/backchannel.h). */

#define RESERVED_FIRST 665u /* as glibc's bindresvport() */
#define RESERVED_LAST 1023u

/* The address as its own family has it; returns its length. */
static socklen_t unmap(const struct sockaddr_in6 *from, struct sockaddr_storage *to)
{
	return rn_address_unmap(from->sin6_addr.s6_addr, from->sin6_scope_id,
				ntohs(from->sin6_port), to);
}

/* Binds to a free privileged port. -errno: there is none, or this process may not. */
static int bind_reserved(int fd, const struct sockaddr_in6 *from)
{
	const unsigned n = RESERVED_LAST - RESERVED_FIRST + 1, first = randombytes_uniform(n);
	struct sockaddr_in6 addr = *from;
	struct sockaddr_storage sa;

	for (unsigned i = 0; i < n; i++) {
		addr.sin6_port = htons((uint16_t)(RESERVED_FIRST + (first + i) % n));
		const socklen_t len = unmap(&addr, &sa);

		if (bind(fd, (struct sockaddr *)&sa, len) == 0)
			return 0;
		if (errno != EADDRINUSE)
			break;
	}
	return -errno;
}

/*
 * Binds to the address that the client calls, which it and its firewall know. The port is any
 * unprivileged one: a reserved port would lend the server's standing to a call whose receiver the
 * client has chosen. A route that the administrator has chosen has a reserved one, if one is free.
 */
static int bind_to(int fd, const struct rpc_route *route)
{
	const int on = 1;
	const struct sockaddr_in6 *from = &route->from;
	struct sockaddr_storage sa;
	struct sockaddr_in6 any_port = *from;

	if (from->sin6_family == AF_UNSPEC || (route->reserved && bind_reserved(fd, from) == 0))
		return 0;
	any_port.sin6_port = 0;
	/* The kernel chooses the port by both ends, when it connects. */
	(void)setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	const socklen_t len = unmap(&any_port, &sa);

	return bind(fd, (struct sockaddr *)&sa, len) < 0 ? -errno : 0;
}

/* A socket whose connect() is under way, or -errno. */
static int begin_connect(const struct rpc_route *route, struct sockaddr_storage *peer)
{
	const socklen_t len = unmap(&route->to, peer);
	const int fd = socket(peer->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return -errno;
	rc = bind_to(fd, route);
	if (rc == 0 && connect(fd, (struct sockaddr *)peer, len) < 0 && errno != EINPROGRESS)
		rc = -errno;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

int tcp_server_dial(struct tcp_server *srv, const struct rpc_route *route,
		    struct rpc_backchannel **out)
{
	struct sockaddr_storage peer;
	struct tcp_conn *c;
	const int fd = begin_connect(route, &peer);
	int rc = fd < 0 ? fd : tcp_conn_new_dialed(srv, fd, &peer, route->reply_max, &c);

	if (rc != 0)
		return rc;
	tcp_count(srv, dialed, 1);
	*out = rpc_backchannel_get(&c->rpc);
	if (!*out) { /* no memory, or it is closed already */
		tcp_conn_hang_up(&c->rpc);
		rc = -ENOTCONN;
	}
	rpc_conn_put(&c->rpc);
	return rc;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listeners, and room for connections.
 *
 * Accepting never spins. When descriptors run out, a reserved one is closed for a moment
 * to refuse the client at once. Then, and at max_connections, the listener pauses while the
 * kernel's backlog holds the callers.
 */
#include "transport/tcp/tcp_private.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/util.h"

/*
 * Room for connections. At max_connections the client with most loses some, the least useful first:
 * strangers in any case; then connections without a complete call for a while; then, if the client
 * has more than its quota, any. A byte now and then is no use. Each loop chooses among its own
 * connections, over which those of clients are spread.
 */

#define BATCH 8u       /* most connections that one loop closes at a time */
#define BATCH_PART 32u /* and most of them as a fraction of its connections */
/* A connection that completed a call this recently is not idle */
#define GRACE_NS (2 * RN_NS_PER_SECOND)

struct candidate {
	struct tcp_conn *conn;
	bool stranger, busy;
	unsigned conns; /* connections of its client */
};

static bool tcp_conn_is_stranger(const struct tcp_conn *c)
{
	const enum rpc_admission admission = rpc_conn_admission(&c->rpc);

	return c->srv->cfg.admission && (admission == RPC_STRANGER || admission == RPC_UNKNOWN);
}

bool tcp_conn_is_over_quota(struct tcp_conn *c)
{
	return tcp_conn_is_stranger(c) && rpc_client_conns(c->rpc.client) > TCP_STRANGER_CONNS;
}

/* True if c may be closed, where `fair` is the number of connections a client is entitled to. */
static bool tcp_conn_judge(struct tcp_conn *c, uint64_t now, unsigned fair, struct candidate *out)
{
	pthread_mutex_lock(&c->lock);
	const bool working = c->inflight > 0;
	pthread_mutex_unlock(&c->lock);

	*out = (struct candidate){
		.conn = c,
		.stranger = tcp_conn_is_stranger(c),
		.busy = working || (c->cur && !c->slow),
		.conns = rpc_client_conns(c->rpc.client),
	};
	if (out->stranger || out->conns > fair)
		return true;
	return !out->busy && now > c->useful_ns + GRACE_NS;
}

/* True if a is to be closed before b. */
static bool tcp_candidate_before(const struct candidate *a, const struct candidate *b)
{
	if (a->stranger != b->stranger)
		return a->stranger;
	if (a->conns != b->conns)
		return a->conns > b->conns;
	if (a->busy != b->busy)
		return b->busy;
	return a->conn->useful_ns < b->conn->useful_ns;
}

/* Inserts a candidate among the n best so far, of at most max; returns their number. */
static unsigned tcp_conn_rank(struct candidate *best, unsigned n, unsigned max,
			      const struct candidate *c)
{
	unsigned at = n;

	while (at > 0 && tcp_candidate_before(c, &best[at - 1]))
		at--;
	if (at == max)
		return n;
	n = (unsigned)rn_min(n + 1, max);
	memmove(&best[at + 1], &best[at], (n - at - 1) * sizeof(*best));
	best[at] = *c;
	return n;
}

/* Equal part of each client, counting the one that is not connected yet. */
static unsigned tcp_fair_part(struct tcp_server *srv)
{
	return srv->cfg.max_connections / (rpc_clients_count(srv->cfg.clients) + 1);
}

void tcp_conn_evict(struct ev_task *task)
{
	struct tcp_loop *loop = rn_container_of(task, struct tcp_loop, evict);
	const uint64_t now = rn_now_ns();
	const unsigned fair = tcp_fair_part(loop->srv);
	struct candidate best[BATCH], one;
	unsigned n = 0, total = 0, max;
	struct tcp_conn *c;

	atomic_store(&loop->evicting, false);
	TAILQ_FOREACH (c, &loop->conns, link) {
		total++;
		if (tcp_conn_judge(c, now, fair, &one))
			n = tcp_conn_rank(best, n, BATCH, &one);
	}
	max = (unsigned)rn_min(n, total / BATCH_PART + 1);
	tcp_count(loop->srv, closed_room, max);
	for (unsigned i = 0; i < max; i++)
		tcp_conn_close(best[i].conn, TCP_CLOSE_IDLE, "of least use when there was no room");
}

/* Asks every loop to close some connections. Any thread. */
static void tcp_conn_ask_to_go(struct tcp_server *srv)
{
	for (unsigned i = 0; i < srv->cfg.nloops; i++)
		if (!atomic_exchange(&srv->loops[i].evicting, true))
			ev_loop_post(srv->loops[i].ev, &srv->loops[i].evict);
}

/* Listeners. */

#define BACKLOG 4096 /* the kernel cuts it to net.core.somaxconn */
#define ACCEPT_BATCH 64
#define WARN_EVERY_NS (10 * RN_NS_PER_SECOND)

static const struct timeval pause_short = { 0, 50000 };
static const struct timeval pause_full = { 0, 5000 }; /* while room is made */

static void tcp_listener_pause(struct tcp_listener *l, const struct timeval *pause)
{
	event_del(l->ev);
	event_add(l->retry, pause);
}

static void tcp_listener_on_retry(evutil_socket_t fd, short what, void *arg)
{
	struct tcp_listener *l = arg;

	(void)fd;
	(void)what;
	if (!l->loop->quiesced)
		event_add(l->ev, NULL);
}

static int open_reserve(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void warn(struct tcp_listener *l, int rc)
{
	uint64_t now = rn_now_ns();

	if (l->warned_ns && now < l->warned_ns + WARN_EVERY_NS)
		return;
	l->warned_ns = now;
	rn_warn(l->srv->cfg.log, "tcp: cannot accept connections now: %s", strerror(rc));
}

/* A refused client tries something else at once; one in the backlog waits for minutes. */
static void refuse_one(struct tcp_listener *l)
{
	if (l->reserve_fd < 0)
		return;
	close(l->reserve_fd);
	int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		close(fd);
		tcp_count(l->srv, refused, 1);
	}
	l->reserve_fd = open_reserve();
}

static bool full(struct tcp_server *srv)
{
	pthread_mutex_lock(&srv->lock);
	bool yes = srv->live >= srv->cfg.max_connections;
	pthread_mutex_unlock(&srv->lock);
	return yes;
}

/* Accepts one connection; first: the first of this turn, of which it is known that somebody waits.
 * False: no more in this turn. */
static bool tcp_accept_one(struct tcp_listener *l, bool first)
{
	struct sockaddr_storage peer = { 0 };
	socklen_t len = sizeof(peer);

	if (full(l->srv)) {
		if (!first)
			return false;
		tcp_conn_ask_to_go(l->srv);
		tcp_listener_pause(l, &pause_full);
		return false;
	}
	int fd = accept4(l->fd, (struct sockaddr *)&peer, &len, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		tcp_count(l->srv, accepted, 1);
		if (tcp_conn_new(l->srv, fd, &peer) < 0)
			tcp_count(l->srv, refused, 1);
		return true;
	}
	switch (errno) {
	case EAGAIN:
		return false;
	case EMFILE:
	case ENFILE:
		warn(l, errno);
		tcp_conn_ask_to_go(l->srv);
		refuse_one(l);
		tcp_listener_pause(l, &pause_short);
		return false;
	case ENOBUFS:
	case ENOMEM:
		warn(l, errno);
		tcp_listener_pause(l, &pause_short);
		return false;
	default: /* only this caller or its network is gone: accept(2) */
		return true;
	}
}

static void on_accept(evutil_socket_t fd, short what, void *arg)
{
	struct tcp_listener *l = arg;

	(void)fd;
	(void)what;
	for (unsigned i = 0; i < ACCEPT_BATCH; i++)
		if (!tcp_accept_one(l, i == 0))
			break;
}

static int open_socket(const struct sockaddr *addr, socklen_t len)
{
	static const int on = 1;
	int fd = socket(addr->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    (addr->sa_family == AF_INET6 &&
	     setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) < 0) ||
	    bind(fd, addr, len) < 0 || listen(fd, BACKLOG) < 0) {
		int rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

void tcp_listener_free(struct tcp_listener *l)
{
	if (l->ev)
		event_free(l->ev);
	if (l->retry)
		event_free(l->retry);
	if (l->reserve_fd >= 0)
		close(l->reserve_fd);
	close(l->fd);
	free(l);
}

struct setup {
	struct tcp_listener *l;
	int err;
};

/* On the listener's loop. */
static void tcp_listener_set_up(void *arg)
{
	struct setup *s = arg;
	struct tcp_listener *l = s->l;
	struct event_base *base = l->loop->ev->base;

	l->ev = event_new(base, l->fd, EV_READ | EV_PERSIST, on_accept, l);
	l->retry = event_new(base, -1, 0, tcp_listener_on_retry, l);
	if (!l->ev || !l->retry || event_add(l->ev, NULL) < 0) {
		tcp_listener_free(l);
		s->err = -ENOMEM;
	}
}

int tcp_server_listen(struct tcp_server *srv, const struct sockaddr *addr, socklen_t len,
		      struct sockaddr_storage *bound)
{
	const int fd = open_socket(addr, len);

	return fd < 0 ? fd : tcp_server_adopt(srv, fd, bound);
}

int tcp_server_adopt(struct tcp_server *srv, int fd, struct sockaddr_storage *bound)
{
	socklen_t blen = sizeof(*bound);
	struct tcp_listener *l = calloc(1, sizeof(*l));

	if (!l) {
		close(fd);
		return -ENOMEM;
	}
	l->fd = fd;
	memset(bound, 0, sizeof(*bound));
	getsockname(l->fd, (struct sockaddr *)bound, &blen);
	l->srv = srv;
	l->loop = &srv->loops[0];
	l->reserve_fd = open_reserve();
	struct setup s = { .l = l };

	ev_loop_call(l->loop->ev, tcp_listener_set_up, &s);
	if (s.err)
		return s.err;
	SLIST_INSERT_HEAD(&srv->listeners, l, link);
	return 0;
}

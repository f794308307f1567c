/* SPDX-License-Identifier: BSD-2-Clause */
/* The server as a whole: start, quiesce, counters, end. Its functions are called by one thread,
 * which is not one of its loops. */
#include "transport/tcp/tcp_private.h"

#include <errno.h>
#include <stdlib.h>

struct loop_setup {
	struct tcp_loop *loop;
	int err;
};

static void tcp_loop_on_tick(void *arg)
{
	tcp_times_tick(arg);
	tcp_balance_tick(arg);
}

static void tcp_loop_on_retry(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	tcp_feed(arg);
}

static void set_up_loop(void *arg)
{
	struct loop_setup *s = arg;
	struct tcp_loop *loop = s->loop;
	struct event_base *base = loop->ev->base;

	loop->retry = event_new(base, -1, 0, tcp_loop_on_retry, loop);
	loop->patience = event_new(base, -1, 0, tcp_move_timeout, loop);
	s->err = loop->retry && loop->patience
			 ? ev_second_start(&loop->tick, base, tcp_loop_on_tick, loop)
			 : -ENOMEM;
}

static void tear_down_loop(void *arg)
{
	struct tcp_loop *loop = arg;

	ev_second_stop(&loop->tick);
	if (loop->retry)
		event_free(loop->retry);
	if (loop->patience)
		event_free(loop->patience);
	loop->retry = loop->patience = NULL;
}

static int init_loop(struct tcp_server *srv, unsigned i)
{
	struct tcp_loop *loop = &srv->loops[i];
	struct loop_setup s = { .loop = loop };

	loop->srv = srv;
	loop->ev = srv->cfg.loops[i];
	loop->index = i;
	TAILQ_INIT(&loop->conns);
	TAILQ_INIT(&loop->starving);
	STAILQ_INIT(&loop->idle);
	loop->wake.run = tcp_feed_wake;
	loop->evict.run = tcp_conn_evict;
	pthread_mutex_init(&loop->lock, NULL);
	int rc = tcp_pool_fill(loop);
	if (!rc) {
		ev_loop_call(loop->ev, set_up_loop, &s);
		rc = s.err;
	}
	return rc;
}

static void free_loops(struct tcp_server *srv, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		ev_loop_call(srv->loops[i].ev, tear_down_loop, &srv->loops[i]);
		tcp_pool_free(&srv->loops[i]);
		pthread_mutex_destroy(&srv->loops[i].lock);
	}
	free(srv->loops);
}

size_t tcp_server_memory(unsigned max_connections, unsigned nloops, size_t whole)
{
	return (size_t)max_connections * sizeof(struct tcp_conn) + tcp_pool_memory(nloops, whole);
}

static size_t tcp_conns_bytes(const struct tcp_config *cfg)
{
	return (size_t)cfg->max_connections * sizeof(struct tcp_conn);
}

/* Connections and requests are paid for now: later there may be no budget left, and a client must
 * still get in. */
static bool tcp_server_take_memory(struct tcp_server *srv)
{
	const struct tcp_config *cfg = &srv->cfg;

	if (!rn_budget_take(cfg->budget, tcp_conns_bytes(cfg))) {
		rn_err(cfg->log, "tcp: %u connections need %zu KiB, more than there is",
		       cfg->max_connections, tcp_conns_bytes(cfg) >> 10);
		return false;
	}
	if (tcp_pool_reserve(srv) < 0) {
		rn_budget_give(cfg->budget, tcp_conns_bytes(cfg));
		return false;
	}
	return true;
}

static void tcp_server_give_memory(struct tcp_server *srv)
{
	tcp_pool_unreserve(srv);
	rn_budget_give(srv->cfg.budget, tcp_conns_bytes(&srv->cfg));
}

int tcp_server_new(const struct tcp_config *cfg, struct tcp_server **out)
{
	if (cfg->nloops > RPC_LOOPS_MAX)
		return -EINVAL;
	struct tcp_server *srv = calloc(1, sizeof(*srv));

	if (!srv)
		return -ENOMEM;
	srv->cfg = *cfg;
	if (!srv->cfg.stall_seconds)
		srv->cfg.stall_seconds = TCP_STALL_SECONDS;
	srv->loops = calloc(cfg->nloops, sizeof(*srv->loops));
	/* Connections are paid for now: later there may be no budget left, and a client must still
	 * get in. */
	if (!srv->loops || !tcp_server_take_memory(srv)) {
		free(srv->loops);
		free(srv);
		return -ENOMEM;
	}
	SLIST_INIT(&srv->listeners);
	for (unsigned i = 0; i < cfg->nloops; i++) {
		int rc = init_loop(srv, i);
		if (rc) {
			free_loops(srv, i + 1);
			tcp_server_give_memory(srv);
			free(srv);
			return rc;
		}
	}
	pthread_mutex_init(&srv->lock, NULL);
	pthread_cond_init(&srv->gone, NULL);
	*out = srv;
	return 0;
}

static void stop_listener(void *arg)
{
	tcp_listener_free(arg);
}

static void stop_listening(struct tcp_server *srv)
{
	struct tcp_listener *l;

	while ((l = SLIST_FIRST(&srv->listeners))) {
		SLIST_REMOVE_HEAD(&srv->listeners, link);
		ev_loop_call(l->loop->ev, stop_listener, l);
	}
}

static void quiet_loop(void *arg)
{
	struct tcp_loop *loop = arg;
	struct tcp_conn *c;

	loop->quiesced = true;
	TAILQ_FOREACH (c, &loop->conns, link)
		event_del(&c->rd);
}

void tcp_server_quiesce(struct tcp_server *srv)
{
	stop_listening(srv);
	for (unsigned i = 0; i < srv->cfg.nloops; i++)
		ev_loop_call(srv->loops[i].ev, quiet_loop, &srv->loops[i]);
}

static void tcp_loop_close_conns(void *arg)
{
	struct tcp_loop *loop = arg;
	struct tcp_conn *c;

	while ((c = TAILQ_FIRST(&loop->conns)))
		tcp_conn_close(c, TCP_CLOSE_PEER, "the server stops");
}

void tcp_server_free(struct tcp_server *srv)
{
	if (!srv)
		return;
	tcp_server_quiesce(srv);
	for (unsigned i = 0; i < srv->cfg.nloops; i++)
		ev_loop_call(srv->loops[i].ev, tcp_loop_close_conns, &srv->loops[i]);
	pthread_mutex_lock(&srv->lock);
	while (srv->live)
		pthread_cond_wait(&srv->gone, &srv->lock);
	pthread_mutex_unlock(&srv->lock);
	free_loops(srv, srv->cfg.nloops);
	tcp_server_give_memory(srv);
	pthread_mutex_destroy(&srv->lock);
	pthread_cond_destroy(&srv->gone);
	free(srv);
}

void tcp_server_stats(struct tcp_server *srv, struct tcp_stats *out)
{
	pthread_mutex_lock(&srv->lock);
	out->connections = srv->live;
	pthread_mutex_unlock(&srv->lock);
	unsigned idle = 0;
	for (unsigned i = 0; i < srv->cfg.nloops; i++)
		idle += tcp_pool_idle(&srv->loops[i]);
	/* Loops go on meanwhile, so the difference could be below zero. */
	unsigned made = atomic_load(&srv->made);
	out->requests = made;
	out->requests_busy = made > idle ? made - idle : 0;
	out->accepted = atomic_load(&srv->n.accepted);
	out->refused = atomic_load(&srv->n.refused);
	out->closed_idle = atomic_load(&srv->n.closed_idle);
	out->closed_error = atomic_load(&srv->n.closed_error);
	out->calls = atomic_load(&srv->n.calls);
	out->replies = atomic_load(&srv->n.replies);
	out->sends = atomic_load(&srv->n.sends);
	out->bytes_in = atomic_load(&srv->n.bytes_in);
	out->bytes_out = atomic_load(&srv->n.bytes_out);
	out->bytes_spliced = atomic_load(&srv->n.bytes_spliced);
	out->waits_memory = atomic_load(&srv->n.waits_memory);
	out->callbacks = atomic_load(&srv->n.callbacks);
	out->stray_replies = atomic_load(&srv->n.stray_replies);
	out->moved = atomic_load(&srv->n.moved);
	out->dialed = atomic_load(&srv->n.dialed);
	out->closed_room = atomic_load(&srv->n.closed_room);
}

struct tls *tcp_server_tls(const struct tcp_server *s)
{
	return s->cfg.tls;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a connection. Closing takes it off the loop and shuts the socket down; the descriptor
 * is closed with the last reference, when the requests in flight have come back.
 */
#include "transport/tcp/tcp_close.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/util.h"
#include "rpc/backchannel.h"
#include "rpc/conns.h"
#include "transport/load.h"
#include "transport/tcp/tcp_conn.h"
#include "transport/tcp/tcp_pool.h"
#include "transport/tcp/tcp_tls.h"
#include "transport/tcp/tcp_write.h"

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

void tcp_conn_hang_up(struct rpc_conn *rc)
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

void tcp_conn_destroy(struct rpc_conn *rc)
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

/* SPDX-License-Identifier: BSD-2-Clause */
/* Lets connections that wait for a request go on, those of needy clients first. On the loop. */
#include "transport/tcp/tcp_feed.h"

#include "lib/util.h"
#include "transport/tcp/tcp_pool.h"
#include "transport/tcp/tcp_read.h"

#define FEED_AT_ONCE 16u /* requests that a client must be able to get before it goes on */

/*
 * True if another connection of the client may go on, besides those that this round has let go on.
 */
static bool tcp_feed_may_go_on(struct tcp_loop *loop, struct rpc_client *client)
{
	struct rpc_loop_share *s = &client->loop[loop->index];

	if (s->feed != loop->feed) {
		s->feed = loop->feed;
		s->fed = 0;
	}
	if (!rn_payload_may_hold(loop->srv->cfg.pool, &client->requests,
				 (s->fed + 1) * FEED_AT_ONCE * TCP_HELD_BYTES))
		return false;
	s->fed++;
	return true;
}

static bool has_none(const struct tcp_conn *c)
{
	return atomic_load_explicit(&c->rpc.client->requests.bytes, memory_order_relaxed) == 0;
}

/* Clients without any request go first: there may be few of them among many that wait for more. */
static void needy_first(struct tcp_loop *loop, struct tcp_conn_list *out)
{
	struct tcp_conn_list others = TAILQ_HEAD_INITIALIZER(others);
	struct tcp_conn *c;

	while ((c = TAILQ_FIRST(&loop->starving))) {
		TAILQ_REMOVE(&loop->starving, c, starving);
		if (has_none(c))
			TAILQ_INSERT_TAIL(out, c, starving);
		else
			TAILQ_INSERT_TAIL(&others, c, starving);
	}
	TAILQ_CONCAT(out, &others, starving);
}

void tcp_feed(struct tcp_loop *loop)
{
	struct tcp_conn_list again = TAILQ_HEAD_INITIALIZER(again);
	struct tcp_conn *c;

	loop->feed++;
	pthread_mutex_lock(&loop->lock);
	loop->hungry = false;
	pthread_mutex_unlock(&loop->lock);
	/* Connections that find nothing go back to the end of loop->starving. */
	needy_first(loop, &again);
	while ((c = TAILQ_FIRST(&again))) {
		TAILQ_REMOVE(&again, c, starving);
		if (tcp_feed_may_go_on(loop, c->rpc.client)) {
			tcp_read_forgive_wait(c);
			c->pause = TCP_GOING;
			tcp_read_resume(c);
		} else {
			TAILQ_INSERT_TAIL(&loop->starving, c, starving);
		}
	}
	if (!TAILQ_EMPTY(&loop->starving))
		tcp_pool_await(loop);
}

void tcp_feed_wake(struct ev_task *task)
{
	struct tcp_loop *loop = rn_container_of(task, struct tcp_loop, wake);

	pthread_mutex_lock(&loop->lock);
	loop->waking = false;
	pthread_mutex_unlock(&loop->lock);
	tcp_feed(loop);
}

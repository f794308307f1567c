/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Room for connections. At max_connections the client with most loses some, the least useful first:
 * strangers in any case; then connections without a complete call for a while; then, if the client
 * has more than its share, any. A byte now and then is no use. Each loop chooses among its own
 * connections, over which those of clients are spread.
 */
#include "transport/tcp/tcp_room.h"

#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "lib/clock.h"
#include "transport/tcp/tcp_close.h"

#define BATCH 8u	/* most connections that one loop closes at a time */
#define BATCH_SHARE 32u /* and most of them as a fraction of its connections */
/* A connection that completed a call this recently is not idle */
#define GRACE_NS (2 * RN_NS_PER_SECOND)

struct candidate {
	struct tcp_conn *conn;
	bool stranger, busy;
	unsigned conns; /* connections of its client */
};

static bool tcp_conn_is_stranger(const struct tcp_conn *c)
{
	const enum rpc_standing standing = rpc_conn_standing(&c->rpc);

	return c->srv->cfg.standing && (standing == RPC_STRANGER || standing == RPC_UNKNOWN);
}

bool tcp_room_is_over(struct tcp_conn *c)
{
	return tcp_conn_is_stranger(c) && rpc_client_conns(c->rpc.client) > TCP_STRANGER_CONNS;
}

/* True if c may be closed, where `fair` is the number of connections a client is entitled to. */
static bool tcp_room_judge(struct tcp_conn *c, uint64_t now, unsigned fair, struct candidate *out)
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
static unsigned tcp_room_rank(struct candidate *best, unsigned n, unsigned max,
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

/* Equal share of each client, counting the one that is not connected yet. */
static unsigned fair_share(struct tcp_server *srv)
{
	return srv->cfg.max_connections / (rpc_clients_count(srv->cfg.clients) + 1);
}

void tcp_room_make(struct ev_task *task)
{
	struct tcp_loop *loop = rn_container_of(task, struct tcp_loop, room);
	const uint64_t now = rn_now_ns();
	const unsigned fair = fair_share(loop->srv);
	struct candidate best[BATCH], one;
	unsigned n = 0, total = 0, max;
	struct tcp_conn *c;

	atomic_store(&loop->making_room, false);
	TAILQ_FOREACH (c, &loop->conns, link) {
		total++;
		if (tcp_room_judge(c, now, fair, &one))
			n = tcp_room_rank(best, n, BATCH, &one);
	}
	max = (unsigned)rn_min(n, total / BATCH_SHARE + 1);
	tcp_count(loop->srv, closed_room, max);
	for (unsigned i = 0; i < max; i++)
		tcp_conn_close(best[i].conn, TCP_CLOSE_IDLE, "of least use when there was no room");
}

void tcp_room_ask(struct tcp_server *srv)
{
	for (unsigned i = 0; i < srv->cfg.nloops; i++)
		if (!atomic_exchange(&srv->loops[i].making_room, true))
			ev_loop_post(srv->loops[i].ev, &srv->loops[i].room);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Room for connections. A connection's buffers are pinned for its life, so their memory is a part
 * of the budget of its own: neither can payload use it up, so that no client gets in any more, nor
 * can connections leave none for payload.
 *
 * Half of it goes to whoever comes first, in pieces of at most an eighth of what is left of that
 * half: with few clients all have the credits of the settings. The other half is for the many: in
 * it, every one of max_connections has an equal part, down to a floor of credits that a client can
 * still work with. Posted Receives cannot be taken back from a queue pair, so a connection keeps
 * what it got; who comes when there is no more room is refused, and the connection that has been
 * idle longest is closed, for the next try.
 */
#include "transport/rdma/rdma_internal.h"

#define ROOM_SHARE 4u	     /* of the whole budget */
#define ROOM_SHARE_LEAST 64u /* where most of it is gone already: a device that came late */
#define EARLY_SHARE 8u	     /* of what is left for those who come first */
#define GRACE_NS (2 * RR_NS) /* a connection that was used this lately is not taken away */

void rr_room_reserve(struct rr_server *srv)
{
	if (srv->conn_memory.max)
		return;
	for (unsigned share = ROOM_SHARE; share <= ROOM_SHARE_LEAST; share *= 2) {
		const size_t bytes = srv->cfg.budget->max / share;

		if (!rn_budget_take(srv->cfg.budget, bytes))
			continue;
		rn_budget_init(&srv->conn_memory, bytes);
		return;
	}
}

void rr_room_release(struct rr_server *srv)
{
	rn_budget_give(srv->cfg.budget, srv->conn_memory.max);
	srv->conn_memory.max = 0;
}

size_t rr_room_for_one(struct rr_server *srv)
{
	const size_t half = srv->conn_memory.max / 2;
	const size_t used = atomic_load(&srv->conn_memory.used);
	const size_t early = used < half ? (half - used) / EARLY_SHARE : 0;
	const size_t equal = half / srv->cfg.max_connections;

	return early > equal ? early : equal;
}

/* More than the id's reference: a request is in work. */
static bool may_go(const struct rr_conn *c, uint64_t now)
{
	return c->state == RR_OPEN && c->rpc.refs == 1 && now > c->active_ns + GRACE_NS;
}

/* Whoever has most connections gives one up first. */
static bool rather(const struct rr_conn *a, const struct rr_conn *b)
{
	const unsigned na = rpc_client_conns(a->rpc.client), nb = rpc_client_conns(b->rpc.client);

	return na != nb ? na > nb : a->active_ns < b->active_ns;
}

void rr_room_make(struct rr_server *srv)
{
	const uint64_t now = rr_now();
	struct rr_conn *c, *goes = NULL;

	pthread_mutex_lock(&srv->lock);
	LIST_FOREACH(c, &srv->conns, link)
	{
		if (may_go(c, now) && (!goes || rather(c, goes)))
			goes = c;
	}
	if (goes)
		rr_conn_notify(goes, RR_EV_CLOSE);
	pthread_mutex_unlock(&srv->lock);
}

/*
 * The hardware retries a Send for ever if the client said so when it connected, and a client that
 * posts no Receives holds what is to be sent. While others wait for memory, a few seconds without
 * progress are enough.
 */
bool rr_room_stalled(struct rr_conn *c, uint64_t now)
{
	const uint64_t since = c->sending_ns;
	const struct rr_config *cfg = &c->srv->cfg;

	if (since == 0 || now < since + RR_PRESSED_SECONDS * RR_NS)
		return false;
	return now > since + cfg->stall_seconds * RR_NS || c->rpc.client->memory.waiting > 0 ||
	       rn_payload_short(cfg->pool);
}

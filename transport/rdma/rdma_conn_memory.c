/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory and places for connections. A connection's buffers are pinned for its life, so connections
 * have a part of the budget of their own: payload cannot use it up and lock new clients out, and
 * connections cannot take the memory of payload. A small part is taken at the start in any case, since
 * slabs of payload are never given back: a device that comes later would find nothing. With a device
 * it grows to a quarter of the budget, or as far as enough is left for payload.
 *
 * Half of it is given out in order of arrival; each connection takes at most an eighth of what is left of
 * that half: with few clients all have the credits of the settings. The other half is divided
 * equally among max_connections, down to the fewest credits that a client can work with. Posted
 * Receives cannot be taken back from a queue pair, so a connection keeps its memory. At
 * max_connections a new one replaces one of the client that has most. If its memory is not free
 * before that one is gone, the new connection is refused and the client tries again.
 */
#include "transport/rdma/rdma_private.h"

#include <errno.h>

#define MEMORY_PART 4u	       /* fraction of the whole budget, where there is a device */
#define MEMORY_PART_LEAST 64u  /* fraction that is taken at the start */
#define MEMORY_PART_SURE 16u   /* fraction without which no device can be served well */
#define MEMORY_PART_OTHERS 16u /* fraction that is left to payload */
#define EARLY_PART 8u	       /* fraction of the rest of the first half for each connection */
#define GRACE_NS (2 * RN_NS_PER_SECOND) /* a connection used this recently is not closed */

size_t rr_conn_memory_part(size_t whole, bool sure)
{
	return whole / (sure ? MEMORY_PART_SURE : MEMORY_PART_LEAST);
}

int rr_conn_memory_reserve_least(struct rr_server *srv)
{
	const size_t bytes = srv->cfg.budget->max / MEMORY_PART_LEAST;

	if (!rn_budget_take(srv->cfg.budget, bytes))
		return -ENOMEM;
	rn_budget_init(&srv->conn_memory, bytes);
	return 0;
}

/* Takes so much more, if enough is left. */
static bool rr_conn_memory_grow(struct rr_server *srv, size_t bytes)
{
	struct rn_budget *whole = srv->cfg.budget;
	const size_t others = whole->max / MEMORY_PART_OTHERS;

	if (!rn_budget_take(whole, bytes + others))
		return false;
	rn_budget_give(whole, others);
	srv->conn_memory.max += bytes;
	return true;
}

void rr_conn_memory_reserve(struct rr_server *srv)
{
	const size_t whole = srv->cfg.budget->max;

	if (srv->room_settled)
		return;
	srv->room_settled = true;
	for (unsigned part = MEMORY_PART; whole / part > srv->conn_memory.max; part *= 2)
		if (rr_conn_memory_grow(srv, whole / part - srv->conn_memory.max))
			break;
	if (srv->conn_memory.max < whole / MEMORY_PART)
		rn_notice(
			srv->cfg.log,
			"rdma: %zu KiB of memory are left for connections, so that many get fewer "
			"requests each than rdma.credits: raise server.memory_max%s",
			srv->conn_memory.max >> 10,
			srv->conn_memory.max == whole / MEMORY_PART_LEAST
				? ", or start the server again now that there is a device"
				: "");
}

void rr_conn_memory_release(struct rr_server *srv)
{
	rn_budget_give(srv->cfg.budget, srv->conn_memory.max);
	srv->conn_memory.max = 0;
}

size_t rr_conn_memory_for_one(struct rr_server *srv)
{
	const size_t half = srv->conn_memory.max / 2;
	const size_t used = atomic_load(&srv->conn_memory.used);
	const size_t early = used < half ? (half - used) / EARLY_PART : 0;
	const size_t equal = half / srv->cfg.max_connections;

	return early > equal ? early : equal;
}

/* A connection that may be closed to make room. */
struct candidate {
	struct rr_conn *conn;
	bool stranger, busy;
	unsigned conns; /* connections of its client */
};

static bool rr_conn_is_stranger(const struct rr_conn *c)
{
	const enum rpc_admission admission = rpc_conn_admission(&c->rpc);

	return c->srv->cfg.admission && (admission == RPC_STRANGER || admission == RPC_UNKNOWN);
}

bool rr_conn_is_over_quota(const struct rr_conn *c)
{
	return rr_conn_is_stranger(c) && rpc_client_conns(c->rpc.client) > RR_STRANGER_CONNS;
}

/* True if c may be closed, where `fair` is the number of connections a client is entitled to. A
 * connection that is not established yet counts as idle after some time. */
static bool rr_conn_judge(struct rr_conn *c, uint64_t now, unsigned fair, struct candidate *out)
{
	*out = (struct candidate){
		.conn = c,
		.stranger = rr_conn_is_stranger(c),
		.busy = c->rpc.refs > 1, /* besides the id's reference: a request is under way */
		.conns = rpc_client_conns(c->rpc.client),
	};
	if ((c->state != RR_OPEN && c->state != RR_ACCEPTING) || (c->events & RR_EV_CLOSE))
		return false;
	if (out->stranger || out->conns > fair)
		return true;
	return !out->busy && now > c->active_ns + GRACE_NS;
}

/* True if a is to be closed before b: strangers first, then the client with most connections. */
static bool rr_candidate_before(const struct candidate *a, const struct candidate *b)
{
	if (a->stranger != b->stranger)
		return a->stranger;
	if (a->conns != b->conns)
		return a->conns > b->conns;
	if (a->busy != b->busy)
		return b->busy;
	return a->conn->active_ns < b->conn->active_ns;
}

bool rr_conn_evict_one(struct rr_server *srv)
{
	const unsigned fair = srv->cfg.max_connections / (rpc_clients_count(srv->cfg.clients) + 1);
	const uint64_t now = rn_now_ns();
	struct candidate best = { .conn = NULL }, one;
	struct rr_conn *c;

	pthread_mutex_lock(&srv->lock);
	LIST_FOREACH (c, &srv->conns, link) {
		if (rr_conn_judge(c, now, fair, &one) &&
		    (!best.conn || rr_candidate_before(&one, &best)))
			best = one;
	}
	if (best.conn) {
		rr_count(srv, closed_room, 1);
		rr_conn_notify(best.conn, RR_EV_CLOSE);
	}
	pthread_mutex_unlock(&srv->lock);
	return best.conn != NULL;
}

/*
 * The hardware retries a Send for ever if the client asked for that when it connected, and a client
 * that posts no Receives keeps the reply's memory in use. While others wait for memory, a few
 * seconds without progress are enough.
 */
bool rr_conn_stalled(struct rr_conn *c, uint64_t now)
{
	const uint64_t since = c->sending_ns;
	const struct rr_config *cfg = &c->srv->cfg;

	if (since == 0 || now < since + RR_PRESSED_SECONDS * RN_NS_PER_SECOND)
		return false;
	return now > since + cfg->stall_seconds * RN_NS_PER_SECOND ||
	       c->rpc.client->memory.waiting > 0 || rn_payload_short(cfg->pool);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections whose time is up: peers that do not read, records that do not come, idle ones. Once a
 * second, on each loop.
 */
#include "transport/tcp/tcp_private.h"

#include "lib/clock.h"
#include "rpc/backchannel.h"

/* The rate of a record on its way in: a peer that holds memory must use it. */

static uint32_t received(const struct tcp_conn *c)
{
	uint32_t got = 0;

	for (unsigned i = 0; c->cur && i < c->cur->rpc->nseg; i++)
		got += c->cur->rpc->seg[i].len;
	return got;
}

void tcp_rate_measure(struct tcp_conn *c, uint64_t now)
{
	c->span_ns = now;
	c->span_got = received(c);
	c->slow = false;
}

void tcp_rate_suspend(struct tcp_conn *c, uint64_t ns)
{
	c->record_ns += ns;
	c->span_ns += ns;
}

static uint64_t tcp_rate_expected(uint64_t ns, uint64_t rate)
{
	return ns / (RN_NS_PER_SECOND / rate);
}

/* True if the record comes too slowly; pressure: others wait for memory. Called about once a second. */
static bool tcp_rate_is_slow(struct tcp_conn *c, uint64_t now, bool pressure)
{
	const uint64_t since = now > c->record_ns ? now - c->record_ns : 0;
	const uint64_t grace = TCP_RATE_GRACE_SECONDS * RN_NS_PER_SECOND;
	const uint32_t got = received(c);

	if (!c->cur)
		return false;
	if (now >= c->span_ns + TCP_PRESSED_SPAN_MS * (RN_NS_PER_SECOND / 1000)) {
		c->slow = got - c->span_got < tcp_rate_expected(now - c->span_ns, TCP_PRESSED_RATE);
		c->span_ns = now;
		c->span_got = got;
	}
	return (pressure && c->slow) ||
	       (since > grace && got < tcp_rate_expected(since - grace, TCP_RATE));
}

#define UNJAM_BATCH 8u /* most records given up in one look */

static bool lately(uint64_t then, uint64_t now)
{
	return then && now < then + 2 * TCP_PRESSURE_SECONDS * RN_NS_PER_SECOND;
}

/* True if a request waits because there is no memory, or waited recently. */
static bool under_pressure(struct tcp_loop *loop, uint64_t now)
{
	if (rn_payload_short(loop->srv->cfg.pool))
		loop->memory_wait_ns = now;
	return lately(loop->memory_wait_ns, now);
}

static bool waits_for_memory(const struct tcp_conn *c)
{
	return c->pause == TCP_WAIT_REQUEST || c->pause == TCP_WAIT_PAYLOAD;
}

/* A client whose own calls wait for memory (its quota may be used up, while there is enough for
 * others) is under pressure too. */
static bool client_under_pressure(struct tcp_conn *c, uint64_t now)
{
	struct rpc_client *client = c->rpc.client;

	if (waits_for_memory(c) ||
	    atomic_load_explicit(&client->memory.waiting, memory_order_relaxed))
		atomic_store_explicit(&client->memory_wait_ns, now, memory_order_relaxed);
	return lately(atomic_load_explicit(&client->memory_wait_ns, memory_order_relaxed), now);
}

/* Nanoseconds; 0: never closed for being idle. */
static uint64_t idle_limit(const struct tcp_conn *c)
{
	uint64_t seconds = c->srv->cfg.idle_seconds;

	if (c->rpc.dialed && (seconds == 0 || seconds > TCP_DIALED_IDLE_SECONDS))
		seconds = TCP_DIALED_IDLE_SECONDS;
	return seconds * RN_NS_PER_SECOND;
}

/*
 * A peer that neither reads its replies nor ends its record in time holds memory that others may
 * need. While they do wait for it, standing still for a few seconds is enough.
 */
static void check_times(struct tcp_conn *c, uint64_t now, bool pressure)
{
	const struct tcp_config *cfg = &c->srv->cfg;

	pressure = client_under_pressure(c, now) || pressure;
	if (turn_waits(&c->turn)) /* the server keeps the peer waiting */
		return;
	uint64_t stall = cfg->stall_seconds * RN_NS_PER_SECOND;
	uint64_t still = pressure ? TCP_PRESSURE_SECONDS * RN_NS_PER_SECOND : stall;
	uint64_t idle = idle_limit(c);

	pthread_mutex_lock(&c->lock);
	unsigned inflight = c->inflight;
	bool stuck =
		!STAILQ_EMPTY(&c->out) && (now > c->out_ns + stall || now > c->moved_ns + still);
	pthread_mutex_unlock(&c->lock);

	bool in_record = (c->cur || c->part) && !waits_for_memory(c);
	/* While reading is paused, the server does not read. */
	bool slow = in_record && c->pause == TCP_GOING && tcp_rate_is_slow(c, now, pressure);

	if (tcp_tls_is_late(c, now))
		tcp_conn_close(c, TCP_CLOSE_ERROR, "the TLS handshake took too long");
	else if (stuck)
		tcp_conn_close(c, TCP_CLOSE_ERROR, "the peer does not read its replies");
	else if (in_record && (now > c->record_ns + stall || slow ||
			       (now > c->record_ns + still && now > c->active_ns + still)))
		tcp_conn_close(c, TCP_CLOSE_ERROR, "a record was not completed in time");
	else if (idle && !inflight && !in_record && c->pause == TCP_GOING &&
		 now > c->active_ns + idle)
		tcp_conn_close(c, TCP_CLOSE_IDLE, "idle");
}

/* Called before any connection is closed, since closing gives memory to the waiting ones. */
static void find_slow_clients(struct tcp_loop *loop, uint64_t now)
{
	struct tcp_conn *c, *next;

	TAILQ_FOREACH (c, &loop->conns, link) {
		if (!turn_waits(&c->turn) && c->pause == TCP_GOING &&
		    tcp_rate_is_slow(c, now, true))
			rpc_client_is_slow(c->rpc.client, now);
	}
	/*
	 * Memory that others wait for must not go from one connection of a slow client to the next.
	 */
	for (c = TAILQ_FIRST(&loop->conns); c; c = next) {
		next = TAILQ_NEXT(c, link);
		if (waits_for_memory(c) && c->cur && rpc_client_was_slow(c->rpc.client, now))
			tcp_conn_close(c, TCP_CLOSE_ERROR, "others need the memory");
	}
}

/* True if the connection holds memory for a part of its record and waits for more, and its client
 * has got none for a while. */
static bool is_jammed(struct tcp_conn *c, uint64_t now)
{
	const unsigned taken =
		atomic_load_explicit(&c->rpc.client->memory.taken, memory_order_relaxed);

	if (c->pause != TCP_WAIT_PAYLOAD || c->cur->rpc->nseg == 1)
		return false;
	if (c->jam_ns < c->wait_ns || c->jam_taken != taken) {
		c->jam_ns = now;
		c->jam_taken = taken;
	}
	return now > c->jam_ns + TCP_PRESSURE_SECONDS * RN_NS_PER_SECOND;
}

/*
 * The jammed record that began last among those of the client that holds most. NULL: there is none.
 */
static struct tcp_conn *most_jamming(struct tcp_loop *loop, uint64_t now)
{
	struct tcp_conn *c, *worst = NULL;
	size_t most = 0;

	TAILQ_FOREACH (c, &loop->conns, link) {
		const size_t held =
			atomic_load_explicit(&c->rpc.client->memory.bytes, memory_order_relaxed);

		if (!is_jammed(c, now))
			continue;
		if (!worst || held > most || (held == most && c->record_ns > worst->record_ns)) {
			worst = c;
			most = held;
		}
	}
	return worst;
}

/*
 * A record that waits alone may itself hold parts of all slabs, so that no large buffer comes together.
 * Smaller ones do as well. If none comes either, the connection is given up in the end: its memory may
 * be all there is.
 */
static void serve_the_last(struct tcp_loop *loop, uint64_t now)
{
	struct tcp_conn *c = most_jamming(loop, now);

	if (!c)
		return;
	if (now > c->jam_ns + loop->srv->cfg.stall_seconds * RN_NS_PER_SECOND / 2)
		tcp_conn_close(c, TCP_CLOSE_ERROR, "there was no memory for the rest of a record");
	else
		tcp_read_take_less(c);
}

/*
 * A record waits for its next piece of memory as long as others do, since the server keeps it
 * waiting. But when such records hold all memory, none of them gets any. Closing one gives memory
 * to others, whose clients are then not jammed any more.
 */
static void unjam(struct tcp_loop *loop, uint64_t now)
{
	struct rn_payload_pool *pool = loop->srv->cfg.pool;
	unsigned jammed = 0;
	struct tcp_conn *c;

	TAILQ_FOREACH (c, &loop->conns, link)
		jammed += is_jammed(c, now);
	if (jammed == 0)
		return;
	for (unsigned i = 0; i <= jammed / 4 && i < UNJAM_BATCH && rn_payload_waiting(pool) > 1;
	     i++) {
		c = most_jamming(loop, now);
		if (!c)
			return;
		tcp_conn_close(c, TCP_CLOSE_ERROR, "records wait for each other's memory");
	}
	if (rn_payload_waiting(pool) == 1)
		serve_the_last(loop, now);
}

void tcp_times_tick(struct tcp_loop *loop)
{
	uint64_t now = rn_now_ns();
	bool pressure = under_pressure(loop, now);
	struct tcp_conn *c, *next;

	if (pressure)
		find_slow_clients(loop, now);
	for (c = TAILQ_FIRST(&loop->conns); c; c = next) {
		next = TAILQ_NEXT(c, link);
		rpc_backchannel_expire(&c->rpc, now);
		check_times(c, now, pressure);
	}
	unjam(loop, now);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading. Bytes at a record's start come through the loop's scratch buffer: the first
 * TCP_HEAD_SIZE of a record are copied to its request, and so is the little payload in scratch. The
 * rest of a long record is received straight into payload buffers. A WRITE's data begins at the
 * start of the first payload buffer, and thus on a page: the request's own bytes end at
 * cfg.bulk_offset.
 *
 * If something is missing (room, a request, a buffer) reading pauses, and the rest of scratch waits
 * in c->pending. A length that the peer declares never sizes anything but a payload buffer, and no
 * more than one class of it at a time.
 *
 * transport/turns.c decides when and how much is read.
 */
#include "transport/tcp/tcp_private.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "rpc/backchannel.h"
#include "rpc/conns.h"

#define GROWTH_FIRST (64u << 10) /* first piece of a record whose length is not known yet */
#define GROWTH 4u		 /* factor by which the next piece is larger */
#define MESSAGE_MIN 8		 /* xid and message type */

enum feed { FEED_MORE, FEED_SHORT, FEED_AWAIT, FEED_PAUSED, FEED_BAD };

static void payload_ready(struct rn_payload_waiter *w, struct rn_payload *p)
{
	struct tcp_conn *c = rn_container_of(w, struct tcp_conn, waiter);

	pthread_mutex_lock(&c->lock);
	c->granted = p;
	tcp_conn_post_locked(c);
	pthread_mutex_unlock(&c->lock);
	rpc_conn_put(&c->rpc); /* the task has a reference of its own */
}

/* True if another call may be in flight; c->lock held. */
static bool has_room_locked(struct tcp_conn *c)
{
	/* A host that is not admitted only gets refusals: one at a time is enough. */
	return tcp_conn_has_room(c) &&
	       !(c->inflight && rpc_conn_admission(&c->rpc) != RPC_ADMITTED &&
		 c->srv->cfg.admission);
}

/* True if another call may be in flight. Else the connection's task runs when one may. */
static bool ask_room(struct tcp_conn *c)
{
	pthread_mutex_lock(&c->lock);
	if (!has_room_locked(c) && !c->blocked && !STAILQ_EMPTY(&c->out)) {
		pthread_mutex_unlock(&c->lock);
		tcp_write_held(c);
		pthread_mutex_lock(&c->lock);
	}
	const bool room = has_room_locked(c);
	c->post_on_reply = !room;
	pthread_mutex_unlock(&c->lock);
	return room;
}

/* Takes a request for the record that begins. */
static enum feed begin_record(struct tcp_conn *c)
{
	if (c->loop->finishing) {
		c->pause = TCP_WAIT_END;
		return FEED_PAUSED;
	}
	if (!ask_room(c)) {
		c->pause = TCP_WAIT_ROOM;
		return FEED_PAUSED;
	}
	struct tcp_req *t = tcp_pool_get(c->loop, c->rpc.client);
	if (!t) {
		c->pause = TCP_WAIT_REQUEST;
		tcp_pool_starve(c);
		return FEED_PAUSED;
	}
	t->rpc->seg[0] = (struct rpc_seg){ .base = t->head };
	t->rpc->nseg = 1;
	c->cur = t;
	if (!c->part)
		c->record_ns = rn_now_ns();
	c->part = false;
	tcp_rate_measure(c, rn_now_ns());
	return FEED_MORE;
}

static size_t room_left(const struct tcp_req *t)
{
	const struct rpc_seg *s = &t->rpc->seg[t->rpc->nseg - 1];

	return (t->rpc->nseg == 1 ? TCP_HEAD_SIZE : s->payload->size) - s->len;
}

/* Offset in the full head at which the first payload buffer begins. */
static uint32_t split_at(const struct tcp_conn *c, const struct tcp_req *t)
{
	const struct tcp_config *cfg = &c->srv->cfg;
	size_t off =
		cfg->bulk_offset && !c->rpc.dialed ? cfg->bulk_offset(t->head, TCP_HEAD_SIZE) : 0;

	return off && off < TCP_HEAD_SIZE ? (uint32_t)off : TCP_HEAD_SIZE;
}

static size_t payload_want(const struct tcp_conn *c, uint32_t moved)
{
	size_t want = (size_t)c->rec.frag_left + moved;

	if (!c->rec.last) {
		/* Few pieces, however the peer fragments its record, and not much more than has
		 * come. */
		const struct rpc_request *r = c->cur->rpc;
		size_t rest = c->rec.max - c->rec.total + want;
		size_t least = r->nseg == 1 ? GROWTH_FIRST
					    : (size_t)GROWTH * r->seg[r->nseg - 1].payload->size;
		if (want < least)
			want = rn_min(least, rest);
	}
	return rn_min(want, RN_PAYLOAD_MAX);
}

static void tcp_read_add_payload(struct tcp_req *t, struct rn_payload *p, uint32_t moved)
{
	struct rpc_request *r = t->rpc;

	if (moved) {
		r->seg[0].len -= moved;
		memcpy(p->data, t->head + r->seg[0].len, moved);
	}
	r->seg[r->nseg++] = (struct rpc_seg){ .base = p->data, .len = moved, .payload = p };
}

/* A client that was slow with memory others waited for may not take the last half of it for a
 * while. */
static bool may_take_memory(const struct tcp_conn *c)
{
	return !rpc_client_was_slow(c->rpc.client, rn_now_ns()) ||
	       rn_payload_is_ample(c->srv->cfg.pool);
}

/* FEED_MORE if the client may send calls of that length now. Paused while its admission is not
 * known, or for memory. */
static enum feed may_be_long(struct tcp_conn *c, size_t want)
{
	const enum rpc_admission admission = tcp_conn_admission(c);
	const bool small = want <= TCP_STRANGER_RECORD;

	if (small || c->rpc.dialed || (admission == RPC_ADMITTED && may_take_memory(c)))
		return FEED_MORE;
	if (admission == RPC_STRANGER || admission == RPC_RECENT)
		return admission == RPC_RECENT && want <= GROWTH_FIRST ? FEED_MORE : FEED_BAD;
	c->pause = TCP_WAIT_REQUEST;
	c->wait_ns = rn_now_ns();
	tcp_pool_starve(c);
	return FEED_PAUSED;
}

static void wake_at(struct tcp_conn *c, size_t bytes)
{
	const int n = (int)bytes;

	(void)setsockopt(c->fd, SOL_SOCKET, SO_RCVLOWAT, &n, sizeof(n));
}

/*
 * FEED_MORE if there are enough bytes to put into new memory: n at hand, more in the socket. Else
 * the kernel wakes the loop when they are there, when no more will come, or when it is short of
 * memory.
 */
static enum feed enough_is_there(struct tcp_conn *c, size_t n)
{
	const size_t want = rn_min(c->rec.frag_left, TCP_LOWAT);
	const size_t need = want - rn_min(want, c->io->held);
	int queued = 0;

	if (c->arrived || n >= need || ioctl(c->fd, FIONREAD, &queued) < 0 ||
	    n + (size_t)queued >= need)
		return FEED_MORE;
	wake_at(c, need - n);
	c->awaits = true;
	return FEED_AWAIT;
}

/* True if the message has that direction. */
static bool is_a(const struct tcp_req *t, enum rpc_msg_type type)
{
	const uint8_t word[4] = { 0, 0, 0, (uint8_t)type };

	return t->rpc->seg[0].len >= MESSAGE_MIN && !memcmp(t->head + 4, word, sizeof(word));
}

/*
 * A buffer that is there now: of the size wanted, or a smaller one for a record that holds buffers
 * already. Such a record may be the reason why there is no larger one: it holds parts of all slabs,
 * and nobody else holds any.
 */
static struct rn_payload *take_now(struct tcp_conn *c, size_t want)
{
	struct rn_payload_pool *pool = c->srv->cfg.pool;
	struct rn_payload_account *account = &c->rpc.client->memory;
	struct rn_payload *p = rn_payload_get_for(pool, want, account);

	if (c->cur->rpc->nseg == 1)
		return p;
	for (size_t size = want; !p && size > GROWTH_FIRST;) {
		size = rn_max(size / GROWTH, GROWTH_FIRST);
		p = rn_payload_get_for(pool, size, account);
	}
	return p;
}

/* NULL: the connection's task gets it later, and reading is paused. */
static struct rn_payload *wait_for_payload(struct tcp_conn *c, size_t want)
{
	struct tcp_server *srv = c->srv;
	struct rn_payload *p;

	rpc_conn_ref(&c->rpc);
	c->waiter.ready = payload_ready;
	c->waiter.account = &c->rpc.client->memory;
	p = rn_payload_get_or_wait(srv->cfg.pool, want, &c->waiter);
	if (p) {
		rpc_conn_put(&c->rpc);
		return p;
	}
	tcp_count(srv, waits_memory, 1);
	if (rn_payload_short(srv->cfg.pool))
		c->loop->memory_wait_ns = rn_now_ns();
	c->pause = TCP_WAIT_PAYLOAD;
	c->wait_ns = rn_now_ns();
	return NULL;
}

void tcp_read_take_less(struct tcp_conn *c)
{
	const uint64_t since = c->wait_ns;

	if (rn_payload_wait_cancel(c->srv->cfg.pool, &c->waiter) < 0)
		return; /* its buffer comes at this moment */
	rpc_conn_put(&c->rpc);
	struct rn_payload *p = take_now(c, payload_want(c, 0));
	if (!p)
		p = wait_for_payload(c, payload_want(c, 0));
	c->wait_ns = since;
	if (!p)
		return;
	pthread_mutex_lock(&c->lock);
	c->granted = p;
	pthread_mutex_unlock(&c->lock);
	tcp_read_resume(c);
}

/* True if the message may be longer than the head: a call of the client, or the reply that a call over
 * the server's own connection waits for. */
static bool tcp_read_may_outgrow_head(struct tcp_conn *c, const struct tcp_req *t)
{
	uint32_t xid;

	if (!c->rpc.dialed)
		return !is_a(t, RPC_REPLY);
	memcpy(&xid, t->head, sizeof(xid));
	return is_a(t, RPC_REPLY) && rpc_backchannel_awaits(&c->rpc, ntohl(xid));
}

/* Opens a buffer for the bytes to come, n of which are at hand. */
static enum feed open_payload(struct tcp_conn *c, size_t n)
{
	struct tcp_req *t = c->cur;
	struct rn_payload *p = tcp_take_granted(c);
	uint32_t moved = t->rpc->nseg == 1 ? TCP_HEAD_SIZE - split_at(c, t) : 0;

	if (t->rpc->nseg == RPC_SEGS_MAX || !tcp_read_may_outgrow_head(c, t)) {
		rn_payload_put(p);
		return FEED_BAD;
	}
	if (!p) {
		enum feed f = may_be_long(c, payload_want(c, moved));
		if (f == FEED_MORE)
			f = enough_is_there(c, n);
		if (f != FEED_MORE)
			return f;
		p = take_now(c, payload_want(c, moved));
	}
	if (!p) {
		p = wait_for_payload(c, payload_want(c, moved));
		if (!p)
			return FEED_PAUSED;
	}
	c->arrived = false;
	tcp_read_add_payload(t, p, moved);
	return FEED_MORE;
}

_Static_assert(TCP_HEAD_SIZE == RPC_CALLBACK_REPLY, "a client's reply to a call lies in the head");

/* A reply to a call of this server. A client that has never been called sends none. */
static enum feed tcp_read_take_reply(struct tcp_conn *c, struct tcp_req *t)
{
	const enum rpc_reply_use use =
		rpc_backchannel_long_reply(&c->rpc, t->rpc->seg, t->rpc->nseg);

	c->cur = NULL;
	tcp_pool_put(c->loop, t);
	tcp_conn_worked(c, TURN_WORK);
	if (use == RPC_REPLY_UNEXPECTED)
		return FEED_BAD;
	if (use == RPC_REPLY_STRAY)
		tcp_count(c->srv, stray_replies, 1);
	else
		c->useful_ns = rn_now_ns();
	return FEED_MORE;
}

static enum feed tcp_read_submit(struct tcp_conn *c)
{
	struct tcp_server *srv = c->srv;
	struct tcp_req *t = c->cur;

	tcp_record_start(&c->rec, c->max_record);
	if (t && is_a(t, RPC_REPLY))
		return tcp_read_take_reply(c, t);
	/* Anything else ends the connection before it costs a worker's time. */
	if (!t || !is_a(t, RPC_CALL) || c->rpc.dialed)
		return FEED_BAD;
	c->cur = NULL;
	if (tcp_tls_is_probe(c, t)) {
		tcp_tls_answer(c, t);
		return FEED_PAUSED;
	}
	rpc_conn_ref(&c->rpc);
	t->rpc->conn = &c->rpc;
	t->rpc->reply_max = TCP_REPLY_MAX;
	t->rpc->arrived_ns = c->useful_ns = rn_now_ns();
	pthread_mutex_lock(&c->lock);
	c->inflight++;
	rpc_conn_begin(&c->rpc, t->rpc);
	pthread_mutex_unlock(&c->lock);
	tcp_count(srv, calls, 1);
	tcp_conn_worked(c, TURN_WORK);
	srv->cfg.executor.submit(srv->cfg.executor.ctx, t->rpc);
	return FEED_MORE;
}

/* Copies up to n bytes to their place in the request; returns how many. There is room. */
static size_t tcp_read_place(struct tcp_conn *c, const uint8_t *p, size_t n)
{
	struct tcp_req *t = c->cur;
	struct rpc_seg *s = &t->rpc->seg[t->rpc->nseg - 1];
	size_t len = rn_min(rn_min(n, c->rec.frag_left), room_left(t));

	memcpy(s->base + s->len, p, len);
	s->len += (uint32_t)len;
	tcp_record_took(&c->rec, (uint32_t)len);
	return len;
}

/* Uses n bytes at *pp, moving it; submits the records that they complete. */
static enum feed feed(struct tcp_conn *c, const uint8_t **pp, size_t *n)
{
	enum feed f;

	for (;;) {
		switch (tcp_record_feed(&c->rec, pp, n)) {
		case TCP_RECORD_MARK:
			return FEED_MORE;
		case TCP_RECORD_END:
			f = tcp_read_submit(c);
			break;
		case TCP_RECORD_DATA:
			if (!c->cur) {
				/* Too few bytes are not worth a request: more may never come. */
				if (*n < rn_min(c->rec.frag_left, TCP_HEAD_SIZE))
					return *n ? FEED_SHORT : FEED_MORE;
				f = begin_record(c);
			} else if (!room_left(c->cur)) {
				f = open_payload(c, *n);
			} else if (*n) {
				size_t len = tcp_read_place(c, *pp, *n);
				*pp += len;
				*n -= len;
				f = FEED_MORE;
			} else {
				return FEED_MORE;
			}
			break;
		default:
			return FEED_BAD;
		}
		if (f != FEED_MORE)
			return f;
	}
}

/* Keeps n bytes for later. */
static int tcp_read_keep_pending(struct tcp_conn *c, const uint8_t *p, size_t n)
{
	uint8_t *copy = NULL;

	if (n) {
		copy = malloc(n);
		if (!copy)
			return -ENOMEM;
		memcpy(copy, p, n);
	}
	c->pending = copy;
	c->pending_len = (uint32_t)n;
	return 0;
}

/* Calls feed() and acts on its answer. 0, or -1: paused or closed. */
static int use_input(struct tcp_conn *c, const uint8_t *p, size_t n)
{
	enum feed f = feed(c, &p, &n);

	if (f == FEED_MORE)
		return 0;
	if (f == FEED_BAD) {
		tcp_conn_close(c, TCP_CLOSE_ERROR, "not an RPC call, or a record over the limits");
		return -1;
	}
	if (tcp_read_keep_pending(c, p, n) < 0) {
		tcp_conn_close(c, TCP_CLOSE_ERROR, "no memory");
		return -1;
	}
	if (f == FEED_AWAIT)
		return -1;
	if (f == FEED_PAUSED) {
		c->part = false; /* the record's time limit is suspended */
		event_del(&c->rd);
		return -1;
	}
	if (!c->part)
		c->record_ns = rn_now_ns();
	c->part = true;
	return 0;
}

/* The peer sends no more. Its calls are still answered. */
static void end_of_stream(struct tcp_conn *c)
{
	event_del(&c->rd);
	tcp_drop_input(c);
	pthread_mutex_lock(&c->lock);
	c->eof = true;
	bool over = !c->inflight;
	c->post_on_reply = true; /* run the task when the last reply is out */
	pthread_mutex_unlock(&c->lock);
	rpc_backchannel_close(&c->rpc); /* nobody will reply */
	if (over)
		tcp_conn_close(c, TCP_CLOSE_PEER, "end of stream");
}

/* Receives, with error handling. 0: stop for this turn, or for good. */
static size_t receive_some(struct tcp_conn *c, uint8_t *to, size_t ask)
{
	const ssize_t got = c->io->recv(c, to, ask);

	if (got == 0)
		end_of_stream(c);
	else if (got < 0 && got != -EAGAIN && got != -EINTR)
		tcp_conn_close(c, TCP_CLOSE_PEER, "connection lost");
	if (got <= 0)
		return 0;
	tcp_count(c->srv, bytes_in, (uint64_t)got);
	rpc_tally(&c->rpc.tally.bytes_in, (uint64_t)got);
	tcp_conn_worked(c, (uint64_t)got);
	return (size_t)got;
}

/* One receive into the payload buffer in hand. Bytes, or 0: stop for this turn. */
static size_t receive_direct(struct tcp_conn *c)
{
	struct tcp_req *t = c->cur;
	struct rpc_seg *s = &t->rpc->seg[t->rpc->nseg - 1];
	size_t ask = rn_min(room_left(t), c->rec.frag_left);
	size_t got = receive_some(c, s->base + s->len, ask);

	if (!got)
		return 0;
	s->len += (uint32_t)got;
	tcp_record_took(&c->rec, (uint32_t)got);
	return use_input(c, NULL, 0) == 0 && got == ask ? got : 0;
}

static size_t scratch_size(struct tcp_conn *c)
{
	return rpc_conn_admission(&c->rpc) == RPC_ADMITTED || !c->srv->cfg.admission
		       ? TCP_SCRATCH_SIZE
		       : TCP_STRANGER_SCRATCH;
}

/* One receive into scratch, behind what is pending. Bytes, or 0: stop for this turn. */
static size_t receive_scratch(struct tcp_conn *c)
{
	uint8_t *scratch = c->loop->scratch;
	size_t have = c->pending_len;
	size_t ask = scratch_size(c) - have; /* have is less than TCP_HEAD_SIZE */
	size_t got = receive_some(c, scratch + have, ask);

	if (!got)
		return 0;
	if (have)
		memcpy(scratch, c->pending, have);
	free(c->pending);
	c->pending = NULL;
	c->pending_len = 0;
	return use_input(c, scratch, have + got) == 0 && got == ask ? got : 0;
}

static size_t tcp_read_receive(struct tcp_conn *c)
{
	bool direct = c->cur && c->cur->rpc->nseg > 1 && c->rec.frag_left && room_left(c->cur);

	return direct ? receive_direct(c) : receive_scratch(c);
}

/* Uses the bytes that a pause left. 0, or -1: paused again, or closed. */
static int use_pending(struct tcp_conn *c)
{
	uint8_t *buf = c->pending;
	size_t n = c->pending_len;

	c->pending = NULL;
	c->pending_len = 0;
	int rc = use_input(c, buf, n);
	free(buf);
	return rc;
}

void tcp_read_pending(struct tcp_conn *c)
{
	if (c->open && c->pause == TCP_GOING && !c->eof && !c->awaits && c->io->pending &&
	    c->io->pending(c))
		event_active(&c->rd, EV_READ, 1);
}

void tcp_read_some(struct tcp_conn *c, uint64_t until)
{
	if (c->pause == TCP_SHAKING && c->open)
		tcp_tls_step(c);
	if (c->pause != TCP_GOING || c->eof || !c->open || (c->awaits && !c->arrived))
		return;
	if (c->awaits) {
		c->awaits = false;
		wake_at(c, 1);
		if (use_pending(c) < 0)
			return;
	}
	if (!event_pending(&c->rd, EV_READ, NULL)) {
		const int rc = use_pending(c);

		/* The event tells a record that awaits its data when they are there. */
		if (rc == 0 || c->awaits)
			event_add(&c->rd, NULL);
		if (rc < 0)
			return;
	}
	while (c->loop->ev->work < until && tcp_read_receive(c) > 0)
		;
	tcp_read_pending(c);
}

void tcp_read_ready(evutil_socket_t fd, short what, void *arg)
{
	struct tcp_conn *c = arg;

	(void)fd;
	(void)what;
	c->active_ns = rn_now_ns();
	c->arrived = c->awaits;
	TAILQ_REMOVE(&c->loop->conns, c, link);
	TAILQ_INSERT_TAIL(&c->loop->conns, c, link);
	tcp_conn_take_turn(c);
}

void tcp_read_forgive_wait(struct tcp_conn *c)
{
	const uint64_t now = rn_now_ns();

	if (!c->cur)
		return;
	tcp_rate_measure(c, now);
	c->record_ns += now - c->wait_ns;
}

void tcp_read_resume(struct tcp_conn *c)
{
	if (c->eof || !c->open || c->loop->quiesced)
		return;
	if (c->pause == TCP_WAIT_PAYLOAD) {
		pthread_mutex_lock(&c->lock);
		bool have = c->granted;
		pthread_mutex_unlock(&c->lock);
		if (!have)
			return;
		tcp_read_forgive_wait(c);
		if (c->cur->rpc->nseg == 1)
			c->record_ns = rn_now_ns();
		c->pause = TCP_GOING;
	}
	if (c->pause == TCP_GOING && !event_pending(&c->rd, EV_READ, NULL))
		tcp_conn_take_turn(c);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replies on the stream: record marks, the pieces of a reply, several replies in one send, and the queue of what is to be sent.
 *
 * tcp_reply queues a reply and sends what is queued at once, on the thread that calls it,
 * as many replies as possible in one send. Only one thread is in sendmsg (c->sending), without the
 * lock; it sends what others queue meanwhile. A full socket makes the loop wait for room
 * (c->blocked). A request counts against its connection's limit until its reply is out, so that the
 * queue is bounded by max_requests; with TCP_OUT_MAX bytes in the queue no further calls are read.
 *
 * Replies of the loop's own thread are held back until it has done the work that waits, so that
 * they leave by one send from the connection's task. If a piece of that work lasts, another thread
 * gets the loop, and the task with it. A reply of another thread is sent directly, with those that
 * are held back before it.
 */
#include "transport/tcp/tcp_private.h"

#include <errno.h>
#include <sys/socket.h>

#include "lib/clock.h"
#include "lib/pipe.h"
#include "lib/util.h"
#include "rpc/conns.h"

/* Bytes above which a send takes no further reply: more would not make it cheaper. */
#define PARCEL_BYTES (128u << 10)
/* The mark, the tail, and for every bulk item: the head before it, the item, its pad. */
#define IOV_MAX_REPLY (2 + 3 * XDR_BULKS_MAX)

_Static_assert(TCP_PARCEL_IOV >= IOV_MAX_REPLY, "a parcel takes any reply");

/* Prepares a reply for the queue: its record mark and its size. */
static void tcp_send_prepare(struct tcp_req *t)
{
	const size_t len = xdr_out_total(&t->rpc->out);

	rn_put32(t->mark, 0x80000000u | (uint32_t)len);
	t->size = sizeof(t->mark) + len;
}

/* Position of packing in a reply. */
struct packing {
	struct tcp_parcel *to;
	size_t skip; /* bytes to leave out, as they were sent before */
};

static void tcp_send_add_piece(struct packing *p, const void *base, size_t len)
{
	struct tcp_parcel *to = p->to;

	if (p->skip >= len) {
		p->skip -= len;
		return;
	}
	to->iov[to->niov++] = (struct iovec){ (uint8_t *)base + p->skip, len - p->skip };
	to->bytes += len - p->skip;
	p->skip = 0;
}

/* Adds the pipe of an item, or ends the parcel before it. False: nothing may be added behind it. */
static bool tcp_send_add_pipe(struct packing *p, const struct tcp_req *t,
			      const struct xdr_out_bulk *b)
{
	struct tcp_parcel *to = p->to;

	if (p->skip >= b->len) {
		p->skip -= b->len;
		return true;
	}
	to->more = true;
	if (to->niov == 0) {
		to->pipe = b->pipe;
		to->bytes = b->pipe->bytes;
		to->more = t->sent + to->bytes < t->size;
	}
	return false;
}

/* Adds a bulk item and its pad. False: nothing may be added behind it. */
static bool add_item(struct packing *p, const struct tcp_req *t, const struct xdr_out_bulk *b)
{
	static const uint8_t zeros[4];

	if (b->len == 0)
		return true;
	if (b->pipe && !tcp_send_add_pipe(p, t, b))
		return false;
	if (!b->pipe)
		tcp_send_add_piece(p, b->payload->data + b->off, b->len);
	tcp_send_add_piece(p, zeros, rn_xdr_pad(b->len));
	return true;
}

/* Adds the reply without the first t->sent bytes. False: nothing may be added behind it. */
static bool add_reply(struct tcp_parcel *to, const struct tcp_req *t)
{
	const struct xdr_out *x = &t->rpc->out;
	struct packing p = { to, t->sent };
	size_t done = 0; /* bytes of the head used so far */

	tcp_send_add_piece(&p, t->mark, sizeof(t->mark));
	for (unsigned i = 0; i < x->nbulks; i++) {
		tcp_send_add_piece(&p, x->base + done, x->bulk[i].at - done);
		done = x->bulk[i].at;
		if (!add_item(&p, t, &x->bulk[i]))
			return false;
	}
	tcp_send_add_piece(&p, x->base + done, x->used - done);
	return true;
}

/* True if the parcel has room for the reply. */
static bool tcp_parcel_fits(const struct tcp_parcel *p, const struct tcp_req *t)
{
	const unsigned pieces = 2 + 3 * t->rpc->out.nbulks;

	return p->niov == 0 ||
	       (p->niov + pieces <= TCP_PARCEL_IOV && p->bytes + t->size - t->sent <= PARCEL_BYTES);
}

/* Packs the unsent rest of the first replies of a queue, which is not empty. */
static void tcp_send_pack(const struct tcp_req_list *out, struct tcp_parcel *p)
{
	const struct tcp_req *t = STAILQ_FIRST(out);

	p->niov = 0;
	p->pipe = NULL;
	p->bytes = 0;
	p->more = false;
	while (t && tcp_parcel_fits(p, t) && add_reply(p, t))
		t = STAILQ_NEXT(t, link);
}

static ssize_t send_pieces(struct tcp_conn *c, const struct tcp_parcel *p)
{
	const struct msghdr m = { .msg_iov = (struct iovec *)p->iov, .msg_iovlen = p->niov };
	const int flags = MSG_NOSIGNAL | MSG_DONTWAIT | (p->more ? MSG_MORE : 0);
	ssize_t n;

	do
		n = sendmsg(c->fd, &m, flags);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
	return n;
}

ssize_t tcp_send_plain(struct tcp_conn *c, const struct tcp_parcel *p)
{
	return p->pipe ? (ssize_t)rn_pipe_send(p->pipe, c->fd, p->more) : send_pieces(c, p);
}

/* Sends the parcel. Bytes taken by the socket, 0 if it is full, or -errno. */
static ssize_t tcp_send_parcel(struct tcp_conn *c, const struct tcp_parcel *p)
{
	const ssize_t n = c->io->send(c, p);

	if (n > 0) {
		tcp_count(c->srv, sends, 1);
		tcp_count(c->srv, bytes_out, (uint64_t)n);
		rpc_tally(&c->rpc.tally.bytes_out, (uint64_t)n);
		if (p->pipe)
			tcp_count(c->srv, bytes_spliced, (uint64_t)n);
	}
	return n;
}

/* Ends n requests that are back in the pool: gives their room and their references back. */
static void tcp_write_finish(struct tcp_conn *c, unsigned n)
{
	pthread_mutex_lock(&c->lock);
	c->inflight -= n;
	if (c->post_on_reply && !c->closed && (!c->eof || !c->inflight)) {
		c->post_on_reply = c->eof;
		tcp_conn_post_locked(c);
	}
	pthread_mutex_unlock(&c->lock);
	while (n--)
		rpc_conn_put(&c->rpc);
}

static void finish_list(struct tcp_conn *c, struct tcp_req_list *list)
{
	struct tcp_req *t;
	unsigned n = 0;

	while ((t = STAILQ_FIRST(list))) {
		STAILQ_REMOVE_HEAD(list, link);
		tcp_pool_put(c->loop, t);
		n++;
	}
	if (n > 0)
		tcp_write_finish(c, n);
}

/* c->lock is held. */
static void end_unanswered(struct tcp_conn *c, struct rpc_request *req)
{
	rpc_conn_end(&c->rpc, req);
	atomic_fetch_add_explicit(&c->rpc.tally.dropped, 1, memory_order_relaxed);
}

static void finish_one(struct tcp_conn *c, struct tcp_req *t)
{
	tcp_pool_put(c->loop, t);
	tcp_write_finish(c, 1);
}

/* Takes the replies that are out off the queue, after n bytes of it were sent; c->lock is held. */
static void took_locked(struct tcp_conn *c, size_t n, struct tcp_req_list *done)
{
	struct tcp_req *t;

	c->moved_ns = rn_now_ns();
	while ((t = STAILQ_FIRST(&c->out))) {
		const size_t part = rn_min(n, t->size - t->sent);

		t->sent += part;
		n -= part;
		if (t->sent < t->size)
			return;
		tcp_count(c->srv, replies, 1);
		STAILQ_REMOVE_HEAD(&c->out, link);
		c->out_bytes -= t->size;
		STAILQ_INSERT_TAIL(done, t, link);
		c->out_ns = c->moved_ns;
		if (c->window < c->srv->cfg.max_requests)
			c->window++;
	}
}

/*
 * Sends queued replies, up to TCP_WRITE_QUANTUM; c->lock is held, c->sending is not set. Returns
 * the bytes that went out; replies that are out go to done. The others are left to the loop,
 * because the socket is full, it broke, or other connections have their turn.
 */
static size_t drain_locked(struct tcp_conn *c, struct tcp_req_list *done)
{
	unsigned quota = TCP_WRITE_QUANTUM;
	struct tcp_parcel parcel;
	size_t sent = 0;

	c->sending = true;
	while (!c->closed && !c->broken && quota > 0 && !STAILQ_EMPTY(&c->out)) {
		tcp_send_pack(&c->out, &parcel);
		pthread_mutex_unlock(&c->lock);
		ssize_t n = tcp_send_parcel(c, &parcel);
		pthread_mutex_lock(&c->lock);
		if (n < 0)
			c->broken = true;
		if (n <= 0)
			break;
		sent += (size_t)n;
		quota -= !parcel.more;
		took_locked(c, (size_t)n, done);
		if ((size_t)n < parcel.bytes) /* the socket is full */
			break;
	}
	c->sending = false;
	if (c->closed) {
		STAILQ_CONCAT(done, &c->out);
	} else if (c->broken || !STAILQ_EMPTY(&c->out)) {
		c->blocked = !c->broken;
		c->window = (unsigned)rn_min(c->window, TCP_WINDOW);
		tcp_conn_post_locked(c);
	}
	return sent;
}

/* c->lock is held. */
static bool tcp_write_may_send(const struct tcp_conn *c)
{
	return !c->sending && !c->silent;
}

/* Sends queued replies, unless another thread does so or the socket is full. Bytes that went out. */
static size_t send_queued(struct tcp_conn *c)
{
	struct tcp_req_list done = STAILQ_HEAD_INITIALIZER(done);
	size_t sent = 0;

	pthread_mutex_lock(&c->lock);
	if (tcp_write_may_send(c) && !c->blocked && !STAILQ_EMPTY(&c->out))
		sent = drain_locked(c, &done);
	pthread_mutex_unlock(&c->lock);
	finish_list(c, &done);
	return sent;
}

void tcp_write_held(struct tcp_conn *c)
{
	tcp_conn_worked(c, send_queued(c));
}

void tcp_write_ready(evutil_socket_t fd, short what, void *arg)
{
	struct tcp_conn *c = arg;

	(void)fd;
	(void)what;
	c->writable = true;
	tcp_conn_take_turn(c);
}

void tcp_write_some(struct tcp_conn *c)
{
	struct tcp_req_list done = STAILQ_HEAD_INITIALIZER(done);

	c->writable = false;
	pthread_mutex_lock(&c->lock);
	c->blocked = false;
	if (tcp_write_may_send(c))
		tcp_conn_worked(c, drain_locked(c, &done));
	pthread_mutex_unlock(&c->lock);
	finish_list(c, &done);
}

void tcp_write_discard(struct tcp_conn *c)
{
	struct tcp_req_list done = STAILQ_HEAD_INITIALIZER(done);

	pthread_mutex_lock(&c->lock);
	if (!c->sending) /* a thread that is sending discards afterwards */
		STAILQ_CONCAT(&done, &c->out);
	pthread_mutex_unlock(&c->lock);
	finish_list(c, &done);
}

/* True if queued replies wait for the connection's task; c->lock held. */
static bool held_back(const struct tcp_conn *c)
{
	return ev_loop_is_current(c->loop->ev) && c->out_bytes < TCP_HELD_MAX;
}

void tcp_reply(struct rpc_request *req)
{
	struct tcp_req *t = req->transport_private;
	struct tcp_conn *c = rn_container_of(req->conn, struct tcp_conn, rpc);
	struct tcp_req_list done = STAILQ_HEAD_INITIALIZER(done);

	tcp_send_prepare(t);
	rpc_conn_ref(&c->rpc); /* finish gives back the request's reference */
	pthread_mutex_lock(&c->lock);
	rpc_conn_end(&c->rpc, req);
	if (c->closed) {
		STAILQ_INSERT_TAIL(&done, t, link);
	} else {
		if (STAILQ_EMPTY(&c->out))
			c->out_ns = c->moved_ns = rn_now_ns();
		STAILQ_INSERT_TAIL(&c->out, t, link);
		c->out_bytes += t->size;
		if (held_back(c))
			tcp_conn_post_locked(c);
		else if (tcp_write_may_send(c) && !c->blocked)
			drain_locked(c, &done);
	}
	pthread_mutex_unlock(&c->lock);
	finish_list(c, &done);
	rpc_conn_put(&c->rpc);
}

/*
 * A call to the client goes the way of a reply, in a request that comes back to the pool when it is
 * sent.
 */
int tcp_call(struct rpc_conn *rc, const uint8_t *msg, uint32_t len)
{
	struct tcp_conn *c = rn_container_of(rc, struct tcp_conn, rpc);
	struct tcp_req *t;

	rpc_conn_ref(rc);
	pthread_mutex_lock(&c->lock);
	c->inflight++; /* from now on it keeps its loop */
	pthread_mutex_unlock(&c->lock);
	t = tcp_pool_get_from_afar(c->loop, rc->client);
	if (!t) {
		tcp_write_finish(c, 1);
		return -ENOMEM;
	}
	xdr_put_fixed(&t->rpc->out, msg, len);
	t->rpc->conn = rc;
	tcp_count(c->srv, callbacks, 1);
	tcp_reply(t->rpc);
	return 0;
}

void tcp_drop(struct rpc_request *req)
{
	struct tcp_conn *c = rn_container_of(req->conn, struct tcp_conn, rpc);

	pthread_mutex_lock(&c->lock);
	end_unanswered(c, req);
	pthread_mutex_unlock(&c->lock);
	finish_one(c, req->transport_private);
}

/* A stream has no way to refuse one message alone. */
void tcp_give_up(struct rpc_request *req)
{
	struct tcp_conn *c = rn_container_of(req->conn, struct tcp_conn, rpc);

	pthread_mutex_lock(&c->lock);
	end_unanswered(c, req);
	c->broken = true;
	if (!c->closed)
		tcp_conn_post_locked(c);
	pthread_mutex_unlock(&c->lock);
	finish_one(c, req->transport_private);
}

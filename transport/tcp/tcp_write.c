/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replies. tcp_reply runs on a worker's thread: with nothing queued, the worker sends at once; else
 * the reply is queued. Only one thread is in sendmsg (c->sending), without the lock. A full socket
 * makes the loop wait for room (c->blocked). A request counts against its connection's limit until
 * its reply is out, so that the queue is bounded by max_requests; with TCP_OUT_MAX bytes in the
 * queue no further calls are read.
 */
#include "transport/tcp/tcp_write.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "lib/util.h"
#include "lib/clock.h"
#include "transport/tcp/tcp_conn.h"
#include "transport/tcp/tcp_pool.h"

/* The mark, the tail, and for every bulk item: the head before it, the item, its pad. */
#define IOV_MAX_REPLY (2 + 3 * XDR_BULKS_MAX)

static void put_mark(struct tcp_req *t)
{
	uint32_t v = 0x80000000u | (uint32_t)xdr_out_total(&t->rpc->out);

	t->mark[0] = (uint8_t)(v >> 24);
	t->mark[1] = (uint8_t)(v >> 16);
	t->mark[2] = (uint8_t)(v >> 8);
	t->mark[3] = (uint8_t)v;
}

static size_t reply_size(const struct tcp_req *t)
{
	return sizeof(t->mark) + xdr_out_total(&t->rpc->out);
}

struct pieces {
	struct iovec *iov;
	unsigned n;
	size_t skip; /* bytes to leave out, as they were sent before */
};

static void add_piece(struct pieces *p, const void *base, size_t len)
{
	if (p->skip >= len) {
		p->skip -= len;
		return;
	}
	p->iov[p->n++] = (struct iovec){ (uint8_t *)base + p->skip, len - p->skip };
	p->skip = 0;
}

/* The reply without the first t->sent bytes. */
static unsigned reply_iov(const struct tcp_req *t, struct iovec *iov)
{
	static const uint8_t zeros[4];
	const struct xdr_out *x = &t->rpc->out;
	struct pieces p = { iov, 0, t->sent };
	size_t done = 0; /* bytes of the head used so far */

	add_piece(&p, t->mark, sizeof(t->mark));
	for (unsigned i = 0; i < x->nbulks; i++) {
		const struct xdr_out_bulk *b = &x->bulk[i];

		add_piece(&p, x->base + done, b->at - done);
		done = b->at;
		if (b->len == 0)
			continue;
		add_piece(&p, b->payload->data + b->off, b->len);
		add_piece(&p, zeros, rn_xdr_pad(b->len));
	}
	add_piece(&p, x->base + done, x->used - done);
	return p.n;
}

/* Sends the reply. 1: all of it is out, 0: the socket is full, or -errno. */
static int send_some(struct tcp_conn *c, struct tcp_req *t)
{
	size_t total = reply_size(t);

	while (t->sent < total) {
		struct iovec iov[IOV_MAX_REPLY];
		struct msghdr m = { .msg_iov = iov, .msg_iovlen = reply_iov(t, iov) };
		ssize_t n = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
		t->sent += (size_t)n;
		tcp_count(c->loop->srv, bytes_out, (uint64_t)n);
	}
	return 1;
}

/* Ends a request: gives it, its room and its reference back. */
static void finish(struct tcp_conn *c, struct tcp_req *t)
{
	tcp_pool_put(c->loop, t);
	pthread_mutex_lock(&c->lock);
	c->inflight--;
	if (c->want_room && !c->closed && (!c->eof || !c->inflight)) {
		c->want_room = c->eof;
		tcp_conn_post_locked(c);
	}
	pthread_mutex_unlock(&c->lock);
	rpc_conn_put(&c->rpc);
}

static void finish_list(struct tcp_conn *c, struct tcp_req_list *list)
{
	struct tcp_req *t;

	while ((t = STAILQ_FIRST(list))) {
		STAILQ_REMOVE_HEAD(list, link);
		finish(c, t);
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
	struct tcp_req *t;
	size_t sent = 0;

	c->sending = true;
	while (!c->closed && !c->broken && quota-- && (t = STAILQ_FIRST(&c->out))) {
		pthread_mutex_unlock(&c->lock);
		size_t before = t->sent;
		int r = send_some(c, t);
		pthread_mutex_lock(&c->lock);
		sent += t->sent - before;
		if (t->sent > before)
			c->moved_ns = rn_now_ns();
		if (r < 0)
			c->broken = true;
		if (r <= 0)
			break;
		tcp_count(c->loop->srv, replies, 1);
		STAILQ_REMOVE_HEAD(&c->out, link);
		c->out_bytes -= reply_size(t);
		STAILQ_INSERT_TAIL(done, t, link);
		c->out_ns = c->moved_ns;
		if (c->window < c->loop->srv->cfg.max_requests)
			c->window++;
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
	if (!c->sending)
		c->loop->turns->work += drain_locked(c, &done);
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

void tcp_reply(struct rpc_request *req)
{
	struct tcp_req *t = req->transport_private;
	struct tcp_conn *c = rn_container_of(req->conn, struct tcp_conn, rpc);
	struct tcp_req_list done = STAILQ_HEAD_INITIALIZER(done);

	put_mark(t);
	rpc_conn_ref(&c->rpc); /* finish gives back the request's reference */
	pthread_mutex_lock(&c->lock);
	if (c->closed) {
		STAILQ_INSERT_TAIL(&done, t, link);
	} else {
		if (STAILQ_EMPTY(&c->out))
			c->out_ns = c->moved_ns = rn_now_ns();
		STAILQ_INSERT_TAIL(&c->out, t, link);
		c->out_bytes += reply_size(t);
		if (!c->sending && !c->blocked)
			drain_locked(c, &done);
	}
	pthread_mutex_unlock(&c->lock);
	finish_list(c, &done);
	rpc_conn_put(&c->rpc);
}

void tcp_drop(struct rpc_request *req)
{
	finish(rn_container_of(req->conn, struct tcp_conn, rpc), req->transport_private);
}

/* A stream has no way to refuse one message alone. */
void tcp_give_up(struct rpc_request *req)
{
	struct tcp_conn *c = rn_container_of(req->conn, struct tcp_conn, rpc);

	pthread_mutex_lock(&c->lock);
	c->broken = true;
	if (!c->closed)
		tcp_conn_post_locked(c);
	pthread_mutex_unlock(&c->lock);
	finish(c, req->transport_private);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Replies on the stream: record marks, the pieces of a reply, several replies in one send. */
#include "transport/tcp/tcp_send.h"

#include <errno.h>
#include <sys/socket.h>

#include "lib/pipe.h"
#include "lib/util.h"
#include "rpc/conns.h"

/* Bytes above which a send takes no further reply: more would not make it cheaper. */
#define PARCEL_BYTES (128u << 10)
/* The mark, the tail, and for every bulk item: the head before it, the item, its pad. */
#define IOV_MAX_REPLY (2 + 3 * XDR_BULKS_MAX)

_Static_assert(TCP_PARCEL_IOV >= IOV_MAX_REPLY, "a parcel takes any reply");

void tcp_send_prepare(struct tcp_req *t)
{
	const size_t len = xdr_out_total(&t->rpc->out);

	rn_put32(t->mark, 0x80000000u | (uint32_t)len);
	t->size = sizeof(t->mark) + len;
}

/* Where packing is in a reply. */
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

void tcp_send_pack(const struct tcp_req_list *out, struct tcp_parcel *p)
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

ssize_t tcp_send_parcel(struct tcp_conn *c, const struct tcp_parcel *p)
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

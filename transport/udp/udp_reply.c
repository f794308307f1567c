/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/udp/udp_reply.h"

#include <stdlib.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "rpc/conns.h"
#include "rpc/program.h"
#include "transport/udp/udp_pool.h"
#include "transport/udp/udp_socket.h"

/* For every bulk item: the head before it, the item, its pad; and the tail. */
#define IOV_MAX_REPLY (1 + 3 * XDR_BULKS_MAX)

static struct udp_conn *conn_of(struct rpc_conn *c)
{
	return rn_container_of(c, struct udp_conn, rpc);
}

void udp_dropped(struct udp_server *s, enum udp_dropped why)
{
	udp_count(&s->dropped[why], 1);
}

/* Gives the request back, and its reference on the connection. */
static void udp_reply_finish(struct rpc_request *req)
{
	struct udp_conn *c = conn_of(req->conn);

	rpc_conn_end(&c->rpc, req);
	udp_pool_put(c->from->srv, req->transport_private, c->rpc.client);
	rpc_conn_put(&c->rpc);
}

static void finish_unanswered(struct rpc_request *req, enum udp_dropped why)
{
	udp_dropped(conn_of(req->conn)->from->srv, why);
	atomic_fetch_add_explicit(&req->conn->tally.dropped, 1, memory_order_relaxed);
	udp_reply_finish(req);
}

/* True if the call has shown a file handle. */
static bool shows_handle(const struct rpc_request *req)
{
	return req->proc && req->call.proc != 0 &&
	       (req->proc->flags & (RPC_FOR_ALL | RPC_NO_EXPORT | RPC_BY_PATH)) == 0;
}

static bool udp_reply_may_send(const struct rpc_request *req, uint32_t len)
{
	struct udp_conn *c = conn_of(req->conn);
	struct udp_server *s = c->from->srv;

	if (len <= c->call_len)
		return true;
	if (s->cfg.standing && rpc_conn_standing(&c->rpc) < RPC_FORMER)
		return false;
	return udp_ration_take(&s->ration, &c->rpc.peer, shows_handle(req), len - c->call_len,
			       rn_now_ns());
}

/* The pieces of the reply; returns their number. */
static unsigned udp_reply_pack(const struct xdr_out *x, struct iovec iov[IOV_MAX_REPLY])
{
	static const uint8_t zeros[4];
	size_t done = 0; /* bytes of the head used so far */
	unsigned n = 0;

	for (unsigned i = 0; i < x->nbulks; i++) {
		const struct xdr_out_bulk *b = &x->bulk[i];

		iov[n++] = (struct iovec){ x->base + done, b->at - done };
		done = b->at;
		if (b->len == 0)
			continue;
		iov[n++] = (struct iovec){ b->payload->data + b->off, b->len };
		if (rn_xdr_pad(b->len))
			iov[n++] = (struct iovec){ (void *)zeros, rn_xdr_pad(b->len) };
	}
	iov[n++] = (struct iovec){ x->base + done, x->used - done };
	return n;
}

static void reply(struct rpc_request *req)
{
	struct udp_conn *c = conn_of(req->conn);
	struct udp_server *s = c->from->srv;
	const uint32_t len = (uint32_t)xdr_out_total(&req->out);
	struct iovec iov[IOV_MAX_REPLY];

	if (!udp_reply_may_send(req, len)) {
		finish_unanswered(req, UDP_RATIONED);
		return;
	}
	const unsigned n = udp_reply_pack(&req->out, iov);

	/* Before the reply goes, so that whoever has it finds it counted. */
	udp_count(&s->replies, 1);
	udp_count(&s->bytes_out, len);
	if (udp_socket_send(c->from->fd, iov, n, &c->rpc.peer, &c->rpc.local) < 0)
		finish_unanswered(req, UDP_NOT_SENT);
	else
		udp_reply_finish(req);
}

static void udp_reply_drop(struct rpc_request *req)
{
	finish_unanswered(req, UDP_DUPLICATE);
}

static void udp_reply_garbage(struct rpc_request *req)
{
	finish_unanswered(req, UDP_NO_CALL);
}

static void udp_reply_too_long(struct rpc_request *req)
{
	xdr_out_release(&req->out);
	xdr_out_init(&req->out, req->head->data, req->head->size);
	rpc_put_accepted(&req->out, req->call.xid, RPC_SYSTEM_ERR);
	reply(req);
}

static void udp_conn_destroy(struct rpc_conn *rpc)
{
	struct udp_conn *c = conn_of(rpc);
	struct rpc_client *client = c->rpc.client;

	udp_pool_leave(c); /* the server may end now */
	rpc_client_put(client);
	free(c);
}

const struct rpc_conn_ops udp_conn_ops = {
	.netid = "udp",
	.keeps_port = true,
	.datagrams = true,
	.data_max = UDP_DATA_MAX,
	.says_too_long = true,
	.reply = reply,
	.drop = udp_reply_drop,
	.too_long = udp_reply_too_long,
	.garbage = udp_reply_garbage,
	.destroy = udp_conn_destroy,
};

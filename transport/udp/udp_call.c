/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls over UDP: their requests, their ends, and the way from a datagram to a call. */
#include "transport/udp/udp_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "rpc/conns.h"
#include "rpc/program.h"

#define REQUEST_BYTES (sizeof(struct udp_req) + sizeof(struct rpc_request))
#define HELD_BYTES (REQUEST_BYTES + RPC_HEAD_SIZE + sizeof(struct udp_conn))

static struct udp_req *udp_req_make(struct udp_server *s)
{
	if (!rn_budget_take(s->cfg.budget, REQUEST_BYTES))
		return NULL;
	struct udp_req *r = calloc(1, sizeof(*r));

	if (r)
		r->rpc = rpc_request_new(s->cfg.pool);
	if (!r || !r->rpc) {
		free(r);
		rn_budget_give(s->cfg.budget, REQUEST_BYTES);
		return NULL;
	}
	r->rpc->transport_private = r;
	atomic_fetch_add(&s->made, 1);
	return r;
}

static void udp_req_unmake(struct udp_server *s, struct udp_req *r)
{
	atomic_fetch_sub(&s->made, 1);
	rpc_request_free(r->rpc);
	free(r);
	rn_budget_give(s->cfg.budget, REQUEST_BYTES);
}

size_t udp_pool_memory(void)
{
	return UDP_READY * (REQUEST_BYTES + RPC_HEAD_SIZE);
}

int udp_pool_fill(struct udp_server *s)
{
	for (unsigned i = 0; i < UDP_READY; i++) {
		struct udp_req *r = udp_req_make(s);

		if (!r)
			return -ENOMEM;
		STAILQ_INSERT_HEAD(&s->idle, r, link);
		s->nidle++;
	}
	return 0;
}

void udp_pool_free(struct udp_server *s)
{
	struct udp_req *r;

	while ((r = STAILQ_FIRST(&s->idle))) {
		STAILQ_REMOVE_HEAD(&s->idle, link);
		udp_req_unmake(s, r);
	}
	s->nidle = 0;
}

/* Counts one more call of the connection's client. False: there are too many. A client may have as many
 * under way as are still left for all. */
static bool udp_pool_enter(struct udp_conn *c)
{
	struct udp_server *s = c->from->srv;
	struct rpc_client *client = c->rpc.client;

	pthread_mutex_lock(&s->lock);
	const bool room = client->datagrams < UDP_CALLS_MAX - s->busy;
	if (room) {
		s->busy++;
		client->datagrams++;
	}
	pthread_mutex_unlock(&s->lock);
	return room;
}

/* Counts it among those of strangers, too. False: there are too many. */
static bool udp_pool_enter_stranger(struct udp_conn *c)
{
	struct udp_server *s = c->from->srv;

	pthread_mutex_lock(&s->lock);
	c->stranger = s->strangers < UDP_STRANGERS_MAX;
	s->strangers += c->stranger;
	pthread_mutex_unlock(&s->lock);
	return c->stranger;
}

/* Takes back both. */
static void udp_pool_leave(struct udp_conn *c)
{
	struct udp_server *s = c->from->srv;

	pthread_mutex_lock(&s->lock);
	s->busy--;
	s->strangers -= c->stranger;
	c->rpc.client->datagrams--;
	if (s->busy == 0)
		pthread_cond_broadcast(&s->gone);
	pthread_mutex_unlock(&s->lock);
}

/* A request, on the client's account. NULL: there is no memory. */
static struct udp_req *udp_pool_get(struct udp_server *s, struct rpc_client *client)
{
	if (!rn_payload_may_hold(s->cfg.pool, &client->requests, HELD_BYTES))
		return NULL;
	pthread_mutex_lock(&s->lock);
	struct udp_req *r = STAILQ_FIRST(&s->idle);
	if (r) {
		STAILQ_REMOVE_HEAD(&s->idle, link);
		s->nidle--;
	}
	pthread_mutex_unlock(&s->lock);
	if (!r)
		r = udp_req_make(s);
	if (r)
		atomic_fetch_add_explicit(&client->requests.bytes, HELD_BYTES,
					  memory_order_relaxed);
	return r;
}

static void udp_pool_put(struct udp_server *s, struct udp_req *r, struct rpc_client *client)
{
	atomic_fetch_sub_explicit(&client->requests.bytes, HELD_BYTES, memory_order_relaxed);
	rpc_request_reset(r->rpc);
	r->rpc->conn = NULL;
	pthread_mutex_lock(&s->lock);
	const bool keep = s->nidle < UDP_READY;
	if (keep) {
		STAILQ_INSERT_HEAD(&s->idle, r, link);
		s->nidle++;
	}
	pthread_mutex_unlock(&s->lock);
	if (!keep)
		udp_req_unmake(s, r);
}

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
	if (s->cfg.admission && rpc_conn_admission(&c->rpc) < RPC_RECENT)
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

static const struct rpc_conn_ops udp_conn_ops = {
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

#define CALL_MIN                                                                                   \
	40u /* bytes of a call without credential, verifier and arguments (RFC 5531 section 9) */

static bool is_call(const struct udp_datagram *d)
{
	static const uint8_t call[4] = { 0, 0, 0, RPC_CALL };

	return d->len >= CALL_MIN && memcmp(d->data + 4, call, sizeof(call)) == 0 &&
	       rpc_address_port(&d->peer) != 0;
}

/*
* Connection id, equal for all datagrams of a sender, so that a call that is sent again while it runs is known as the
 * same connection's. Connections of other transports never have the highest bit.
 */
static uint64_t id_of(const struct udp_server *s, const struct sockaddr_storage *peer)
{
	struct {
		struct rpc_address addr;
		uint32_t port;
	} key = { .port = rpc_address_port(peer) };
	uint64_t hash;

	rpc_address_of(peer, &key.addr);
	crypto_shorthash((uint8_t *)&hash, (const uint8_t *)&key, sizeof(key), s->id_key);
	return hash | UINT64_C(1) << 63;
}

/* NULL: no memory. */
static struct udp_conn *udp_conn_new(struct udp_listener *l, const struct udp_datagram *d)
{
	struct udp_server *s = l->srv;
	struct udp_conn *c = calloc(1, sizeof(*c));
	struct rpc_client *client = c ? rpc_client_get(s->cfg.clients, &d->peer) : NULL;

	if (!client) {
		free(c);
		return NULL;
	}
	c->rpc.ops = &udp_conn_ops;
	c->rpc.peer = d->peer;
	c->rpc.local = d->local;
	c->rpc.client = client;
	c->rpc.id = id_of(s, &d->peer);
	c->rpc.made_ns = rn_now_ns();
	TAILQ_INIT(&c->rpc.under_way);
	atomic_init(&c->rpc.refs, 1);
	c->from = l;
	c->call_len = d->len;
	return c;
}

static void udp_conn_discard(struct udp_conn *c)
{
	rpc_client_put(c->rpc.client);
	free(c);
}

/* Takes a place among all calls, and then among those of strangers if the host is one: asking for its
 * admission may cost a question to a name service. False: there is no place, or there were too many questions. */
static bool udp_call_enter(struct udp_conn *c)
{
	struct udp_server *s = c->from->srv;
	enum rpc_admission is;

	if (!udp_pool_enter(c))
		return false;
	if (!s->cfg.admission)
		return true;
	if (udp_asked_may(&s->asked, &c->rpc.peer, c->rpc.made_ns)) {
		is = s->cfg.admission(s->cfg.admission_ctx, &c->rpc);
		udp_asked_got(&s->asked, &c->rpc.peer, is, c->rpc.made_ns);
		/* A call that waits for a name service would else keep a place of an admitted host. */
		if (is >= RPC_RECENT || udp_pool_enter_stranger(c))
			return true;
	}
	udp_pool_leave(c);
	return false;
}

/* Copies the call to its request. False: there is no memory. */
static bool udp_call_fill_req(const struct udp_conn *c, struct udp_req *r,
			      const struct udp_datagram *d)
{
	const struct udp_config *cfg = &c->from->srv->cfg;
	struct rpc_request *rpc = r->rpc;
	uint32_t head = rn_min(d->len, UDP_HEAD_SIZE);

	if (d->len > head) {
		/* File data begin on a page. */
		const size_t at = cfg->bulk_offset ? cfg->bulk_offset(d->data, head) : 0;
		if (at && at < head)
			head = (uint32_t)at;
		struct rn_payload *p =
			rn_payload_get_for(cfg->pool, d->len - head, &c->rpc.client->memory);
		if (!p)
			return false;
		memcpy(p->data, d->data + head, d->len - head);
		rpc->seg[1] =
			(struct rpc_seg){ .base = p->data, .len = d->len - head, .payload = p };
	}
	memcpy(r->head, d->data, head);
	rpc->seg[0] = (struct rpc_seg){ .base = r->head, .len = head };
	rpc->nseg = d->len > head ? 2 : 1;
	return true;
}

/* The request of the call, with the connection's reference. NULL: there is no memory. */
static struct rpc_request *request_for(struct udp_conn *c, const struct udp_datagram *d)
{
	struct udp_server *s = c->from->srv;
	struct udp_req *r = udp_pool_get(s, c->rpc.client);

	if (!r)
		return NULL;
	if (!udp_call_fill_req(c, r, d)) {
		udp_pool_put(s, r, c->rpc.client);
		return NULL;
	}
	r->rpc->conn = &c->rpc;
	r->rpc->reply_max = UDP_MESSAGE_MAX;
	r->rpc->arrived_ns = c->rpc.made_ns;
	return r->rpc;
}

void udp_call_take(struct udp_listener *l, const struct udp_datagram *d)
{
	struct udp_server *s = l->srv;

	udp_count(&s->bytes_in, d->len);
	if (!is_call(d)) {
		udp_dropped(s, UDP_NO_CALL);
		return;
	}
	struct udp_conn *c = udp_conn_new(l, d);
	if (!c) {
		udp_dropped(s, UDP_NO_MEMORY);
		return;
	}
	if (!udp_call_enter(c)) {
		udp_conn_discard(c);
		udp_dropped(s, UDP_BUSY);
		return;
	}
	struct rpc_request *req = request_for(c, d);
	if (!req) {
		udp_dropped(s, UDP_NO_MEMORY);
		rpc_conn_put(&c->rpc);
		return;
	}
	udp_count(&s->calls, 1);
	rpc_tally(&c->rpc.tally.bytes_in, d->len);
	rpc_conn_begin(&c->rpc, req);
	s->cfg.executor.submit(s->cfg.executor.ctx, req);
}

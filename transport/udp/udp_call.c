/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/udp/udp_call.h"

#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "rpc/conns.h"
#include "transport/udp/udp_pool.h"
#include "transport/udp/udp_reply.h"

#define CALL_MIN                                                                                   \
	40u /* bytes of a call without credential, verifier and arguments (RFC 5531 section 9) */

static bool is_call(const struct udp_datagram *d)
{
	static const uint8_t call[4] = { 0, 0, 0, RPC_CALL };

	return d->len >= CALL_MIN && memcmp(d->data + 4, call, sizeof(call)) == 0 &&
	       rpc_address_port(&d->peer) != 0;
}

/*
 * The same for all datagrams of a sender, so that a call that is sent again while it runs is known as the
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
 * standing may cost a question to a name service. False: there is no place, or there were too many questions. */
static bool udp_call_enter(struct udp_conn *c)
{
	struct udp_server *s = c->from->srv;
	enum rpc_standing is;

	if (!udp_pool_enter(c))
		return false;
	if (!s->cfg.standing)
		return true;
	if (udp_asked_may(&s->asked, &c->rpc.peer, c->rpc.made_ns)) {
		is = s->cfg.standing(s->cfg.standing_ctx, &c->rpc);
		udp_asked_got(&s->asked, &c->rpc.peer, is, c->rpc.made_ns);
		/* A call that waits for a name service would else keep a place of an admitted host. */
		if (is >= RPC_FORMER || udp_pool_enter_stranger(c))
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
	s->cfg.sink.submit(s->cfg.sink.ctx, req);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/util.h"
#include "nsm/nsm_call.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/host.h"
#include "nsm/nsm_private.h"
#include "rpc/message.h"

#define RPCBIND_PROGRAM 100000u
#define RPCBIND_PORT 111u
#define RPCBIND_GETPORT 3u /* version 2; GETADDR in version 3 */
#define UADDR_MAX 128u
#define TRIES 4u /* of each of the two calls by UDP; the pause is doubled each time */
#define BRIEF_TRIES 2u
#define PAUSE_NS (500 * RN_NS_PER_MS)
#define STREAM_NS (5 * RN_NS_PER_SECOND) /* for a connection and its reply */
#define FAIR_NS (2 * RN_NS_PER_SECOND)	 /* after which a call may be ended for another */

struct nsm_call {
	TAILQ_ENTRY(nsm_call) link;
	struct nsm_callee to;
	struct nsm_call_end end;
	bool asking;   /* rpcbind is being asked for the port */
	bool by_tcp;   /* transport of the question, or of the call */
	bool other;    /* the program is sought on the transport that is not preferred */
	uint16_t port; /* that is called now */
	uint32_t xid;
	unsigned tries;
	uint64_t begun_ns, due_ns; /* due_ns: when it is sent again, or given up */
	struct nsm_stream stream;
	uint32_t len;
	uint8_t args[];
};

/* Transport that the program is sought on. */
static bool is_tcp(const struct nsm_call *call)
{
	return call->to.tcp != call->other;
}

static void put_question(struct xdr_out *x, const struct nsm_call *call)
{
	const bool ipv4 = rn_address_is_ipv4(call->to.peer.bytes), tcp = is_tcp(call);
	const struct rpc_callee rpcbind = { RPCBIND_PROGRAM, ipv4 ? 2 : 3, RPCBIND_GETPORT };

	rpc_put_call(x, &rpcbind, RPC_AUTH_NONE, NULL, 0);
	xdr_put_u32(x, call->to.prog);
	xdr_put_u32(x, call->to.vers);
	if (ipv4) {
		xdr_put_u32(x, tcp ? IPPROTO_TCP : IPPROTO_UDP);
		xdr_put_u32(x, 0);
	} else {
		xdr_put_opaque(x, tcp ? "tcp6" : "udp6", 4);
		xdr_put_opaque(x, NULL, 0); /* address */
		xdr_put_opaque(x, NULL, 0); /* owner */
	}
}

/* The credential names root, which some hosts ask for. */
static void nsm_put_call(struct xdr_out *x, const struct nsm_call *call)
{
	static const uint8_t root[5 * 4]; /* authsys_parms: stamp, no name, uid, gid, no groups */
	const struct rpc_callee to = { call->to.prog, call->to.vers, call->to.proc };

	rpc_put_call(x, &to, RPC_AUTH_SYS, root, sizeof(root));
	xdr_put_fixed(x, call->args, call->len);
}

static unsigned *nsm_call_count(struct nsm_calls *c, bool brief)
{
	return brief ? &c->brief : &c->n;
}

static void nsm_call_finish(struct nsm_calls *c, struct nsm_call *call, int rc,
			    struct xdr_in *results)
{
	TAILQ_REMOVE(&c->list, call, link);
	(*nsm_call_count(c, call->to.brief))--;
	call->end.done(call->end.ctx, rc, results);
	nsm_stream_close(&call->stream);
	free(call);
}

/* A connection that cannot be had is noticed when its time is over, so that calls are not repeated at
 * once. */
static void nsm_call_transmit(struct nsm_calls *c, struct nsm_call *call, uint64_t now)
{
	uint8_t msg[NSM_DATAGRAM_MAX];
	struct nsm_datagram d = { call->to.peer, call->to.local, call->port, msg, 0 };
	struct xdr_out x;

	xdr_out_init(&x, msg, sizeof(msg));
	if (call->asking)
		put_question(&x, call);
	else
		nsm_put_call(&x, call);
	if (!x.overflow) {
		xdr_patch_u32(&x, 0, call->xid);
		d.len = x.used;
		if (call->by_tcp)
			nsm_stream_open(&call->stream, &d);
		else
			nsm_send(c, &d);
	}
	call->due_ns = now + (call->by_tcp ? STREAM_NS : PAUSE_NS << call->tries);
	call->tries++;
}

static void nsm_call_begin(struct nsm_calls *c, struct nsm_call *call, bool by_tcp, uint16_t port)
{
	nsm_stream_close(&call->stream);
	call->by_tcp = by_tcp;
	call->port = port;
	call->xid = randombytes_random();
	call->tries = 0;
	nsm_call_transmit(c, call, rn_now_ns());
}

static void nsm_call_ask_port(struct nsm_calls *c, struct nsm_call *call, bool by_tcp)
{
	call->asking = true;
	nsm_call_begin(c, call, by_tcp, RPCBIND_PORT);
}

int nsm_call(struct nsm_calls *c, const struct nsm_callee *to, const uint8_t *args, uint32_t len,
	     const struct nsm_call_end *end)
{
	struct nsm_call *call;

	if (*nsm_call_count(c, to->brief) >= (to->brief ? NSM_BRIEF_MAX : NSM_CALLS_MAX))
		return -RN_EFULL;
	call = calloc(1, sizeof(*call) + len);
	if (!call)
		return -ENOMEM;
	call->to = *to;
	call->end = *end;
	call->len = len;
	memcpy(call->args, args, len);
	call->begun_ns = rn_now_ns();
	call->stream.fd = -1;
	TAILQ_INSERT_TAIL(&c->list, call, link);
	(*nsm_call_count(c, to->brief))++;
	nsm_call_ask_port(c, call, false);
	return 0;
}

/* Two decimal numbers at the end of a universal address (RFC 5665) are the port. 0: there is none. */
static uint16_t port_of_uaddr(const uint8_t *text, uint32_t len)
{
	unsigned part[2] = { 0, 0 }, scale = 1, i = 0;

	while (len > 0 && i < 2) {
		const uint8_t ch = text[--len];

		if (ch == '.') {
			i++;
			scale = 1;
		} else if (ch >= '0' && ch <= '9' && scale <= 100) {
			part[i] += (ch - '0') * scale;
			scale *= 10;
		} else {
			return 0;
		}
	}
	return i == 2 && part[0] < 256 && part[1] < 256 ? (uint16_t)(part[1] << 8 | part[0]) : 0;
}

static uint16_t get_port(const struct nsm_call *call, struct xdr_in *x)
{
	const uint8_t *text;
	uint32_t len, port;

	if (rn_address_is_ipv4(call->to.peer.bytes)) {
		port = xdr_get_u32(x);
		return x->err || port > UINT16_MAX ? 0 : (uint16_t)port;
	}
	text = xdr_get_opaque(x, UADDR_MAX, &len);
	return text ? port_of_uaddr(text, len) : 0;
}

/* Reads the header of a reply behind the xid. True: results follow. */
static bool is_success(struct xdr_in *x)
{
	if (xdr_get_u32(x) != RPC_REPLY || xdr_get_u32(x) != RPC_MSG_ACCEPTED)
		return false;
	xdr_get_u32(x); /* verifier */
	xdr_skip_opaque(x, RPC_AUTH_BYTES_MAX);
	return xdr_get_u32(x) == RPC_SUCCESS && !x->err;
}

/* rpcbind has answered: goes on with the call, or asks for the other transport. port 0: the program is not
 * there. */
static void has_port(struct nsm_calls *c, struct nsm_call *call, uint16_t port)
{
	if (port) {
		call->asking = false;
		nsm_call_begin(c, call, is_tcp(call), port);
	} else if (!call->other && !call->to.brief) {
		call->other = true;
		nsm_call_ask_port(c, call, call->by_tcp);
	} else {
		nsm_call_finish(c, call, -EOPNOTSUPP, NULL);
	}
}

/* data is a message with the call's xid, or another one. */
static void nsm_call_take_reply(struct nsm_calls *c, struct nsm_call *call, const uint8_t *data,
				size_t len)
{
	struct rpc_seg seg = { .base = (uint8_t *)data, .len = (uint32_t)len };
	struct rn_arena none;
	struct xdr_in x;
	bool good;

	rn_arena_init(&none, NULL, 0);
	xdr_in_init(&x, &seg, 1, &none);
	if (xdr_get_u32(&x) != call->xid || x.err)
		return;
	good = is_success(&x);
	if (call->asking)
		has_port(c, call, good ? get_port(call, &x) : 0);
	else
		nsm_call_finish(c, call, good ? 0 : -EOPNOTSUPP, good ? &x : NULL);
}

static uint32_t nsm_datagram_xid(const struct nsm_datagram *d)
{
	return d->len < 4 ? 0 : rn_get32(d->data);
}

void nsm_calls_reply(struct nsm_calls *c, const struct nsm_datagram *d)
{
	struct nsm_call *call;

	TAILQ_FOREACH (call, &c->list, link) {
		if (!call->by_tcp && call->xid == nsm_datagram_xid(d) && d->port == call->port &&
		    rpc_address_equal(&call->to.peer, &d->peer))
			break;
	}
	if (call)
		nsm_call_take_reply(c, call, d->data, d->len);
}

/* The time is over. */
static void nsm_call_give_up(struct nsm_calls *c, struct nsm_call *call)
{
	if (call->asking && !call->by_tcp && !call->to.brief)
		nsm_call_ask_port(c, call, true);
	else
		nsm_call_finish(c, call, -ETIMEDOUT, NULL);
}

uint64_t nsm_calls_tick(struct nsm_calls *c, uint64_t now)
{
	struct nsm_call *call = TAILQ_FIRST(&c->list), *next;
	uint64_t due = UINT64_MAX;

	for (; call; call = next) {
		next = TAILQ_NEXT(call, link);
		if (call->due_ns <= now) {
			if (call->by_tcp || call->tries >= (call->to.brief ? BRIEF_TRIES : TRIES)) {
				/* A call that goes on is looked at again in this turn, so it does not wait for the timer. */
				nsm_call_give_up(c, call);
				due = now;
				continue;
			}
			nsm_call_transmit(c, call, now);
		}
		due = call->due_ns < due ? call->due_ns : due;
	}
	return due;
}

unsigned nsm_calls_poll(const struct nsm_calls *c, struct pollfd *out)
{
	const struct nsm_call *call;
	unsigned n = 0;

	TAILQ_FOREACH (call, &c->list, link) {
		if (call->stream.fd >= 0)
			out[n++] = (struct pollfd){ .fd = call->stream.fd,
						    .events = nsm_stream_events(&call->stream) };
	}
	return n;
}

/* A host that ends the connection has given no answer. */
static void nsm_call_step(struct nsm_calls *c, struct nsm_call *call)
{
	const int n = nsm_stream_step(&call->stream);

	if (n > 0)
		nsm_call_take_reply(c, call, call->stream.in, (size_t)n);
	else if (n < 0)
		nsm_stream_close(&call->stream);
}

void nsm_calls_polled(struct nsm_calls *c, const struct pollfd *polled)
{
	struct nsm_call *call = TAILQ_FIRST(&c->list), *next;

	for (unsigned i = 0; call; call = next) {
		next = TAILQ_NEXT(call, link);
		if (call->stream.fd >= 0 && polled[i++].revents)
			nsm_call_step(c, call);
	}
}

unsigned nsm_calls_to(const struct nsm_calls *c, const struct rpc_address *peer)
{
	const struct nsm_call *call;
	unsigned n = 0;

	TAILQ_FOREACH (call, &c->list, link)
		n += rpc_address_equal(&call->to.peer, peer);
	return n;
}

bool nsm_calls_make_room(struct nsm_calls *c, uint64_t now)
{
	struct nsm_call *oldest = TAILQ_FIRST(&c->list);

	if (c->n < NSM_CALLS_MAX)
		return true;
	while (oldest->to.brief)
		oldest = TAILQ_NEXT(oldest, link);
	if (oldest->begun_ns + FAIR_NS > now)
		return false;
	nsm_call_finish(c, oldest, -ETIMEDOUT, NULL);
	return true;
}

void nsm_calls_cancel(struct nsm_calls *c)
{
	struct nsm_call *call;

	while ((call = TAILQ_FIRST(&c->list)) != NULL)
		nsm_call_finish(c, call, -ECANCELED, NULL);
}

void nsm_calls_close(struct nsm_calls *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

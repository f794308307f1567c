/* SPDX-License-Identifier: BSD-2-Clause */
#include "nsm/call.h"

#include <errno.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "rpc/message.h"

#define RPCBIND_PROGRAM 100000u
#define RPCBIND_PORT 111u
#define RPCBIND_GETPORT 3u /* version 2; GETADDR in version 3 */
#define UADDR_MAX 128u
#define TRIES 4u /* of each of the two calls; the pause is doubled each time */
#define PAUSE_NS (500 * RN_NS_PER_MS)

struct nsm_call {
	TAILQ_ENTRY(nsm_call) link;
	struct nsm_callee to;
	struct nsm_call_end end;
	uint16_t port; /* of the program; 0: the host's rpcbind is asked first */
	uint32_t xid;
	unsigned tries;
	uint64_t due_ns; /* when it is sent again, or given up */
	uint32_t len;
	uint8_t args[];
};

static bool is_ipv4(const struct rpc_address *a)
{
	struct in6_addr in6;

	memcpy(&in6, a->bytes, sizeof(in6));
	return IN6_IS_ADDR_V4MAPPED(&in6);
}

static void put_question(struct xdr_out *x, const struct nsm_callee *to)
{
	const bool ipv4 = is_ipv4(&to->peer);
	const struct rpc_callee rpcbind = { RPCBIND_PROGRAM, ipv4 ? 2 : 3, RPCBIND_GETPORT };

	rpc_put_call(x, &rpcbind, RPC_AUTH_NONE, NULL, 0);
	xdr_put_u32(x, to->prog);
	xdr_put_u32(x, to->vers);
	if (ipv4) {
		xdr_put_u32(x, IPPROTO_UDP);
		xdr_put_u32(x, 0);
	} else {
		xdr_put_opaque(x, "udp6", 4);
		xdr_put_opaque(x, NULL, 0); /* address */
		xdr_put_opaque(x, NULL, 0); /* owner */
	}
}

/* The credential names root, which some hosts ask for. */
static void put_call(struct xdr_out *x, const struct nsm_call *call)
{
	static const uint8_t root[5 * 4]; /* authsys_parms: stamp, no name, uid, gid, no groups */
	const struct rpc_callee to = { call->to.prog, call->to.vers, call->to.proc };

	rpc_put_call(x, &to, RPC_AUTH_SYS, root, sizeof(root));
	xdr_put_fixed(x, call->args, call->len);
}

static void transmit(struct nsm_calls *c, struct nsm_call *call, uint64_t now)
{
	uint8_t msg[NSM_DATAGRAM_MAX];
	struct xdr_out x;

	xdr_out_init(&x, msg, sizeof(msg));
	if (call->port)
		put_call(&x, call);
	else
		put_question(&x, &call->to);
	if (!x.overflow) {
		xdr_patch_u32(&x, 0, call->xid);
		nsm_send(c, &(struct nsm_datagram){ call->to.peer, call->to.local,
						    call->port ? call->port : RPCBIND_PORT, msg,
						    x.used });
	}
	call->due_ns = now + (PAUSE_NS << call->tries);
	call->tries++;
}

static void begin(struct nsm_calls *c, struct nsm_call *call, uint16_t port)
{
	call->port = port;
	call->xid = randombytes_random();
	call->tries = 0;
	transmit(c, call, rn_now_ns());
}

int nsm_call(struct nsm_calls *c, const struct nsm_callee *to, const uint8_t *args, uint32_t len,
	     const struct nsm_call_end *end)
{
	struct nsm_call *call;

	if (c->n >= NSM_CALLS_MAX)
		return -EAGAIN;
	call = calloc(1, sizeof(*call) + len);
	if (!call)
		return -ENOMEM;
	call->to = *to;
	call->end = *end;
	call->len = len;
	memcpy(call->args, args, len);
	TAILQ_INSERT_TAIL(&c->list, call, link);
	c->n++;
	begin(c, call, 0);
	return 0;
}

static void finish(struct nsm_calls *c, struct nsm_call *call, int rc, struct xdr_in *results)
{
	TAILQ_REMOVE(&c->list, call, link);
	c->n--;
	call->end.done(call->end.ctx, rc, results);
	free(call);
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

	if (is_ipv4(&call->to.peer)) {
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

void nsm_calls_reply(struct nsm_calls *c, const struct nsm_datagram *d)
{
	struct rpc_seg seg = { .base = (uint8_t *)d->data, .len = (uint32_t)d->len };
	struct nsm_call *call;
	struct rn_arena none;
	struct xdr_in x;
	uint32_t xid;

	rn_arena_init(&none, NULL, 0);
	xdr_in_init(&x, &seg, 1, &none);
	xid = xdr_get_u32(&x);
	TAILQ_FOREACH (call, &c->list, link) {
		if (call->xid == xid && rpc_address_equal(&call->to.peer, &d->peer) &&
		    d->port == (call->port ? call->port : RPCBIND_PORT))
			break;
	}
	if (!call)
		return;
	const bool good = is_success(&x);

	if (call->port) {
		finish(c, call, good ? 0 : -EOPNOTSUPP, good ? &x : NULL);
		return;
	}
	const uint16_t port = good ? get_port(call, &x) : 0;

	if (port)
		begin(c, call, port);
	else
		finish(c, call, -EOPNOTSUPP, NULL);
}

uint64_t nsm_calls_tick(struct nsm_calls *c, uint64_t now)
{
	struct nsm_call *call = TAILQ_FIRST(&c->list), *next;
	uint64_t due = UINT64_MAX;

	for (; call; call = next) {
		next = TAILQ_NEXT(call, link);
		if (call->due_ns > now) {
			due = call->due_ns < due ? call->due_ns : due;
		} else if (call->tries < TRIES) {
			transmit(c, call, now);
			due = call->due_ns < due ? call->due_ns : due;
		} else {
			finish(c, call, -ETIMEDOUT, NULL);
		}
	}
	return due;
}

unsigned nsm_calls_to(const struct nsm_calls *c, const struct rpc_address *peer)
{
	const struct nsm_call *call;
	unsigned n = 0;

	TAILQ_FOREACH (call, &c->list, link)
		n += rpc_address_equal(&call->to.peer, peer);
	return n;
}

void nsm_calls_cancel(struct nsm_calls *c)
{
	struct nsm_call *call;

	while ((call = TAILQ_FIRST(&c->list)) != NULL)
		finish(c, call, -ECANCELED, NULL);
}

void nsm_calls_close(struct nsm_calls *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}

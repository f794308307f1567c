/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams from several peers to transport/udp/, whose calls end in each way and in any order. A step is five
 * bytes: peer, length (two), how the call ends, contents. Each call must reach the executor whole and
 * once, no more calls may be under way than there are places, a stranger is sent no more than came, and in the
 * end nothing is left.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/util.h"
#include "rpc/program.h"
#include "transport/udp/udp_private.h"

#define STEP 5u
#define STEPS_MAX 400u
#define BUDGET (64u << 20)
#define STRANGER 0x80u /* bit of a peer's byte */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum ending { END_REPLY, END_LONG_REPLY, END_DROP, END_TOO_LONG, END_GARBAGE, END_LATER };

static struct world {
	struct rn_budget budget;
	struct rn_payload_pool *pool;
	struct rpc_clients *clients;
	struct udp_server *srv;
	struct udp_listener *l;
	uint8_t message[UDP_MESSAGE_MAX];
	const struct udp_datagram *sent; /* the one that is being taken */
	uint8_t how;			 /* its call's end */
	unsigned taken;			 /* times that it has come to the executor */
	struct rpc_request *waiting[UDP_CALLS_MAX];
	unsigned nwaiting;
} w;

static const struct rpc_proc with_handle = { .name = "with a handle" };

static void must(bool good)
{
	if (!good)
		abort();
}

static enum rpc_admission admission(void *ctx, struct rpc_conn *conn)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&conn->peer;
	const enum rpc_admission s =
		ntohl(in->sin_addr.s_addr) & STRANGER ? RPC_STRANGER : RPC_ADMITTED;

	(void)ctx;
	atomic_store(&conn->admission, s);
	return s;
}

static size_t bulk_offset(const uint8_t *head, size_t len)
{
	return len > 60 ? 40 + head[41] : 0;
}

static void end(struct rpc_request *req, uint8_t how)
{
	const struct rpc_conn_ops *ops = req->conn->ops;

	req->proc = how & 0x10 ? &with_handle : NULL;
	switch (how & 0xf) {
	case END_LONG_REPLY:
		xdr_put_fixed(&req->out, w.message, RPC_HEAD_SIZE - 8);
		/* fallthrough */
	case END_REPLY:
		xdr_put_u32(&req->out, 1);
		ops->reply(req);
		break;
	case END_TOO_LONG:
		ops->too_long(req);
		break;
	case END_GARBAGE:
		ops->garbage(req);
		break;
	default:
		ops->drop(req);
		break;
	}
}

static void submit(void *ctx, struct rpc_request *req)
{
	size_t at = 0;

	(void)ctx;
	w.taken++;
	for (unsigned i = 0; i < req->nseg; i++) {
		must(req->seg[i].len <= w.sent->len - at &&
		     memcmp(req->seg[i].base, w.sent->data + at, req->seg[i].len) == 0);
		at += req->seg[i].len;
	}
	must(at == w.sent->len && req->reply_max == UDP_MESSAGE_MAX);
	if ((w.how & 0xf) == END_LATER) {
		must(w.nwaiting < UDP_CALLS_MAX);
		w.waiting[w.nwaiting++] = req;
	} else {
		end(req, w.how);
	}
}

static bool start(void)
{
	const struct sockaddr_in any = { .sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct udp_config cfg = {
		.executor = { .submit = submit },
		.budget = &w.budget,
		.bulk_offset = bulk_offset,
		.admission = admission,
	};

	rn_budget_init(&w.budget, BUDGET);
	cfg.pool = w.pool = rn_payload_pool_new(&w.budget);
	cfg.clients = w.clients = rpc_clients_new();
	w.l = calloc(1, sizeof(*w.l));
	must(w.pool && w.clients && w.l && udp_server_new(&cfg, &w.srv) == 0);
	w.l->srv = w.srv;
	w.l->fd = udp_socket_open((const struct sockaddr *)&any, sizeof(any));
	must(w.l->fd >= 0);
	return true;
}

static uint64_t bytes_out(void)
{
	struct udp_stats n;

	udp_server_stats(w.srv, &n);
	must(n.requests_busy <= UDP_CALLS_MAX);
	return n.bytes_out;
}

static void take(const uint8_t *s)
{
	struct udp_datagram d = { .data = w.message };
	struct sockaddr_in peer = { .sin_family = AF_INET, .sin_port = htons(s[0] & 7) };
	const uint64_t before = bytes_out();

	d.len = ((uint32_t)s[1] << 8 | s[2]) % (UDP_MESSAGE_MAX + 1);
	peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK | s[0]);
	memcpy(&d.peer, &peer, sizeof(peer));
	memset(w.message, s[4], sizeof(w.message));
	memset(w.message + 4, 0, 4);
	w.message[7] = s[4] == 1; /* a reply, not a call */
	w.sent = &d;
	w.how = s[3];
	w.taken = 0;
	udp_call_take(w.l, &d);
	must(w.taken <= 1);
	must(!(s[0] & STRANGER) || bytes_out() - before <= d.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool started;
	struct udp_stats n;

	started = started || start();
	for (unsigned i = 0; i < STEPS_MAX && size >= STEP; i++, data += STEP, size -= STEP) {
		if (data[3] == 0xff && w.nwaiting > 0)
			end(w.waiting[--w.nwaiting], data[4]);
		else
			take(data);
	}
	while (w.nwaiting > 0)
		end(w.waiting[--w.nwaiting], END_REPLY);
	udp_server_stats(w.srv, &n);
	must(n.requests_busy == 0 && rpc_clients_count(w.clients) == 0);
	return 0;
}

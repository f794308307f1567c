/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls to clients: matching of replies, deadlines, and the end of connections. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "lib/error.h"
#include "rpc/backchannel.h"
#include "rpc/message.h"

struct back_conn {
	struct rpc_conn base;
	int refuse; /* result of the transport's call */
	bool lose;  /* the connection is closed while the transport refuses the call */
	uint8_t sent[RPC_CALLBACK_SIZE];
	uint32_t len;
	unsigned calls, destroyed;
};

struct note {
	struct rpc_callback cb;
	unsigned ended;
	int rc;
	uint32_t word; /* first word of the results */
};

static int op_call(struct rpc_conn *conn, const uint8_t *msg, uint32_t len)
{
	struct back_conn *c = (struct back_conn *)conn;

	c->calls++;
	c->len = len;
	memcpy(c->sent, msg, len);
	if (c->lose)
		rpc_backchannel_close(conn);
	return c->refuse;
}

static void op_destroy(struct rpc_conn *conn)
{
	((struct back_conn *)conn)->destroyed++;
}

static const struct rpc_conn_ops ops = { .netid = "tcp", .call = op_call, .destroy = op_destroy };
static const struct rpc_conn_ops mute = { .netid = "tcp", .destroy = op_destroy };

static void begin(struct back_conn *c)
{
	memset(c, 0, sizeof(*c));
	c->base.ops = &ops;
	atomic_init(&c->base.refs, 1);
}

/* Ends a connection in the order in which transports do. */
static void end(struct back_conn *c, struct rpc_backchannel *b)
{
	rpc_backchannel_close(&c->base);
	rpc_conn_put(&c->base);
	cr_expect_eq(c->destroyed, 1);
	rpc_backchannel_put(b);
}

static void on_done(struct rpc_callback *cb, int rc, struct xdr_in *results)
{
	struct note *n = (struct note *)cb;

	n->ended++;
	n->rc = rc;
	cr_expect_eq(rc == 0, results != NULL);
	if (results)
		n->word = xdr_get_u32(results);
}

static int call(struct rpc_backchannel *b, struct note *n)
{
	uint8_t msg[64];
	struct xdr_out x;

	memset(n, 0, sizeof(*n));
	n->cb.done = on_done;
	n->cb.due_ns = 1000;
	xdr_out_init(&x, msg, sizeof(msg));
	rpc_put_call(&x, &(struct rpc_callee){ 0x40000000, 1, 1 }, RPC_AUTH_NONE, NULL, 0);
	return rpc_backchannel_call(b, &n->cb, msg, (uint32_t)x.used);
}

/* Answers with words: those of the reply behind the xid. */
static enum rpc_reply_use answer(struct back_conn *c, uint32_t xid, const uint32_t *words,
				 unsigned n)
{
	uint8_t msg[128];
	struct xdr_out x;

	xdr_out_init(&x, msg, sizeof(msg));
	xdr_put_u32(&x, xid);
	for (unsigned i = 0; i < n; i++)
		xdr_put_u32(&x, words[i]);
	return rpc_backchannel_reply(&c->base, msg, (uint32_t)x.used);
}

static const uint32_t success[] = { RPC_REPLY, RPC_MSG_ACCEPTED, 0, 0, RPC_SUCCESS, 77 };
#define ANSWER(c, xid, words) answer(c, xid, words, sizeof(words) / sizeof(words[0]))

Test(backchannel, a_call_and_its_reply)
{
	static const uint32_t header[] = { RPC_CALL, 2, 0x40000000, 1, 1, 0, 0, 0, 0 };
	const struct rpc_seg seg = { .base = NULL };
	struct rpc_seg sent = seg;
	struct back_conn c;
	struct xdr_in x;
	struct note n;

	begin(&c);
	struct rpc_backchannel *b = rpc_backchannel_get(&c.base);

	cr_assert_not_null(b);
	cr_assert(rpc_backchannel_is_of(b, &c.base));
	cr_assert_eq(call(b, &n), 0);
	cr_expect_eq(c.calls, 1);
	sent.base = c.sent;
	sent.len = c.len;
	xdr_in_init(&x, &sent, 1, NULL);
	cr_expect_eq(xdr_get_u32(&x), n.cb.xid);
	for (unsigned i = 0; i < sizeof(header) / sizeof(header[0]); i++)
		cr_expect_eq(xdr_get_u32(&x), header[i], "word %u", i);
	cr_expect_eq(x.left, 0);
	cr_expect_eq(n.ended, 0);
	cr_expect_eq(ANSWER(&c, n.cb.xid, success), RPC_REPLY_USED);
	cr_expect_eq(n.ended, 1);
	cr_expect_eq(n.rc, 0);
	cr_expect_eq(n.word, 77);
	/* A second reply finds nothing. */
	cr_expect_eq(ANSWER(&c, n.cb.xid, success), RPC_REPLY_STRAY);
	cr_expect_eq(n.ended, 1);
	end(&c, b);
	cr_expect_eq(n.ended, 1);
}

Test(backchannel, replies_that_end_no_call)
{
	struct back_conn c, other, never;
	struct note n, m;

	begin(&c);
	begin(&other);
	begin(&never);
	struct rpc_backchannel *b = rpc_backchannel_get(&c.base),
			       *o = rpc_backchannel_get(&other.base);

	cr_assert_eq(call(b, &n), 0);
	cr_assert_eq(call(o, &m), 0);
	cr_expect_eq(ANSWER(&c, n.cb.xid + 1, success), RPC_REPLY_STRAY);
	/* The xid of a call on another connection. */
	cr_assert_neq(n.cb.xid, m.cb.xid);
	cr_expect_eq(ANSWER(&other, n.cb.xid, success), RPC_REPLY_STRAY);
	cr_expect_eq(ANSWER(&c, m.cb.xid, success), RPC_REPLY_STRAY);
	cr_expect_eq(ANSWER(&never, n.cb.xid, success), RPC_REPLY_UNEXPECTED);
	cr_expect_eq(rpc_backchannel_reply(&c.base, c.sent, 3), RPC_REPLY_STRAY);
	cr_expect_eq(n.ended + m.ended, 0);
	end(&c, b);
	end(&other, o);
	end(&never, NULL);
	cr_expect_eq(n.rc, -ENOTCONN);
	cr_expect_eq(m.rc, -ENOTCONN);
}

Test(backchannel, replies_that_are_no_success)
{
	static const struct {
		uint32_t words[6];
		unsigned n;
		int rc;
	} rows[] = {
		{ { RPC_REPLY, RPC_MSG_DENIED, RPC_AUTH_ERROR, RPC_AUTH_BADCRED }, 4, -EACCES },
		{ { RPC_REPLY, RPC_MSG_DENIED, RPC_RPC_MISMATCH, 2, 2 }, 5, -EACCES },
		{ { RPC_REPLY, RPC_MSG_ACCEPTED, 0, 0, RPC_PROG_UNAVAIL }, 5, -EOPNOTSUPP },
		{ { RPC_REPLY, RPC_MSG_ACCEPTED, 0, 0, RPC_GARBAGE_ARGS }, 5, -EOPNOTSUPP },
		{ { RPC_REPLY, RPC_MSG_ACCEPTED, 0, 0 }, 4, -EPROTO },
		{ { RPC_REPLY, RPC_MSG_ACCEPTED, 0, 400, 0 }, 5, -EPROTO },
		{ { RPC_REPLY, RPC_MSG_ACCEPTED, 0, UINT32_MAX, 0 }, 5, -EPROTO },
		{ { RPC_REPLY, 2, 0, 0, 0 }, 5, -EPROTO },
		{ { RPC_REPLY }, 1, -EPROTO },
		{ { RPC_CALL, 0, 0, 0, 0 }, 5, -EPROTO },
		{ { 0 }, 0, -EPROTO },
	};
	struct back_conn c;
	struct note n;

	begin(&c);
	struct rpc_backchannel *b = rpc_backchannel_get(&c.base);

	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_assert_eq(call(b, &n), 0);
		cr_expect_eq(answer(&c, n.cb.xid, rows[i].words, rows[i].n), RPC_REPLY_USED);
		cr_expect_eq(n.ended, 1);
		cr_expect_eq(n.rc, rows[i].rc, "row %u: %d", i, n.rc);
	}
	end(&c, b);
}

Test(backchannel, a_call_that_the_transport_refuses)
{
	struct back_conn c, never;
	struct note n, m;

	begin(&c);
	begin(&never);
	struct rpc_backchannel *b = rpc_backchannel_get(&c.base);

	cr_assert_eq(call(b, &n), 0);
	cr_assert_eq(call(b, &m), 0);
	cr_expect_not(rpc_backchannel_refused(&c.base, n.cb.xid - 1));
	cr_expect_not(rpc_backchannel_refused(&never.base, n.cb.xid));
	cr_expect(rpc_backchannel_awaits(&c.base, n.cb.xid));
	cr_expect_not(rpc_backchannel_awaits(&never.base, n.cb.xid));
	cr_expect(rpc_backchannel_refused(&c.base, n.cb.xid));
	cr_expect_eq(n.rc, -EOPNOTSUPP);
	cr_expect_not(rpc_backchannel_awaits(&c.base, n.cb.xid));
	cr_expect_not(rpc_backchannel_refused(&c.base, n.cb.xid));
	cr_expect_eq(n.ended, 1);
	cr_expect_eq(m.ended, 0);
	end(&c, b);
	end(&never, NULL);
}

Test(backchannel, deadlines)
{
	struct back_conn c;
	struct note n, m;

	begin(&c);
	struct rpc_backchannel *b = rpc_backchannel_get(&c.base);

	cr_assert_eq(call(b, &n), 0);
	cr_assert_eq(call(b, &m), 0);
	m.cb.due_ns = 2000;
	rpc_backchannel_expire(&c.base, 999);
	cr_expect_eq(n.ended + m.ended, 0);
	rpc_backchannel_expire(&c.base, 1000);
	cr_expect_eq(n.rc, -ETIMEDOUT);
	cr_expect_eq(m.ended, 0);
	cr_expect_eq(ANSWER(&c, n.cb.xid, success), RPC_REPLY_STRAY);
	cr_expect_eq(n.ended, 1);
	cr_expect_eq(ANSWER(&c, m.cb.xid, success), RPC_REPLY_USED);
	end(&c, b);
}

Test(backchannel, the_end_of_the_connection)
{
	struct back_conn c;
	struct note n, late;

	begin(&c);
	struct rpc_backchannel *b = rpc_backchannel_get(&c.base);

	cr_assert_eq(call(b, &n), 0);
	cr_expect(rpc_backchannel_is_open(b));
	rpc_backchannel_close(&c.base);
	cr_expect_eq(n.ended, 1);
	cr_expect_eq(n.rc, -ENOTCONN);
	cr_expect_not(rpc_backchannel_is_open(b));
	cr_expect_eq(call(b, &late), -ENOTCONN);
	cr_expect_eq(late.ended, 0);
	cr_expect_eq(ANSWER(&c, n.cb.xid, success), RPC_REPLY_STRAY);
	cr_expect_null(rpc_backchannel_get(&c.base));
	rpc_backchannel_close(&c.base);
	cr_expect_eq(n.ended, 1);
	end(&c, b);
	/* Nor does a connection get one that has been closed before. */
	begin(&c);
	rpc_backchannel_close(&c.base);
	cr_expect_null(rpc_backchannel_get(&c.base));
	end(&c, NULL);
}

Test(backchannel, calls_that_are_not_sent)
{
	static uint8_t msg[RPC_CALLBACK_SIZE + 4];
	static struct note many[RPC_CALLBACKS_MAX];
	struct back_conn c;
	struct note n;

	begin(&c);
	struct rpc_backchannel *b = rpc_backchannel_get(&c.base);

	c.refuse = -ENOMEM;
	cr_expect_eq(call(b, &n), -ENOMEM);
	cr_expect_eq(n.ended, 0);
	c.refuse = 0;
	cr_expect_eq(rpc_backchannel_call(b, &n.cb, msg, sizeof(msg)), -EMSGSIZE);
	for (unsigned i = 0; i < RPC_CALLBACKS_MAX; i++)
		cr_assert_eq(call(b, &many[i]), 0);
	cr_expect_eq(call(b, &n), -RN_EFULL);
	cr_expect_eq(ANSWER(&c, many[3].cb.xid, success), RPC_REPLY_USED);
	cr_expect_eq(call(b, &n), 0);
	/* Refused by the transport, but ended by the close at the same time: it ends once. */
	cr_expect_eq(ANSWER(&c, n.cb.xid, success), RPC_REPLY_USED);
	c.refuse = -ENOMEM;
	c.lose = true;
	cr_expect_eq(call(b, &n), 0);
	cr_expect_eq(n.ended, 1);
	cr_expect_eq(n.rc, -ENOTCONN);
	c.lose = false;
	end(&c, b);
	for (unsigned i = 0; i < RPC_CALLBACKS_MAX; i++)
		cr_expect_eq(many[i].ended, 1, "call %u", i);
}

Test(backchannel, a_transport_that_makes_no_calls)
{
	struct back_conn c;

	begin(&c);
	c.base.ops = &mute;
	cr_expect_null(rpc_backchannel_get(&c.base));
	cr_expect_eq(ANSWER(&c, 1, success), RPC_REPLY_UNEXPECTED);
	end(&c, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections: how they begin and end, what happens to calls in flight, that they are independent
 * of each other. A thousand of them are in cases_thousand.c, retransmission in cases_retransmit.c.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "tools/conform/conform_check.h"
#include "tools/conform/nfs3.h"

/* ---- beginning --------------------------------------------------------------------------------
 */

/* The first call goes out before the server can have seen that the connection is established. */
static void connect_call_at_once(struct cf_test *t)
{
	for (int i = 0; i < 25; i++) {
		if (!cf_open(t, NULL) || !cf_alive(t))
			return;
		cf_close(t, t->conn, true);
	}
}

static void never_used(struct cf_test *t)
{
	struct cf_conn *first = t->conn;

	for (int i = 0; i < 25; i++) {
		struct cf_conn *c = cf_open(t, NULL);
		if (!c)
			return;
		cf_close(t, c, i & 1);
	}
	t->conn = first;
	cf_alive(t);
}

/* Private data without the format identifier count as none. */
static void other_private_data(struct cf_test *t)
{
	struct cf_conn_options o = { .private_len = t->arg };
	uint8_t data[CF_PRIVATE_MAX];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = 0x30 + i % 10;
	o.private_data = data;
	if (cf_open(t, &o))
		cf_alive(t); /* default private data, so no message exceeds 1024 bytes */
}

/* An idle connection stays open and carries no messages: there is no backchannel. */
static void idle(struct cf_test *t)
{
	if (cf_alive(t) && cf_silence(t, 1500))
		cf_alive(t);
}

/* ---- ending -----------------------------------------------------------------------------------
 */

enum { DROP_POLITE = 1, DROP_LONG_CALLS = 2, DROP_WRITES = 4 };

static bool send_some(struct cf_test *t, const struct cf_fh *fh)
{
	uint8_t data[2000] = { 0 };

	for (int i = 0; i < 8; i++) {
		struct cf_call *c;
		bool good;

		if (t->arg & DROP_WRITES) {
			c = cf3_write(t, fh, 0, sizeof(data), NULL);
			good = cf_reduce(t, c, data, sizeof(data), 4);
		} else {
			c = cf3_read(t, fh, 0, 8192);
			good = cf_offer_write(t, c, 8192, 4) &&
			       (!(t->arg & DROP_LONG_CALLS) || cf_make_long(t, c, 3));
		}
		if (!good || !cf_send(t, c))
			return false;
	}
	return true;
}

/* A connection ends with calls in flight; another connection is not disturbed. */
static void connect_drop(struct cf_test *t)
{
	struct cf_conn *first = t->conn;
	struct cf_fh fh;

	if (!cf3_make_file(t, "connect-drop", 8192, &fh))
		return;
	for (int i = 0; i < 3; i++) {
		struct cf_conn *c = cf_open(t, NULL);
		if (!c || !cf_credits(t, 32) || !send_some(t, &fh))
			return;
		cf_close(t, c, t->arg & DROP_POLITE);
		t->conn = first;
		if (!cf_alive(t))
			return;
	}
	if (cf_open(t, NULL))
		cf_alive(t);
}

/* ---- side by side -----------------------------------------------------------------------------
 */

/* The same xid on two connections: each gets the answer to its own call. */
static void same_xids(struct cf_test *t)
{
	struct cf_conn *conn[2] = { t->conn };
	struct cf_fh fh;

	if (!cf3_make_file(t, "connect-xid", 10, &fh))
		return;
	conn[1] = cf_open(t, NULL);
	if (!conn[1] || !cf_alive(t))
		return;
	for (int round = 0; round < 10; round++) {
		struct cf_call *c[2];

		for (int i = 0; i < 2; i++) {
			uint32_t xid = i ? c[0]->xid : 0;

			c[i] = cf3_lookup(t, &t->run->scratch, i ? "no-such-name" : "connect-xid");
			if (i) {
				c[i]->xid = xid;
				xdr_patch_u32(&c[i]->rpc, 0, xid);
			}
			t->conn = conn[i];
			if (!cf_send(t, c[i]))
				return;
		}
		for (int i = 0; i < 2; i++) {
			t->conn = conn[1 - i];
			struct cf_reply *r = cf_wait(t, c[1 - i]);
			if (!r || !cf_expect_success(t, r) ||
			    !cf3_status(t, r, i ? CF3_OK : CF3ERR_NOENT))
				return;
		}
	}
}

/* Client that permits the server one outstanding RDMA Read. */
static void one_read_at_a_time(struct cf_test *t)
{
	struct cf_conn_options o = cf_default_options(t->run);
	uint8_t data[4000];
	struct cf_call *calls[8];
	struct cf_fh fh;

	o.read_depth = 1;
	cf_fill_pattern(data, 3, sizeof(data));
	if (!cf_open(t, &o) || !cf3_make_file(t, "connect-depth", 0, &fh))
		return;
	unsigned n = cf_credits(t, rn_array_size(calls));
	for (unsigned i = 0; i < n; i++) {
		calls[i] = cf3_write(t, &fh, 0, sizeof(data), NULL);
		if (!cf_reduce(t, calls[i], data, sizeof(data), 12))
			return;
	}
	if (n && cf_many(t, calls, n, n, NULL))
		cf3_file_is(t, &fh, data, sizeof(data));
}

/* One connection breaks several rules in turn; a second works throughout. */
static void bad_neighbour(struct cf_test *t)
{
	struct cf_conn *good = t->conn;
	struct cf_fh fh;

	if (!cf3_make_file(t, "connect-good", 1000, &fh))
		return;
	for (int i = 0; i < 5; i++) {
		struct cf_conn *bad = cf_open(t, NULL);
		if (!bad)
			return;
		struct cf_call *c = cf3_read(t, &fh, 0, 1000);
		if (!cf_offer_write(t, c, 1000, 1))
			return;
		c->lists.write[0].seg[0].handle ^= 0x770000;
		if (!cf_refused_or_closed(t, c))
			return;
		cf_close(t, bad, false);
		t->conn = good;
		struct cf3_read_result got;
		c = cf3_read(t, &fh, 0, 1000);
		if (!cf_offer_write(t, c, 1000, 2))
			return;
		struct cf_reply *r = cf_ask(t, c);
		if (!r || !cf3_read_result(t, r, true, &got) ||
		    !cf_chunk_has_pattern(t, &c->lists.write[0], &r->h.lists.write[0], 0, 1000))
			return;
	}
}

/* ---- the same connection ----------------------------------------------------------------------
 */

/* An xid may come again when its transaction is complete; calls that change nothing run again. */
static void xid_again(struct cf_test *t)
{
	struct cf_fh fh;

	if (!cf3_make_file(t, "connect-again", 10, &fh))
		return;
	for (int i = 0; i < 6; i++) {
		struct cf_call *c =
			cf3_lookup(t, &t->run->scratch, i & 1 ? "no-such-name" : "connect-again");
		c->xid = 0xabcdef;
		xdr_patch_u32(&c->rpc, 0, c->xid);
		struct cf_reply *r = cf_ask(t, c);
		if (!r || !cf3_status(t, r, i & 1 ? CF3ERR_NOENT : CF3_OK))
			return;
	}
}

#define PRIVATE(n)                                                                                 \
	{                                                                                          \
		"connect-private-" #n, "RFC 8797 5.1", "private data of " #n " other bytes",       \
			other_private_data, n, CF_OWN_CONN                                         \
	}

static const struct cf_case cases[] = {
	{ "connect-at-once", "RFC 8166 3.3.3", "a call directly behind the connection's beginning",
	  connect_call_at_once, 0, CF_OWN_CONN },
	{ "connect-unused", "RFC 8166 3.3", "connections that are closed unused", never_used, 0,
	  0 },
	PRIVATE(1),
	PRIVATE(7),
	PRIVATE(20),
	PRIVATE(56),
	{ "connect-idle", "RFC 8167 6", "an idle connection stays, and nothing comes over it", idle,
	  0, 0 },
	{ "connect-drop", "RFC 8166 4.5.5", "disconnected with READs in flight", connect_drop,
	  DROP_POLITE, 0 },
	{ "connect-vanish", "RFC 8166 4.5.5", "a queue pair that vanishes with READs in flight",
	  connect_drop, 0, 0 },
	{ "connect-drop-long", "RFC 8166 4.5.5", "disconnected with Long Calls in flight",
	  connect_drop, DROP_POLITE | DROP_LONG_CALLS, 0 },
	{ "connect-vanish-writes", "RFC 8166 4.5.5",
	  "a queue pair that vanishes while its Read chunks are read", connect_drop, DROP_WRITES,
	  0 },
	{ "connect-same-xids", "RFC 8166 4.2.1", "the same xids on two connections", same_xids, 0,
	  0 },
	{ "connect-one-read", "RFC 8166 3.3.1", "a client that allows one RDMA Read at a time",
	  one_read_at_a_time, 0, CF_OWN_CONN },
	{ "connect-bad-neighbour", "RFC 8166 8.1.1",
	  "a connection that errs costs no other one anything", bad_neighbour, 0, 0 },
	{ "connect-xid-again", "RFC 8166 4.2.1", "an xid that is used again for another call",
	  xid_again, 0, 0 },
};

const struct cf_group cf_group_connect = { "connect", 1601, cases, rn_array_size(cases) };

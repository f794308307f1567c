/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of the reverse direction (RFC 8167) to a server that has made no call: RPC replies from
 * the client, which answer nothing. The server may drop them or the connection (section 6), but
 * must not answer them.
 */
#include <string.h>

#include "lib/util.h"
#include "tools/conform/conform_check.h"
#include "tools/conform/nfs3.h"

enum { PLAIN, WITH_CHUNKS, LONG, NO_CREDITS, DENIED, KINDS };

/* Builds a reply: xid, REPLY, and an accepted success or a denial. */
static struct cf_call *reply_message(struct cf_test *t, long kind)
{
	struct cf_call *c = cf3_null(t);

	xdr_out_rewind(&c->rpc, 4);
	xdr_put_u32(&c->rpc, 1);
	xdr_put_u32(&c->rpc, kind == DENIED);
	for (int i = 0; i < 3; i++)
		xdr_put_u32(&c->rpc, 0); /* verifier and SUCCESS; or RPC_MISMATCH 0..0 */
	if (kind == NO_CREDITS)
		c->credits = 0;
	if (kind == WITH_CHUNKS && (!cf_offer_write(t, c, 100, 2) || !cf_offer_reply(t, c, 100, 1)))
		return NULL;
	return kind != LONG || cf_make_long(t, c, 2) ? c : NULL;
}

/* True if no answer comes; the connection may have ended. */
static bool reverse_no_answer(struct cf_test *t, uint32_t xid)
{
	struct cf_received in;

	if (cf_conn_receive(t->conn, &in, cf_until(t, 300)) != CF_GOT_MESSAGE)
		return true;
	cf_fail(t, "no answer to a reply", "a message of %zu bytes to xid %08x", in.len, xid);
	cf_seen_words(t, in.data, in.len);
	return false;
}

static void one(struct cf_test *t)
{
	struct cf_call *c = reply_message(t, t->arg);

	if (c && cf_send(t, c) && reverse_no_answer(t, c->xid))
		cf_server_alive(t);
}

/* Client's reply with the xid of one of its own calls: the two directions are independent. */
static void with_xid_of_a_call(struct cf_test *t)
{
	struct cf_call *c = cf3_getattr(t, &t->run->scratch), *other = reply_message(t, PLAIN);

	other->xid = c->xid;
	xdr_patch_u32(&other->rpc, 0, c->xid);
	if (!cf_credits(t, 32) || !cf_send(t, c) || !cf_send(t, other))
		return;
	struct cf_reply *r = cf_wait(t, c);
	if (r && cf_expect_success(t, r) && cf3_status(t, r, CF3_OK) &&
	    reverse_no_answer(t, c->xid))
		cf_server_alive(t);
}

/* Sends replies between calls: every call is answered once. */
static void among_calls(struct cf_test *t)
{
	struct cf_call *calls[8];

	unsigned n = cf_credits(t, 2 * rn_array_size(calls)) / 2;
	for (unsigned i = 0; i < n; i++) {
		calls[i] = cf3_getattr(t, &t->run->scratch);
		struct cf_call *other = reply_message(t, i % KINDS);
		if (!other || !cf_send(t, other))
			return;
	}
	if (n && cf_many(t, calls, n, n, NULL) && reverse_no_answer(t, 0))
		cf_alive(t);
}

static const struct cf_case cases[] = {
	{ "reverse-reply", "RFC 8167 6", "an RPC reply from the client is not answered", one, PLAIN,
	  0 },
	{ "reverse-denied", "RFC 8167 6", "a denial from the client is not answered", one, DENIED,
	  0 },
	{ "reverse-chunks", "RFC 8167 5.3", "an RPC reply with chunks is not answered", one,
	  WITH_CHUNKS, 0 },
	{ "reverse-long", "RFC 8167 5.3", "an RPC reply in a position-zero chunk is not answered",
	  one, LONG, 0 },
	{ "reverse-no-credits", "RFC 8167 4.1",
	  "an RPC reply that grants no credits takes none of the other direction's", one,
	  NO_CREDITS, 0 },
	{ "reverse-same-xid", "RFC 8167 4.1", "an RPC reply with the xid of a call in flight",
	  with_xid_of_a_call, 0, 0 },
	{ "reverse-among-calls", "RFC 8167 4.1", "RPC replies among calls: each call is answered",
	  among_calls, 0, 0 },
};

const struct cf_group cf_group_reverse = { "reverse", 2001, cases, rn_array_size(cases) };

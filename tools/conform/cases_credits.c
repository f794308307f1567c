/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Credits (RFC 8166 section 3.3.1), and calls in flight together. That a grant is in every reply
 * and never zero is also checked in every other case.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "tools/conform/conform_check.h"
#include "tools/conform/nfs3.h"

#define WINDOW_MAX 512u /* most calls in flight, even if the server grants more */

static struct cf_conn_options wide(struct cf_test *t)
{
	struct cf_conn_options o = cf_default_options(t->run);

	o.recvs = WINDOW_MAX + 1;
	o.sends = WINDOW_MAX + 1;
	return o;
}

static bool open_wide(struct cf_test *t)
{
	struct cf_conn_options o = wide(t);

	return cf_open(t, &o) != NULL;
}

/* Asks for t->arg credits. The grant must be usable: that many calls at once are answered. */
static void asks_for(struct cf_test *t)
{
	uint32_t want = (uint32_t)t->arg;

	if (!open_wide(t))
		return;
	struct cf_call *c = cf_call_new_none(t, CF_PROG_NFS, 3, 0);
	c->credits = want;
	struct cf_reply *r = cf_ask(t, c);
	if (!r)
		return;
	unsigned n = rn_min(rn_min(want ? want : 1, r->h.credits), WINDOW_MAX);
	struct cf_call **calls = cf_alloc(t, n * sizeof(*calls));
	for (unsigned i = 0; i < n; i++) {
		calls[i] = cf_call_new_none(t, CF_PROG_NFS, 3, 0);
		calls[i]->credits = want;
	}
	cf_many(t, calls, n, n, NULL);
}

/* ---- a grant in every kind of reply -----------------------------------------------------------
 */

enum { IN_SUCCESS, IN_NFS_ERROR, IN_REFUSAL, IN_DENIAL, IN_ERR_VERS, IN_ERR_CHUNK, IN_LONG_REPLY };

/* Provokes each kind of reply; cf_answers(), through which every reply goes, checks the grant. */
static void grant_in(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);

	switch (t->arg) {
	case IN_NFS_ERROR:
		c = cf3_lookup(t, &t->run->scratch, "no-such-name");
		break;
	case IN_REFUSAL:
		c = cf_call_new_none(t, 399999, 1, 0);
		break;
	case IN_DENIAL:
		xdr_patch_u32(&c->rpc, 8, 3); /* RPC version 3 */
		break;
	case IN_ERR_VERS:
		c->vers = 2;
		break;
	case IN_ERR_CHUNK:
		c->proc = 77;
		break;
	case IN_LONG_REPLY:
		c = cf3_readdirplus(t, &t->run->scratch, 2048, 4096);
		if (!cf_offer_reply(t, c, 8192, 1))
			return;
		break;
	}
	struct cf_reply *r = cf_ask_any(t, c);
	if (!r)
		return;
	bool err = r->h.proc == CF_ERROR;
	if (err != (t->arg == IN_ERR_VERS || t->arg == IN_ERR_CHUNK))
		cf_fail(t, err ? "an RPC reply" : "RDMA_ERROR", err ? "RDMA_ERROR" : "a reply");
	else
		cf_alive(t);
}

/* ---- all credits ------------------------------------------------------------------------------
 */

enum { USE_NULL, USE_LONG_CALLS, USE_READS, USE_LOOKUPS, USE_ERRORS, USE_WRITES };

#define PIECE 256u

static struct cf_call *credits_make_call(struct cf_test *t, const struct cf_fh *fh, unsigned i)
{
	uint8_t data[PIECE];
	struct cf_call *c = cf3_null(t);

	switch (t->arg) {
	case USE_LONG_CALLS:
		return cf_make_long(t, c, 2) ? c : NULL;
	case USE_READS:
		c = cf3_read(t, fh, i * PIECE, PIECE);
		return cf_offer_write(t, c, PIECE, 1 + i % 3) ? c : NULL;
	case USE_LOOKUPS:
		return cf3_lookup(t, &t->run->scratch, i % 2 ? "credit-file" : "no-such-name");
	case USE_ERRORS:
		if (i % 2)
			c->proc = 99;
		return c;
	case USE_WRITES:
		cf_fill_pattern(data, i * PIECE, PIECE);
		c = cf3_write(t, fh, i * PIECE, PIECE, NULL);
		return cf_reduce(t, c, data, PIECE, 1 + i % 3) ? c : NULL;
	default:
		return c;
	}
}

static bool right_answer(struct cf_test *t, unsigned i, struct cf_call *c, struct cf_reply *r)
{
	struct cf3_read_result got;

	switch (t->arg) {
	case USE_READS:
		return cf3_read_result(t, r, true, &got) &&
		       cf_chunk_has_pattern(t, &c->lists.write[0], &r->h.lists.write[0], i * PIECE,
					    PIECE);
	case USE_LOOKUPS:
		return cf3_status(t, r, i % 2 ? CF3_OK : CF3ERR_NOENT);
	case USE_ERRORS:
		return i % 2 ? cf_expect_err_chunk(t, r) : cf_expect_success(t, r);
	case USE_WRITES:
		return cf_expect_success(t, r) && cf3_status(t, r, CF3_OK);
	default:
		return cf_expect_success(t, r);
	}
}

/* Sends rounds of as many calls as there are credits, with all of them in flight. */
static void all_credits(struct cf_test *t)
{
	struct cf_fh fh;

	if (!open_wide(t))
		return;
	unsigned window = cf_credits(t, 128);
	if (!window)
		return;
	unsigned n = window < 43 ? 3 * window : 128;
	bool writes = t->arg == USE_WRITES;
	if (!cf3_make_file(t, "credit-file", writes ? 0 : n * PIECE, &fh))
		return;
	struct cf_call **calls = cf_alloc(t, n * sizeof(*calls));
	for (unsigned i = 0; i < n; i++)
		if (!(calls[i] = credits_make_call(t, &fh, i)))
			return;
	if (!cf_many(t, calls, n, window, right_answer) || !cf_silence(t, 50) || !writes)
		return;
	uint8_t *all = cf_alloc(t, n * PIECE);
	cf_fill_pattern(all, 0, n * PIECE);
	cf3_file_is(t, &fh, all, n * PIECE);
}

/* Sends ten times as many calls as credits, a new one after each reply: every reply must renew the
 * grant. */
static void credits_sustained(struct cf_test *t)
{
	if (!open_wide(t))
		return;
	unsigned window = cf_credits(t, 64);
	unsigned n = 10 * window;
	struct cf_call **calls = cf_alloc(t, (n + 1) * sizeof(*calls));

	for (unsigned i = 0; i < n; i++)
		calls[i] = cf3_getattr(t, &t->run->scratch);
	if (window)
		cf_many(t, calls, n, window, NULL);
}

/* ---- more than the credits --------------------------------------------------------------------
 */

/* The server may end this connection, but must serve other connections. */
static void overrun(struct cf_test *t)
{
	struct cf_conn *other = t->conn;
	struct cf_conn_options o = wide(t);
	struct cf_received in;

	o.rnr_retry = 0;
	struct cf_conn *mine = cf_open(t, &o);
	if (!mine)
		return;
	unsigned n = 4 * cf_credits(t, 128) + 64;
	uint8_t *msg = cf_alloc(t, CF_INLINE_MAX);
	for (unsigned i = 0; i < n; i++) {
		size_t len = cf_call_encode(cf3_getattr(t, &t->run->scratch), msg);
		if (cf_conn_send(mine, msg, len, t->deadline) < 0)
			break;
	}
	/* Accepts answers to some calls, then silence or the end of the connection. */
	while (cf_conn_receive(mine, &in, cf_until(t, 300)) == CF_GOT_MESSAGE)
		;
	t->conn = other;
	if (!cf_alive(t))
		return;
	cf_close(t, mine, false);
	if (cf_open(t, NULL))
		cf_alive(t);
}

#define ASKS(n, name, what)                                                                        \
	{                                                                                          \
		"credits-ask-" name, "RFC 8166 3.3.1", "a client that asks for " what, asks_for,   \
			(long)(n), CF_OWN_CONN                                                     \
	}
#define GRANT(kind, name, what)                                                                    \
	{                                                                                          \
		"credits-in-" name, "RFC 8166 3.3.1", what " carries a grant", grant_in, kind, 0   \
	}
#define ALL(kind, name, what)                                                                      \
	{                                                                                          \
		"credits-all-" name, "RFC 8166 3.3.1", "all credits in use by " what, all_credits, \
			kind, CF_OWN_CONN                                                          \
	}

static const struct cf_case cases[] = {
	ASKS(0, "0", "no credits"),
	ASKS(1, "1", "one credit"),
	ASKS(7, "7", "seven credits"),
	ASKS(0x7fffffff, "2-31", "2^31-1 credits"),
	ASKS(0xffffffff, "2-32", "2^32-1 credits"),
	GRANT(IN_SUCCESS, "success", "a successful reply"),
	GRANT(IN_NFS_ERROR, "nfs-error", "an NFS error"),
	GRANT(IN_REFUSAL, "refusal", "PROG_UNAVAIL"),
	GRANT(IN_DENIAL, "denial", "MSG_DENIED"),
	GRANT(IN_ERR_VERS, "err-vers", "ERR_VERS"),
	GRANT(IN_ERR_CHUNK, "err-chunk", "ERR_CHUNK"),
	GRANT(IN_LONG_REPLY, "long-reply", "a Long Reply"),
	ALL(USE_NULL, "null", "NULL calls: each answered once"),
	ALL(USE_LONG_CALLS, "long-calls", "Long Calls"),
	ALL(USE_READS, "reads", "READs: each gets its own data"),
	ALL(USE_WRITES, "writes", "WRITEs: each from its own chunk"),
	ALL(USE_LOOKUPS, "lookups", "LOOKUPs, good and bad: each gets its own answer"),
	ALL(USE_ERRORS, "errors", "calls of which every other is wrong"),
	{ "credits-sustained", "RFC 8166 3.3.1", "all credits in use, again and again",
	  credits_sustained, 0, CF_OWN_CONN },
	{ "credits-overrun", "RFC 8166 3.3.1",
	  "many more calls than credits cost their own connection at most", overrun, 0, 0 },
};

const struct cf_group cf_group_credits = { "credits", 1401, cases, rn_array_size(cases) };

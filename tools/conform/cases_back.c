/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of the server over a connection of this tool (RFC 8167): their form, their length, and the
 * credits of the reverse direction. back.c checks each callback in every one of these cases.
 */
#include <string.h>

#include "lib/util.h"
#include "tools/conform/back.h"
#include "tools/conform/conform_check.h"

#define SLOTS 16u
#define WAITERS 12u
#define QUIET_MS 300

/* ---- form -------------------------------------------------------------------------------------
 */

/* A callback is made and answered; then the connection serves, and SEQUENCE says that all is well. */
static void back_call_answered(struct cf_test *t)
{
	struct cf_back_options o = { .slots = 1, .grant = 1 };
	struct cf_back *b = cf_back_begin(t, &o);

	if (!b || !cf_back_provoke(t, b, 1) || !cf_back_ask_flags(t, b))
		return;
	if (b->s->flags & CF_CB_FLAGS)
		cf_fail(t, "no flag of the back channel in SEQUENCE", "%x", b->s->flags);
	else
		cf_alive(t);
}

/* Without a back channel the server may not call (section 6). */
static void unasked(struct cf_test *t)
{
	struct cf_back_options o = { .slots = 1, .grant = 1, .unasked = true };
	struct cf_back *b = cf_back_begin(t, &o);

	if (b && cf_back_block(t, b, 2) && cf_back_release(t, b))
		cf_back_quiet(t, b, QUIET_MS,
			      "no call before the client has asked for a back channel");
}

/* Takes one message. False: none came for a while, or verdict. */
static bool take_long(struct cf_test *t, struct cf_back *b)
{
	struct cf_reply *r = cf_next_until(t, cf_until(t, QUIET_MS));

	if (!r)
		return false;
	if (r->len > t->conn->reply_inline)
		return cf_fail(t, "no callback above the inline threshold", "one of %zu bytes",
			       r->len);
	return r->h.proc == CF_NOMSG ? cf_back_error(t, b, r->h.xid, CF_ERR_CHUNK)
				     : t->take_call(t, r);
}

/*
 * A waiter's owner is so long that CB_NOTIFY_LOCK is longer than the client can receive. The server
 * may leave it, or send it as a Long Call, which is answered by ERR_CHUNK; a shorter one comes.
 */
static void back_call_too_long(struct cf_test *t)
{
	struct cf_back_options o = { .slots = SLOTS, .grant = 8, .size = 4096 };
	struct cf_conn_options co = cf_default_options(t->run);
	uint8_t private[CF_PRIVATE_SIZE], owner[CF4_OWNER_MAX];

	cf_private_encode(private, false, 4096, CF_INLINE_MIN);
	co.private_data = private;
	co.private_len = sizeof(private);
	co.recv_size = 4096;
	if (!cf_open(t, &co))
		return;
	if (t->conn->call_inline < 2048) {
		cf_skip(t, "the server takes no messages longer than %u bytes",
			t->conn->call_inline);
		return;
	}
	struct cf_back *b = cf_back_begin(t, &o);
	memset(owner, 'o', sizeof(owner));
	if (!b || !cf_back_block(t, b, 1))
		return;
	struct cf4_lock l = { owner, sizeof(owner), CF4_WRITEW_LT, b->held.offset + 1, 1 };
	if (!cf4_lock_denied(t, b->s, &b->file, &l) || !cf_back_release(t, b))
		return;
	while (take_long(t, b))
		;
	if (t->verdict == CF_PASS && cf_back_goes_on(t, b))
		cf_alive(t);
}

/* ---- credits ----------------------------------------------------------------------------------
 */

/* Answers what comes until n callbacks have come. */
static bool answer_all(struct cf_test *t, struct cf_back *b, unsigned n)
{
	struct cf_callback *cb;

	b->o.hold = b->o.mute = false;
	while ((cb = cf_back_unanswered(t, b)))
		if (!cf_back_reply(t, b, cb))
			return false;
	if (cf_back_wait(t, b, n, t->deadline))
		return true;
	return cf_fail(t, "a callback for each waiter, as there are credits", "%u of %u", b->ngot,
		       n);
}

/* One credit before the first grant: the server's first call is not answered for a while. */
static void before_a_grant(struct cf_test *t)
{
	struct cf_back_options o = { .slots = SLOTS, .grant = 8, .mute = true };
	struct cf_back *b = cf_back_begin(t, &o);

	if (!b || !cf_back_block(t, b, WAITERS) || !cf_back_release(t, b))
		return;
	if (!cf_back_wait(t, b, 1, t->deadline)) {
		cf_skip(t, "the server tells no waiter of an unlock");
		return;
	}
	if (!cf_back_quiet(t, b, QUIET_MS, "one call before the first grant"))
		return;
	unsigned more = b->got[0].op == CF_CB_NOTIFY_LOCK ? 0 : 1;
	if (answer_all(t, b, more + WAITERS))
		cf_alive(t);
}

/* Each reply grants t->arg credits: as many calls come at once at most, and all of them come. */
static void granted(struct cf_test *t)
{
	struct cf_back_options o = { .slots = SLOTS, .grant = (uint32_t)t->arg };
	struct cf_back *b = cf_back_begin(t, &o);

	if (!b || !cf_back_provoke(t, b, 1))
		return;
	b->o.hold = true;
	for (unsigned round = 1; round <= 3; round++) {
		unsigned before = b->ngot;
		b->o.hold = true;
		/* back.c counts those under way. */
		if (!cf_back_provoke(t, b, WAITERS))
			return;
		cf_back_wait(t, b, before + WAITERS, cf_until(t, QUIET_MS));
		if (t->verdict != CF_PASS || !answer_all(t, b, before + WAITERS))
			return;
	}
	cf_alive(t);
}

/* Eight are granted, and then one, while calls are under way: no further one comes until all of
 * them have been answered. */
static void lowered(struct cf_test *t)
{
	struct cf_back_options o = { .slots = SLOTS, .grant = 8 };
	struct cf_back *b = cf_back_begin(t, &o);
	struct cf_callback *cb;

	if (!b || !cf_back_provoke(t, b, 1))
		return;
	b->o.hold = true;
	if (!cf_back_provoke(t, b, WAITERS))
		return;
	cf_back_wait(t, b, 1 + WAITERS, cf_until(t, QUIET_MS));
	if (t->verdict != CF_PASS)
		return;
	if (cf_back_under_way(t, b) < 3) {
		cf_skip(t, "the server has %u call under way at most", cf_back_under_way(t, b));
		return;
	}
	b->o.grant = 1;
	while (cf_back_under_way(t, b) > 1) {
		cb = cf_back_unanswered(t, b);
		if (!cf_back_reply(t, b, cb) ||
		    !cf_back_quiet(t, b, QUIET_MS / 4, "no call above the credits granted last"))
			return;
	}
	if (answer_all(t, b, 1 + WAITERS))
		cf_alive(t);
}

/* Callbacks that wait for a reply, and for credits, do not hold up the client's own calls. */
static void calls_go_on(struct cf_test *t)
{
	struct cf_back_options o = { .slots = SLOTS, .grant = 1 };
	struct cf_back *b = cf_back_begin(t, &o);
	struct cf_call *calls[64];

	if (!b || !cf_back_provoke(t, b, 1))
		return;
	b->o.hold = true;
	unsigned window = rn_min(cf_credits(t, 16), 16);
	if (!window || !cf_back_provoke(t, b, WAITERS))
		return;
	for (unsigned i = 0; i < rn_array_size(calls); i++)
		calls[i] = cf_call_new_none(t, CF_PROG_NFS, 3, 0);
	if (cf_many(t, calls, rn_array_size(calls), window, NULL))
		answer_all(t, b, 1 + WAITERS);
}

/* Callbacks by the hundred, among calls: each is answered, and none costs the connection. */
static void back_calls_sustained(struct cf_test *t)
{
	struct cf_back_options o = { .slots = SLOTS, .grant = 4 };
	struct cf_back *b = cf_back_begin(t, &o);

	for (unsigned i = 0; b && i < 20; i++) {
		struct cf_memory *mark = cf_mark(t);
		unsigned before = b->ngot;
		if (!cf_back_provoke(t, b, WAITERS) || !answer_all(t, b, before + WAITERS))
			return;
		cf_release(t, mark);
	}
	if (b)
		cf_alive(t);
}

#define GRANT(n, name, what)                                                                       \
	{                                                                                          \
		"back-credits-" name, "RFC 8167 4.1", "a client that grants " what " per reply",   \
			granted, (long)(n), CF_NFS4                                                \
	}

static const struct cf_case cases[] = {
	{ "back-call", "RFC 8167 5.1", "a callback is made and answered over the connection",
	  back_call_answered, 0, CF_NFS4 },
	{ "back-unasked", "RFC 8167 6", "no callback to a client that asked for no back channel",
	  unasked, 0, CF_NFS4 },
	{ "back-too-long", "RFC 8167 4.2", "no callback longer than the client's Receives",
	  back_call_too_long, 0, CF_NFS4 | CF_OWN_CONN },
	{ "back-first-credit", "RFC 8166 3.3.3", "one callback until the first one is answered",
	  before_a_grant, 0, CF_NFS4 },
	GRANT(1, "1", "one credit"),
	GRANT(2, "2", "two credits"),
	GRANT(16, "16", "sixteen credits"),
	GRANT(0xffffffff, "2-32", "2^32-1 credits"),
	GRANT(0, "0", "no credit, which leaves one"),
	{ "back-credits-lowered", "RFC 8167 4.1",
	  "a grant that is lowered while callbacks are "
	  "under way",
	  lowered, 0, CF_NFS4 },
	{ "back-calls-go-on", "RFC 8167 4.1",
	  "callbacks without an answer do not hold up the client's calls", calls_go_on, 0,
	  CF_NFS4 },
	{ "back-sustained", "RFC 8167 4.1", "240 callbacks, each answered", back_calls_sustained, 0,
	  CF_NFS4 | CF_LONG },
};

const struct cf_group cf_group_back = { "back", 2401, cases, rn_array_size(cases) };

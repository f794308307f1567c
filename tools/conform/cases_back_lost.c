/* SPDX-License-Identifier: BSD-2-Clause */
/* Callbacks without an answer: given up, answered too late, and those whose connection is lost. */
#include "lib/util.h"
#include "tools/conform/back.h"
#include "tools/conform/conform_check.h"

#define SLOTS 8u
#define LOOK_MS 50
#define PROVOKE_LOOKS 40u

/* A callback that the tool keeps. */
static struct cf_callback *held(struct cf_test *t, struct cf_back **b, uint32_t slots)
{
	struct cf_back_options o = { .slots = slots, .grant = 1, .hold = true };

	*b = cf_back_begin(t, &o);
	return *b ? cf_back_provoke(t, *b, 1) : NULL;
}

/* The server gives the callback up, and says so; the client's calls go on, and no second call uses
 * the credit of the first. */
static void no_reply(struct cf_test *t)
{
	struct cf_back *b;

	if (!held(t, &b, SLOTS) || !cf_back_await_flags(t, b))
		return;
	b->o.mute = true;
	if (!(b->s->flags & CF_BACKCHANNEL_FAULT) && !cf_back_bind(t, b))
		return;
	if (cf_back_ask_flags(t, b) &&
	    cf_back_quiet(t, b, 300, "no callback while the only credit is in use"))
		cf_alive(t);
}

/* The reply comes when the callback has been given up: its credit is there again. */
static void late_reply(struct cf_test *t)
{
	struct cf_back *b;
	struct cf_callback *cb = held(t, &b, SLOTS);

	if (cb && cf_back_await_flags(t, b) && cf_back_reply(t, b, cb) && cf_alive(t) &&
	    cf_back_goes_on(t, b))
		cf_alive(t);
}

/* Ends the connection while a callback is under way. */
static bool lose(struct cf_test *t, struct cf_back *b)
{
	struct cf_conn *gone = t->conn;

	cf_back_moved(b, gone);
	cf_close(t, gone, t->arg);
	return cf_open(t, NULL) != NULL;
}

/* SEQUENCE over a new connection says that there is no path; bound to it, the back channel goes on.
 * back.c checks that a slot with a lost call is not used for another. */
static void back_lost_disconnected(struct cf_test *t)
{
	struct cf_back *b;

	if (held(t, &b, SLOTS) && lose(t, b) && cf_back_await_flags(t, b) && cf_back_goes_on(t, b))
		cf_alive(t);
}

/* The connection goes, and the client with it. */
static void vanished(struct cf_test *t)
{
	struct cf_back *b;

	if (!held(t, &b, 1) || !lose(t, b))
		return;
	b->is_open = false;
	t->session = NULL;
	cf_alive(t);
}

/* With callbacks that wait for a credit, too. */
static void disconnected_with_many(struct cf_test *t)
{
	struct cf_back *b;

	if (held(t, &b, SLOTS) && cf_back_block(t, b, 20) && cf_back_release(t, b) && lose(t, b) &&
	    cf_back_await_flags(t, b) && cf_back_goes_on(t, b))
		cf_alive(t);
}

/* Opens a second connection and binds it; t->conn is the second. */
static struct cf_conn *bind_second(struct cf_test *t, struct cf_back *b)
{
	struct cf_conn *first = t->conn;

	return cf_open(t, NULL) && cf_back_bind(t, b) ? first : NULL;
}

/* Waits on both connections; t->conn becomes the one with the callback. A server that is told of the
 * second connection at that moment may lose one callback, so they are provoked again. */
static struct cf_callback *on_either(struct cf_test *t, struct cf_back *b, struct cf_conn *other)
{
	const unsigned before = b->ngot;

	for (unsigned looks = 0; cf_now_ms() < t->deadline; looks++) {
		if (looks % PROVOKE_LOOKS == 0 &&
		    (!cf_back_block(t, b, 1) || !cf_back_release(t, b)))
			return NULL;
		if (cf_back_wait(t, b, before + 1, cf_until(t, LOOK_MS)))
			return &b->got[before];
		if (t->verdict != CF_PASS)
			return NULL;
		struct cf_conn *now = t->conn;
		t->conn = other;
		other = now;
	}
	cf_skip(t, "the server tells no waiter of an unlock");
	return NULL;
}

/*
 * Two connections are bound, and the one with the callback is lost. The server may send it over the
 * other, which is then the same request in the same slot; callbacks go on over it in any case.
 */
static void back_lost_other_conn(struct cf_test *t)
{
	struct cf_back_options o = { .slots = SLOTS, .grant = 1, .hold = true };
	struct cf_back *b = cf_back_begin(t, &o);
	struct cf_conn *first = b ? bind_second(t, b) : NULL;

	struct cf_conn *second = t->conn;
	if (!first || !on_either(t, b, first))
		return;
	struct cf_conn *gone = t->conn;
	cf_back_moved(b, gone);
	t->conn = gone == first ? second : first;
	cf_close(t, gone, t->arg);
	b->o.hold = false;
	if (cf_back_goes_on(t, b))
		cf_alive(t);
}

/* Callbacks come over connections that are bound, and over no other. */
static void unbound_connection(struct cf_test *t)
{
	struct cf_back_options o = { .slots = SLOTS, .grant = 4 };
	struct cf_back *b = cf_back_begin(t, &o);
	struct cf_conn *bound = t->conn;

	if (!b || !cf_back_provoke(t, b, 1) || !cf_open(t, NULL))
		return;
	if (!cf_back_block(t, b, 4) || !cf_back_release(t, b) ||
	    !cf_back_quiet(t, b, 200, "no callback over a connection that was not bound"))
		return;
	t->conn = bound;
	if (cf_back_wait(t, b, 5, t->deadline))
		cf_alive(t);
	else
		cf_fail(t, "the callbacks over the connection that is bound", "%u of 4",
			b->ngot - 1);
}

static const struct cf_case cases[] = {
	{ "back-no-reply", "RFC 8881 18.46.3", "a callback without an answer is told by SEQUENCE",
	  no_reply, 0, CF_NFS4 | CF_LONG },
	{ "back-late-reply", "RFC 8167 4.1",
	  "a reply to a callback that was given up gives its "
	  "credit back",
	  late_reply, 0, CF_NFS4 | CF_LONG },
	{ "back-disconnect", "RFC 8881 2.10.6.2", "the client disconnects during a callback",
	  back_lost_disconnected, 1, CF_NFS4 | CF_LONG },
	{ "back-drop", "RFC 8881 2.10.6.2", "the connection is lost during a callback",
	  back_lost_disconnected, 0, CF_NFS4 | CF_LONG },
	{ "back-drop-many", "RFC 8881 2.10.6.2",
	  "the connection is lost while callbacks wait for credits", disconnected_with_many, 0,
	  CF_NFS4 | CF_LONG },
	{ "back-vanish", "RFC 8881 2.10.6.2", "the client goes for good during a callback",
	  vanished, 1, CF_NFS4 },
	{ "back-other-conn", "RFC 8881 2.10.6.2",
	  "one of two connections is closed during a callback", back_lost_other_conn, 1,
	  CF_NFS4 | CF_LONG },
	{ "back-other-conn-drop", "RFC 8881 2.10.6.2",
	  "one of two connections is lost during a callback", back_lost_other_conn, 0,
	  CF_NFS4 | CF_LONG },
	{ "back-unbound", "RFC 8881 2.10.3.1", "no callback over a connection that is not bound",
	  unbound_connection, 0, CF_NFS4 },
};

const struct cf_group cf_group_back_lost = { "back-lost", 2601, cases, rn_array_size(cases) };

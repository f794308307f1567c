/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The window of sequence numbers (RFC 2203 section 5.3.3.1) and the credits of the connection (RFC 8166 section 3.3.1): both let
 * calls pass each other, and a call that is discarded has no reply that could carry a grant.
 */
#include "lib/util.h"
#include "tools/conform/conform_check.h"
#include "tools/conform/gss_check.h"

#define CALLS_MAX 128u
#define COUNT 2000u /* bytes of a READ whose reply is a long one */
#define SILENCE_MS 100

static bool getattr_is_right(struct cf_test *t, unsigned i, struct cf_call *c, struct cf_reply *r)
{
	(void)i;
	return cf_expect_success(t, r) && cf_gss_results(t, c, r) && cf3_status(t, r, CF3_OK);
}

static bool read_is_right(struct cf_test *t, unsigned i, struct cf_call *c, struct cf_reply *r)
{
	(void)i;
	return cf_expect_success(t, r) && cf_gss_results(t, c, r) && cf_gss_read_is(t, r, COUNT);
}

static bool gss_window_is_denied(struct cf_test *t, unsigned i, struct cf_call *c,
				 struct cf_reply *r)
{
	(void)i, (void)c;
	if (r->h.proc != CF_ERROR && !r->accepted && r->stat == CF_GSS_CREDPROBLEM)
		return true;
	return cf_fail(t, "MSG_DENIED, RPCSEC_GSS_CREDPROBLEM", "another answer");
}

static struct cf_call *getattr_as(struct cf_test *t, enum cf_service s, uint32_t seq)
{
	struct cf_call *c = cf3_getattr(t, &t->run->scratch);

	return cf_gss_protect_as(t, c, s, seq) ? c : NULL;
}

/* Begins on a wide connection; 0: verdict, else how many calls may be under way. */
static unsigned gss_window_begin(struct cf_test *t, enum cf_service s)
{
	if (!cf_gss_open_wide(t) || !cf_gss_begin(t, s))
		return 0;
	return cf_credits(t, CALLS_MAX);
}

/* ---- numbers in another order -----------------------------------------------------------------
 */

enum { DESCENDING, INTERLEAVED, LONG_REPLIES };

/* As many calls in flight as credits and window allow, and a service each in turn that --gss names. */
static void out_of_order(struct cf_test *t)
{
	struct cf_fh fh;
	unsigned n = gss_window_begin(t, t->arg == LONG_REPLIES ? CF_KRB5P : CF_KRB5);

	n = rn_min(n, t->gss ? t->gss->window : 0);
	if (!n || !cf_gss_file(t, COUNT, &fh))
		return;
	struct cf_call **calls = cf_alloc(t, n * sizeof(*calls));
	for (unsigned i = 0; i < n; i++) {
		unsigned place = t->arg == DESCENDING ? n - i : i % 2 ? i : n - i - n % 2;
		enum cf_service s = t->run->gss_flavors & 1u << (1 + i % 3) ? 1 + i % 3 : CF_KRB5;
		struct cf_call *c = t->arg == LONG_REPLIES ? cf3_read(t, &fh, 0, COUNT)
							   : cf3_getattr(t, &t->run->scratch);

		if (!cf_gss_protect_as(t, c, t->arg == LONG_REPLIES ? CF_KRB5P : s, 1000 + place))
			return;
		if (t->arg == LONG_REPLIES && !cf_offer_reply(t, c, COUNT + 1024, 1))
			return;
		calls[i] = c;
	}
	t->gss->seq = 2000;
	if (cf_many(t, calls, n, n, t->arg == LONG_REPLIES ? read_is_right : getattr_is_right) &&
	    cf_silence(t, SILENCE_MS))
		cf_gss_works(t, CF_KRB5);
}

/* The window ends at the last number seen, and is as long as the server has said. */
static void edges(struct cf_test *t)
{
	static const uint32_t far = 5000000;
	enum cf_service s = t->arg;

	if (!cf_gss_begin(t, s))
		return;
	uint32_t low = far - t->gss->window;
	struct cf_call *first = getattr_as(t, s, far), *lowest = getattr_as(t, s, low + 1),
		       *below = getattr_as(t, s, low);
	t->gss->seq = far;
	if (!first || !lowest || !below || !cf_gss_ask(t, first) || !cf_gss_ask(t, lowest))
		return;
	if (cf_send(t, below) && cf_silence(t, SILENCE_MS) && cf_alive(t))
		cf_gss_works(t, s);
}

/* A number that a wrong MIC comes with does not move the window. */
static void forged(struct cf_test *t)
{
	if (!cf_gss_begin(t, CF_KRB5))
		return;
	struct cf_call *c = getattr_as(t, CF_KRB5, 700000000);
	if (!c)
		return;
	c->rpc.base[c->head - 1] ^= 1;
	if (cf_gss_denied(t, c, CF_GSS_CREDPROBLEM))
		cf_gss_works(t, CF_KRB5);
}

/* The same xid with a new number: the verifier is that of the new one (section 5.3.3.1). */
static void retransmitted(struct cf_test *t)
{
	enum cf_service s = t->arg;

	if (!cf_gss_begin(t, s))
		return;
	struct cf_call *c = cf_gss_getattr(t, s);
	if (!c || !cf_gss_ask(t, c) || !cf_reopen(t))
		return;
	struct cf_call *again = cf3_getattr(t, &t->run->scratch);
	again->xid = c->xid;
	xdr_patch_u32(&again->rpc, 0, c->xid);
	struct cf_reply *r = cf_gss_protect(t, again, s) ? cf_gss_ask(t, again) : NULL;
	if (r)
		cf3_status(t, r, CF3_OK);
}

/* ---- calls that are discarded -----------------------------------------------------------------
 */

enum { DROP_INLINE, DROP_LONG, DROP_CHUNK, DROP_REPLY_CHUNK, DROP_BELOW, DROP_KRB5P };

/* A call with the lists that t->arg asks for; that of DROP_BELOW has a number that was never used. */
static struct cf_call *to_drop(struct cf_test *t, const struct cf_fh *fh)
{
	uint8_t data[256] = { 0 };
	struct cf_call *c;

	switch (t->arg) {
	case DROP_CHUNK:
		c = cf3_write(t, fh, 0, sizeof(data), NULL);
		return cf_reduce(t, c, data, sizeof(data), 2) && cf_gss_protect(t, c, CF_KRB5)
			       ? c
			       : NULL;
	case DROP_LONG:
		c = cf_gss_getattr(t, CF_KRB5);
		return c && cf_make_long(t, c, 2) ? c : NULL;
	case DROP_REPLY_CHUNK:
		c = cf_gss_read(t, fh, COUNT, CF_KRB5);
		return c && cf_offer_write(t, c, COUNT, 1) && cf_offer_reply(t, c, COUNT + 1024, 1)
			       ? c
			       : NULL;
	case DROP_BELOW:
		return getattr_as(t, CF_KRB5, 1000);
	default:
		return cf_gss_getattr(t, t->arg == DROP_KRB5P ? CF_KRB5P : CF_KRB5);
	}
}

/* Sends a call that a server must have seen or must take for too old. */
static struct cf_call *prepare_drop(struct cf_test *t, const struct cf_fh *fh)
{
	if (t->arg == DROP_BELOW) {
		t->gss->seq = 5000000;
		if (!cf_gss_works(t, CF_KRB5))
			return NULL;
		return to_drop(t, fh);
	}
	struct cf_call *c = to_drop(t, fh);
	return c && cf_gss_ask(t, c) ? c : NULL;
}

static bool full_window(struct cf_test *t, unsigned n, bool good)
{
	struct cf_call **calls = cf_alloc(t, n * sizeof(*calls));

	for (unsigned i = 0; i < n; i++) {
		calls[i] = cf_gss_getattr(t, CF_KRB5);
		if (!calls[i])
			return false;
		if (!good)
			calls[i]->rpc.base[calls[i]->head - 1] ^= 1;
	}
	return cf_many(t, calls, n, n, good ? getattr_is_right : gss_window_is_denied);
}

/* All credits go to discarded calls, and then to good ones, three times. */
static void gss_window_dropped(struct cf_test *t)
{
	unsigned n = gss_window_begin(t, t->arg == DROP_KRB5P ? CF_KRB5P : CF_KRB5);
	struct cf_fh fh;

	if (!n || !cf_gss_file(t, COUNT, &fh))
		return;
	struct cf_call *c = prepare_drop(t, &fh);
	if (!c)
		return;
	n = rn_min(n, t->gss->window);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < n; i++)
			if (!cf_send(t, c))
				return;
		if (!cf_silence(t, SILENCE_MS) || !full_window(t, n, true))
			return;
	}
	cf_alive(t);
}

static void replayed_elsewhere(struct cf_test *t)
{
	if (!cf_gss_begin(t, CF_KRB5))
		return;
	struct cf_call *c = cf_gss_getattr(t, CF_KRB5);
	if (!c || !cf_gss_ask(t, c) || !cf_open(t, NULL))
		return;
	if (cf_send(t, c) && cf_silence(t, SILENCE_MS) && cf_alive(t))
		cf_gss_works(t, CF_KRB5);
}

/* All credits go to calls that are denied, and then to good ones. */
static void denied(struct cf_test *t)
{
	unsigned n = gss_window_begin(t, CF_KRB5);

	n = rn_min(n, t->gss ? t->gss->window : 0);
	if (n && full_window(t, n, false) && full_window(t, n, true) && full_window(t, n, false))
		full_window(t, n, true);
}

#define R2203 "RFC 2203 5.3.3.1"
#define OWN (CF_GSS | CF_OWN_CONN)

static const struct cf_case cases[] = {
	{ "gss-window-descending", R2203,
	  "all credits in use, the highest sequence number first: each is answered", out_of_order,
	  DESCENDING, OWN },
	{ "gss-window-interleaved", R2203,
	  "all credits in use, sequence numbers from both ends: each is answered", out_of_order,
	  INTERLEAVED, OWN },
	{ "gss-window-long", R2203, "krb5p: all credits in use by Long Replies, out of order",
	  out_of_order, LONG_REPLIES, OWN },
	{ "gss-window-edges", R2203,
	  "the lowest number of the window is answered, the one below discarded", edges, CF_KRB5,
	  CF_GSS },
	{ "gss-window-edges-krb5i", R2203, "krb5i: the window's edges", edges, CF_KRB5I, CF_GSS },
	{ "gss-window-edges-krb5p", R2203, "krb5p: the window's edges", edges, CF_KRB5P, CF_GSS },
	{ "gss-window-forged", R2203, "a wrong MIC does not move the window", forged, 0, CF_GSS },
	{ "gss-again-krb5", R2203,
	  "krb5: a retransmission with a new number is answered for that number", retransmitted,
	  CF_KRB5, CF_GSS },
	{ "gss-again-krb5i", R2203, "krb5i: a retransmission with a new number", retransmitted,
	  CF_KRB5I, CF_GSS },
	{ "gss-again-krb5p", R2203, "krb5p: a retransmission with a new number", retransmitted,
	  CF_KRB5P, CF_GSS },
	{ "gss-drop-inline", "RFC 8166 3.3.1",
	  "all credits for replays, then for calls: none is lost", gss_window_dropped, DROP_INLINE,
	  OWN },
	{ "gss-drop-long", "RFC 8166 3.3.1",
	  "all credits for replays of a Long Call, then for calls", gss_window_dropped, DROP_LONG,
	  OWN },
	{ "gss-drop-chunk", "RFC 8166 3.3.1",
	  "all credits for replays with a Read chunk, then for calls", gss_window_dropped,
	  DROP_CHUNK, OWN },
	{ "gss-drop-reply-chunk", "RFC 8166 3.3.1",
	  "all credits for replays with Write and Reply chunks, then for calls", gss_window_dropped,
	  DROP_REPLY_CHUNK, OWN },
	{ "gss-drop-below", "RFC 8166 3.3.1",
	  "all credits for calls below the window, then for calls", gss_window_dropped, DROP_BELOW,
	  OWN },
	{ "gss-drop-krb5p", "RFC 8166 3.3.1", "krb5p: all credits for replays, then for calls",
	  gss_window_dropped, DROP_KRB5P, OWN },
	{ "gss-replay-elsewhere", R2203,
	  "a replay over another connection is discarded, and the connection stays",
	  replayed_elsewhere, 0, CF_GSS },
	{ "gss-denied-credits", "RFC 8166 3.3.1",
	  "all credits for calls that are denied, then for calls", denied, 0, OWN },
};

const struct cf_group cf_group_gss_window = { "gss-window", 3101, cases, rn_array_size(cases) };

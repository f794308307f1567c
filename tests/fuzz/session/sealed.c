/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/sealed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "tests/fuzz/gss/realm.h"
#include "tests/fuzz/session/claims.h"
#include "tests/fuzz/session/counts.h"
#include "tests/fuzz/session/finding.h"
#include "tests/fuzz/session/message.h"
#include "tests/fuzz/session/seal_wire.h"

#define CALLS_MAX 8192u
#define WINDOW 1024u
#define SEQ_MAX 0x80000000u
#define SHORT 1u	   /* client whose tickets are short */
#define SHORT_SECONDS 200u /* its tickets; the server adds a minute at most */
#define SHORT_SURE 140u	   /* with a margin for the time that a session takes */
#define SHORT_OVER 320u
#define IDLE_SECONDS 86000u /* a margin below a day, after which an idle context goes */

enum kind { INIT, DATA, DESTROY };

/* Outcomes of a call. */
enum {
	RAN = 1,
	GARBAGE = 2,
	DROPPED = 4,
	CREDPROBLEM = 8,
	CTXPROBLEM = 16,
	BADCRED = 32,
	BADVERF = 64,
	FAILED = 128, /* INIT: a GSS status, and no context */
	ANY = 255
};

struct context {
	gss_ctx_id_t ctx;
	unsigned gen; /* contexts that this place has had */
	unsigned who;
	bool asked, ready;
	bool destroying; /* DESTROY was sent */
	bool gone;	 /* and answered */
	uint8_t handle[SS_HANDLE_MAX];
	uint32_t handle_len;
	uint32_t highest;  /* number of a call that was sent and may be right */
	uint32_t answered; /* highest number of a call that was answered */
	unsigned skipped_at;
};

struct call {
	uint32_t xid, seq, service;
	enum kind kind;
	unsigned k, gen;
	unsigned want; /* outcomes that are right */
	bool numbered; /* may have used up its number */
	bool bent;     /* changed on its way: any outcome is right, if the answer is protected */
	bool ran;
	struct ss_who who;
	uint8_t claims;
};

static struct {
	struct context context[SS_CONTEXTS];
	struct call call[CALLS_MAX];
	unsigned n;
	unsigned skipped; /* seconds, by the server's clock */
	bool used;
} g;

void ss_gss_start(void)
{
	realm_init();
}

static void context_clear(struct context *c)
{
	const unsigned gen = c->gen;
	OM_uint32 minor;

	if (c->ctx)
		gss_delete_sec_context(&minor, &c->ctx, GSS_C_NO_BUFFER);
	memset(c, 0, sizeof(*c));
	c->gen = gen + 1;
}

void ss_gss_reset(void)
{
	for (unsigned i = 0; i < SS_CONTEXTS; i++)
		context_clear(&g.context[i]);
	g.n = 0;
	g.skipped = 0;
	g.used = false;
}

bool ss_gss_was_used(void)
{
	return g.used;
}

static struct call *find(uint32_t xid)
{
	for (unsigned i = g.n; i-- > 0;)
		if (g.call[i].xid == xid)
			return &g.call[i];
	return NULL;
}

static bool is_current(const struct call *e)
{
	return g.context[e->k].gen == e->gen;
}

static struct ss_who who_of(unsigned client)
{
	return (struct ss_who){ .known = true,
				.flavour = SS_FLAVOUR_GSS,
				.uid = SS_GSS_UID + client };
}

/* NULL: there are too many. */
static struct call *call_new(uint32_t xid, enum kind kind, unsigned k, uint32_t service)
{
	struct call *e = g.n < CALLS_MAX ? &g.call[g.n++] : NULL;

	if (e)
		*e = (struct call){ .xid = xid,
				    .kind = kind,
				    .k = k,
				    .gen = g.context[k].gen,
				    .service = service,
				    .who = who_of(g.context[k].who) };
	return e;
}

enum life { LIVE, MAYBE, OVER };

static enum life life_of(const struct context *c)
{
	const unsigned age = g.skipped - c->skipped_at;

	if (c->who == SHORT && age >= SHORT_OVER)
		return OVER;
	return age >= (c->who == SHORT ? SHORT_SURE : IDLE_SECONDS) ? MAYBE : LIVE;
}

/* Outcomes that the end of the context makes possible; *over: no others are. */
static unsigned end_of(const struct context *c, bool *over)
{
	const enum life life = life_of(c);

	*over = c->gone || life == OVER;
	if (c->gone)
		return CREDPROBLEM;
	return (life == LIVE ? 0 : CREDPROBLEM | CTXPROBLEM) | (c->destroying ? CREDPROBLEM : 0);
}

void ss_gss_time(unsigned seconds)
{
	g.skipped += seconds;
	for (unsigned i = 0; i < g.n; i++) {
		struct call *e = &g.call[i];
		bool over;

		if (e->kind != INIT && is_current(e))
			e->want |= e->want & (RAN | GARBAGE | DROPPED | CREDPROBLEM | CTXPROBLEM)
					   ? end_of(&g.context[e->k], &over)
					   : 0;
	}
}

void ss_gss_repeated(uint32_t xid)
{
	struct call *e = find(xid);

	if (e && e->numbered)
		e->want |= DROPPED;
}

void ss_gss_bent(uint32_t xid)
{
	struct call *e = find(xid);

	if (e)
		e->bent = true;
}

bool ss_gss_may_drop(uint32_t xid)
{
	const struct call *e = find(xid);

	return e && (e->bent || (e->want & DROPPED));
}

struct ss_who ss_gss_who(uint32_t xid)
{
	const struct call *e = find(xid);

	return e ? e->who : (struct ss_who){ .known = false };
}

uint8_t ss_gss_claims(uint32_t xid)
{
	const struct call *e = find(xid);

	return e ? e->claims : 0;
}

bool ss_gss_is_private(uint32_t xid)
{
	const struct call *e = find(xid);

	return e && e->service == 3;
}

/* Outcome that the credential and the verifier alone decide; 0: both are right. */
static unsigned expect_header(const struct ss_wire *w, const struct context *c, enum kind kind)
{
	switch (w->spoil) {
	case SS_CRED_CUT:
	case SS_VERSION:
	case SS_GSS_PROC:
		return BADCRED;
	case SS_VERF_NONE:
		return BADVERF;
	case SS_PROC:
		return kind == DESTROY ? BADCRED : CREDPROBLEM;
	case SS_HANDLE: /* the other context may have ended */
		return CREDPROBLEM | CTXPROBLEM;
	case SS_MIC_CUT:
	case SS_MIC_OTHER:
	case SS_XID:
		return CREDPROBLEM;
	case SS_MIC_BENT:
		return realm_is_strict(c->who) ? CREDPROBLEM : 0;
	default:
		return 0;
	}
}

static unsigned expect_body(const struct ss_wire *w, enum kind kind, bool strict)
{
	const bool wraps = w->service != 1 && !w->padded;

	if (kind == DESTROY)
		return RAN;
	switch (w->spoil) {
	case SS_BODY_BENT:
		return wraps && strict ? GARBAGE : RAN | GARBAGE;
	case SS_BODY_CUT:
	case SS_INNER_NUMBER:
		return wraps ? GARBAGE : RAN | GARBAGE;
	case SS_SERVICE:
	case SS_TAIL:
		return RAN | GARBAGE;
	case SS_MIC_BENT:
		return RAN | CREDPROBLEM | CTXPROBLEM | DROPPED;
	default:
		return RAN;
	}
}

/* RFC 2203 section 5.3.3.1: numbers that were used, or are below the window. Other calls of the context may overtake this one, and it them. */
static unsigned expect_number(struct call *e, struct context *c, unsigned want)
{
	bool used = false, ran = false;

	for (unsigned i = 0; i < g.n; i++) {
		struct call *o = &g.call[i];

		if (o == e || !o->numbered || o->k != e->k || o->gen != e->gen)
			continue;
		if (o->seq == e->seq) {
			used = true;
			ran |= o->ran;
		}
		if (o->seq == e->seq || (e->seq > o->seq && e->seq - o->seq >= WINDOW))
			o->want |= DROPPED;
	}
	const bool below = c->highest > e->seq && c->highest - e->seq >= WINDOW;
	const bool passed = c->answered > e->seq && c->answered - e->seq >= WINDOW;

	e->numbered = true;
	c->highest = rn_max(c->highest, e->seq);
	if (ran || passed)
		return DROPPED | (want & ~(RAN | GARBAGE));
	return used || below ? want | DROPPED : want;
}

static unsigned expect(struct call *e, const struct ss_wire *w)
{
	struct context *c = &g.context[e->k];
	const unsigned header = expect_header(w, c, e->kind);
	unsigned want;
	bool over;
	const unsigned end = end_of(c, &over);

	if (header & (BADCRED | BADVERF))
		return header;
	if (over)
		return end;
	if (header)
		return header | end;
	if (e->seq >= SEQ_MAX)
		return CTXPROBLEM | end | (w->spoil == SS_MIC_BENT ? CREDPROBLEM : 0);
	want = expect_body(w, e->kind, realm_is_strict(c->who));
	return expect_number(e, c, want) | end;
}

static uint32_t pick_number(const struct context *c, uint8_t how)
{
	switch (how % 16) {
	case 7:
		return 0;
	case 8:
		return c->highest;
	case 9:
		return c->highest - 1;
	case 10:
		return c->highest - (WINDOW - 1);
	case 11:
		return c->highest - WINDOW;
	case 12:
		return c->highest + 5000;
	case 13:
		return SEQ_MAX - 1;
	case 14:
		return SEQ_MAX;
	case 15:
		return UINT32_MAX;
	default:
		return c->highest + 1;
	}
}

static bool set_handle(struct ss_wire *w, const struct ss_sealing *how, const struct context *c)
{
	const struct context *from = c;

	if (w->spoil == SS_HANDLE)
		from = &g.context[how->where % SS_CONTEXTS];
	if (!from->ready)
		from = c;
	memcpy(w->handle, from->handle, from->handle_len);
	w->handle_len = from->handle_len;
	if (w->spoil == SS_HANDLE && from == c && w->handle_len > 0)
		w->handle[how->value % w->handle_len] ^= 0x10;
	return w->handle_len > 0;
}

static size_t seal(const struct ss_sealing *how, enum kind kind, const uint8_t *msg, size_t len,
		   uint8_t *out)
{
	const unsigned k = how->context % SS_CONTEXTS;
	struct context *c = &g.context[k];
	struct ss_wire w = { .ctx = c->ctx,
			     .gss_proc = kind == DESTROY ? 3 : 0,
			     .seq = pick_number(c, how->number),
			     .body_service = how->service,
			     .service = how->service,
			     .spoil = how->spoil,
			     .where = how->where,
			     .value = how->value };

	if (!c->ready || len < 24 || !set_handle(&w, how, c))
		return 0;
	if (w.spoil == SS_SERVICE)
		w.service = 1 + how->value % 3;
	const size_t n = ss_wire_seal(&w, msg, len, out);
	struct call *e = n > 0 ? call_new(ss_word(out), kind, k, w.service) : NULL;

	if (!e)
		return 0;
	if (kind == DESTROY)
		e->service = 1;
	e->seq = w.seq;
	e->want = expect(e, &w);
	if (e->want == DROPPED)
		ss_count(SS_N_GSS_DROPPED);
	e->claims = ss_claims_by(msg, len, &e->who);
	if (w.spoil == SS_PROC || w.spoil == SS_XID)
		e->claims = 0;
	return n;
}

size_t ss_gss_seal(const struct ss_sealing *how, const uint8_t *msg, size_t len, uint8_t *out)
{
	return seal(how, DATA, msg, len, out);
}

/* Calls under way when a context ends may come behind its end. */
static void context_ends(unsigned k)
{
	for (unsigned i = 0; i < g.n; i++)
		if (g.call[i].k == k && g.call[i].kind != INIT && is_current(&g.call[i]) &&
		    (g.call[i].want & (RAN | GARBAGE | DROPPED | CTXPROBLEM)))
			g.call[i].want |= CREDPROBLEM;
}

static void put_null(uint32_t xid, uint8_t msg[40])
{
	static const uint32_t words[10] = { 0, 0, 2, 100003, 3 };

	for (unsigned i = 0; i < 10; i++)
		ss_set_word(msg + (size_t)4 * i, i ? words[i] : xid);
}

size_t ss_gss_destroy(const struct ss_sealing *how, uint32_t xid, uint8_t *out)
{
	const unsigned k = how->context % SS_CONTEXTS;
	uint8_t msg[40];

	put_null(xid, msg);
	const size_t n = seal(how, DESTROY, msg, sizeof(msg), out);
	if (n > 0 && (g.call[g.n - 1].want & RAN)) {
		g.context[k].destroying = true;
		context_ends(k);
	}
	return n;
}

size_t ss_gss_init(unsigned context, unsigned who, bool spoil, const struct ss_sealing *how,
		   uint32_t xid, uint8_t *out)
{
	struct context *c = &g.context[context % SS_CONTEXTS];
	gss_buffer_desc token = GSS_C_EMPTY_BUFFER;
	uint8_t msg[40];
	OM_uint32 minor;

	context_clear(c);
	g.used = true;
	c->who = who % REALM_CLIENTS;
	if (c->who == SHORT)
		realm_renew(SHORT, SHORT_SECONDS);
	if (!realm_step(c->who, GSS_C_MUTUAL_FLAG, &c->ctx, NULL, &token))
		ss_finding("the realm of the driver makes no token");
	c->asked = true;
	c->skipped_at = g.skipped;
	put_null(xid, msg);
	const size_t n =
		ss_wire_init(msg, &token, spoil ? 1 + how->value % 4u : 0, how->where, out);
	struct call *e = call_new(xid, INIT, context % SS_CONTEXTS, 1);

	gss_release_buffer(&minor, &token);
	if (!e)
		return 0;
	e->want = spoil ? RAN | FAILED | GARBAGE : c->who == REALM_LIAR ? FAILED : RAN;
	return n;
}

static unsigned denial(uint32_t stat)
{
	switch (stat) {
	case 1:
		return BADCRED;
	case 3:
		return BADVERF;
	case 13:
		return CREDPROBLEM;
	case 14:
		return CTXPROBLEM;
	default:
		return 0;
	}
}

/* Refusals of a call whose context and verifier are right: the exports or a name service say so. */
static bool is_refusal(uint32_t stat)
{
	return stat == 1 || stat == 2 || stat == 5;
}

static const char *judge_denial(const struct ss_call *call, const struct call *e, uint32_t stat)
{
	if (denial(stat) & (CREDPROBLEM | CTXPROBLEM))
		ss_count(g.context[e->k].gone || life_of(&g.context[e->k]) != LIVE
				 ? SS_N_GSS_ENDED
				 : SS_N_GSS_DENIED);
	if (e->bent || (denial(stat) & e->want) || call->from == SS_FROM_STRANGER)
		return NULL;
	if ((e->want & RAN) && is_refusal(stat))
		return NULL;
	return "another denial than RFC 2203 says";
}

/* The server's part of a context's creation. */
static const char *take_context(struct call *e, const struct ss_wire_reply *r)
{
	struct context *c = &g.context[e->k];
	gss_buffer_desc more = GSS_C_EMPTY_BUFFER;
	struct ss_wire_made made;
	OM_uint32 minor;

	if (!ss_wire_made(r, &made))
		return "malformed results of a context's creation";
	if (made.major & 0xffff0000u) {
		if (made.handle_len)
			return "a handle of no context";
		return e->bent || (e->want & FAILED) ? NULL : "a good token is refused";
	}
	if (!e->bent && !(e->want & RAN))
		return "a ticket under another key is taken";
	if (!is_current(e) || c->ready)
		return NULL;
	const gss_buffer_desc token = { made.token_len, (void *)(uintptr_t)made.token };
	const bool ok = realm_step(c->who, GSS_C_MUTUAL_FLAG, &c->ctx, &token, &more);
	gss_release_buffer(&minor, &more);
	if (!ok)
		return "the token of a context is wrong";
	if (!ss_wire_signs(c->ctx, r, made.window) || made.window != WINDOW)
		return "the verifier of a context's creation is wrong";
	memcpy(c->handle, made.handle, made.handle_len);
	c->handle_len = made.handle_len;
	c->ready = true;
	ss_count(SS_N_GSS_MADE);
	return NULL;
}

static const char *judge_init(struct call *e, const struct ss_wire_reply *r)
{
	if (r->stat == 0)
		return take_context(e, r);
	return r->stat == 4 && (e->bent || (e->want & GARBAGE)) ? NULL
								: "no results of a good token";
}

/* An answer that the context has signed. */
static const char *judge_signed(struct call *e, const struct ss_wire_reply *r)
{
	struct context *c = &g.context[e->k];

	if (!is_current(e))
		return NULL;
	if (!ss_wire_signs(c->ctx, r, e->seq))
		return "the verifier does not sign the call's number";
	if (e->ran)
		return "two calls of one number are answered";
	e->ran = true;
	c->answered = rn_max(c->answered, e->seq);
	ss_count(r->stat == 4 ? SS_N_GSS_GARBAGE : SS_N_GSS_RAN);
	if (e->kind == DESTROY && r->stat == 0) {
		c->gone = true;
		ss_count(SS_N_GSS_DESTROYED);
	}
	if (!e->bent && !(e->want & RAN) && !(r->stat == 4 && (e->want & GARBAGE)))
		return "a call is run that should not be";
	return NULL;
}

static bool number_ran(const struct call *e)
{
	for (unsigned i = 0; i < g.n; i++) {
		const struct call *o = &g.call[i];

		if (o != e && o->numbered && o->k == e->k && o->gen == e->gen && o->seq == e->seq &&
		    o->ran)
			return true;
	}
	return false;
}

enum ss_opened ss_gss_open(const struct ss_call *call, const uint8_t *msg, size_t len,
			   struct ss_plain *plain)
{
	struct call *e = find(call->xid);
	struct ss_wire_reply r;

	*plain = (struct ss_plain){ .msg = msg, .len = len };
	if (!ss_wire_read(msg, len, &r)) {
		plain->bad = "a malformed reply to a call under RPCSEC_GSS";
	} else if (r.denied) {
		plain->bad = e && r.mismatch == 0 ? judge_denial(call, e, r.stat) : NULL;
		return plain->bad ? SS_REFUSED : SS_OPENED;
	} else if (!e) {
		plain->bad = r.stat == 0 ? "a call is run that nobody has signed" : NULL;
	} else if (e->kind == INIT) {
		plain->bad = judge_init(e, &r);
	} else {
		plain->bad = judge_signed(e, &r);
		if (!plain->bad && e->numbered && number_ran(e))
			plain->bad = "two calls with one number are run";
		if (!plain->bad && is_current(e) && e->kind == DATA) {
			plain->wrapped = e->service != 1 && r.stat == 0;
			plain->msg = ss_wire_open(g.context[e->k].ctx, &r, e->service, e->seq,
						  &plain->len);
			plain->bad =
				plain->msg ? NULL : "the results are not protected as the call";
			return plain->bad ? SS_REFUSED : SS_OPENED;
		}
	}
	return plain->bad ? SS_REFUSED : SS_JUDGED;
}

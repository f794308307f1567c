/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replies to callbacks that are wrong. Some answer nothing, and must leave the callback as it was:
 * the right reply follows, and ends it. Others end it without a result; the connection and the
 * client's own calls must survive that, and callbacks must go on once SEQUENCE's flags have been
 * obeyed.
 */
#include <string.h>

#include "lib/util.h"
#include "tools/conform/back.h"
#include "tools/conform/conform_check.h"

#define SLOTS 8u
#define QUIET_MS 200

/* ---- what answers nothing ---------------------------------------------------------------------
 */

enum {
	OTHER_XID,
	TWO_XIDS,
	AS_CALL,
	READ_CHUNK,
	WRITE_CHUNK,
	REPLY_CHUNK,
	POSITION_ZERO,
	OTHER_VERSION,
	OTHER_PROC,
	CUT_SHORT,
};

static bool back_reply_change(struct cf_test *t, struct cf_call *c)
{
	switch (t->arg) {
	case OTHER_XID:
		c->xid += 0x1000;
		xdr_patch_u32(&c->rpc, 0, c->xid);
		return true;
	case TWO_XIDS:
		xdr_patch_u32(&c->rpc, 0, c->xid + 0x1000);
		return true;
	case AS_CALL:
		xdr_patch_u32(&c->rpc, 4, 0);
		return true;
	case READ_CHUNK:
		return cf_reduce(t, c, "data", 4, 1);
	case WRITE_CHUNK:
		return cf_offer_write(t, c, 64, 1) != NULL;
	case REPLY_CHUNK:
		return cf_offer_reply(t, c, 512, 2) != NULL;
	case POSITION_ZERO:
		return cf_make_long(t, c, 2);
	case OTHER_VERSION:
		c->vers = 2;
		return true;
	case OTHER_PROC:
		c->proc = CF_MSGP;
		return true;
	default:
		return true;
	}
}

static bool send_wrong(struct cf_test *t, struct cf_back *b, const struct cf_callback *cb)
{
	struct cf_call *c = cf_back_answer(t, b, cb);
	uint8_t cut[24];
	struct xdr_out x;

	if (t->arg != CUT_SHORT)
		return back_reply_change(t, c) && cf_send(t, c);
	xdr_out_init(&x, cut, sizeof(cut));
	cf_put_fixed(&x, cb->xid, CF_VERSION, b->o.grant, CF_MSG);
	xdr_put_u64(&x, 0);
	return cf_send_bytes(t, cut, sizeof(cut));
}

/*
 * Reads what the server says to it: nothing, or that it is wrong. Only what cannot be told from a
 * call may be answered: errors in the header of a reply are discarded (RFC 8166 section 4.5).
 */
static bool refused_at_most(struct cf_test *t)
{
	const bool like_a_call =
		t->arg == AS_CALL || t->arg == OTHER_VERSION || t->arg == OTHER_PROC;
	struct cf_reply *r;

	while ((r = cf_next_until(t, cf_until(t, QUIET_MS)))) {
		if (cf_is_call(r))
			return t->take_call(t, r);
		const uint8_t *rpc = r->msg + r->h.size;
		const bool refusal = r->h.proc == CF_ERROR ||
				     (r->len >= r->h.size + 12 && cf_word(rpc + 8) == 1);
		if (!like_a_call || !refusal) {
			cf_fail(t, "no answer to a reply, and no call carried out",
				"a message of %zu bytes", r->len);
			cf_seen_words(t, r->msg, r->len);
			return false;
		}
	}
	return t->verdict == CF_PASS;
}

static void wrong_then_right(struct cf_test *t)
{
	struct cf_back_options o = { .slots = SLOTS, .grant = 4, .hold = true };
	struct cf_back *b = cf_back_begin(t, &o);
	struct cf_callback *cb = b ? cf_back_provoke(t, b, 1) : NULL;

	if (!cb || !send_wrong(t, b, cb) || !refused_at_most(t) || !cf_back_reply(t, b, cb) ||
	    !cf_alive(t))
		return;
	b->o.hold = false;
	if (cf_back_provoke(t, b, 1) && cf_back_ask_flags(t, b) && b->s->flags & CF_CB_FLAGS)
		cf_fail(t, "no flag of the back channel in SEQUENCE", "%x", b->s->flags);
}

/* The right reply twice, and then others in its place: the first one counts. */
static void twice(struct cf_test *t)
{
	struct cf_back_options o = { .slots = SLOTS, .grant = 1, .hold = true };
	struct cf_back *b = cf_back_begin(t, &o);
	struct cf_callback *cb = b ? cf_back_provoke(t, b, 1) : NULL;

	if (!cb)
		return;
	for (unsigned i = 0; i < 3; i++)
		if (!cf_back_reply(t, b, cb))
			return;
	b->o.hold = false;
	if (cf_alive(t) && cf_back_provoke(t, b, 1))
		cf_alive(t);
}

/* A call of the client with the xid of a callback that waits: both are answered. */
static void xid_of_a_call(struct cf_test *t)
{
	struct cf_back_options o = { .slots = SLOTS, .grant = 1, .hold = true };
	struct cf_back *b = cf_back_begin(t, &o);
	struct cf_callback *cb = b ? cf_back_provoke(t, b, 1) : NULL;

	if (!cb)
		return;
	struct cf_call *c = cf_call_new_none(t, CF_PROG_NFS, 3, 0);
	c->xid = cb->xid;
	xdr_patch_u32(&c->rpc, 0, c->xid);
	if (!cf_ask(t, c) || !cf_back_reply(t, b, cb))
		return;
	b->o.hold = false;
	if (cf_back_provoke(t, b, 1))
		cf_alive(t);
}

/* The client calls the callback program, whose server it is itself. */
static void called_itself(struct cf_test *t)
{
	struct cf_back_options o = { .slots = SLOTS, .grant = 1 };
	struct cf_back *b = cf_back_begin(t, &o);

	if (!b || !cf_back_provoke(t, b, 1))
		return;
	struct cf_call *c = cf_call_new_none(t, CF_BACK_PROGRAM, 1, 1);
	xdr_put_opaque(&c->rpc, "", 0);
	xdr_put_u32(&c->rpc, 1);
	xdr_put_u32(&c->rpc, 0);
	xdr_put_u32(&c->rpc, 1);
	xdr_put_u32(&c->rpc, CF_CB_SEQUENCE);
	struct cf_reply *r = cf_ask_any(t, c);
	if (r && cf_expect_accept(t, r, CF_PROG_UNAVAIL) && cf_back_provoke(t, b, 1))
		cf_alive(t);
}

/* AUTH_NONE's verifier may have any bytes, though none are recommended. */
static void long_verifier(struct cf_test *t)
{
	struct cf_back_options o = { .slots = SLOTS, .grant = 1, .hold = true };
	struct cf_back *b = cf_back_begin(t, &o);
	struct cf_callback *cb = b ? cf_back_provoke(t, b, 1) : NULL;
	uint8_t body[400];

	if (!cb)
		return;
	struct cf_call *c = cf_back_answer(t, b, cb);
	const uint32_t head = 5 * 4; /* xid, REPLY, accepted, an empty verifier */
	const uint32_t len = xdr_out_pos(&c->rpc) - head;
	uint8_t *rest = cf_alloc(t, len);
	memcpy(rest, c->rpc.base + head, len);
	memset(body, 'v', sizeof(body));
	xdr_out_rewind(&c->rpc, head - 8);
	xdr_put_u32(&c->rpc, 0);
	xdr_put_opaque(&c->rpc, body, sizeof(body));
	xdr_put_fixed(&c->rpc, rest, len);
	cf_back_answered(b, cb, c);
	b->o.hold = false;
	if (cf_send(t, c) && cf_back_provoke(t, b, 1) && cf_back_ask_flags(t, b) &&
	    b->s->flags & CF_CB_FLAGS)
		cf_fail(t, "no flag of the back channel in SEQUENCE", "%x", b->s->flags);
}

/* ---- what ends a callback without a result ----------------------------------------------------
 */

enum { DENIED, NO_PROGRAM, GARBAGE, NO_HEADER, NO_RESULTS, OTHER_SLOT, ERR_VERS, ERR_CHUNK };

static bool send_refusal(struct cf_test *t, struct cf_back *b, struct cf_callback *cb)
{
	struct cf_call *c = cf_back_answer(t, b, cb);

	cf_back_answered(b, cb, c);
	switch (t->arg) {
	case DENIED: /* AUTH_ERROR, AUTH_TOOWEAK */
		xdr_out_rewind(&c->rpc, 8);
		for (unsigned i = 0; i < 2; i++)
			xdr_put_u32(&c->rpc, 1);
		xdr_put_u32(&c->rpc, 5);
		break;
	case NO_PROGRAM:
	case GARBAGE:
		xdr_out_rewind(&c->rpc, 20);
		xdr_put_u32(&c->rpc, t->arg == GARBAGE ? CF_GARBAGE_ARGS : CF_PROG_UNAVAIL);
		break;
	case NO_HEADER:
		xdr_out_rewind(&c->rpc, 8);
		break;
	case NO_RESULTS:
		xdr_out_rewind(&c->rpc, 24);
		break;
	case OTHER_SLOT:
		xdr_patch_u32(&c->rpc, 24 + 4 * 5 + 16 + 4, cb->slot + 1);
		break;
	default:
		return cf_back_error(t, b, cb->xid,
				     t->arg == ERR_VERS ? CF_ERR_VERS : CF_ERR_CHUNK);
	}
	return cf_send(t, c);
}

static void back_reply_session_ended(struct cf_test *t)
{
	struct cf_back_options o = { .slots = SLOTS, .grant = 1, .hold = true };
	struct cf_back *b = cf_back_begin(t, &o);
	struct cf_callback *cb = b ? cf_back_provoke(t, b, 1) : NULL;

	if (!cb)
		return;
	/* A server that tries again after an error of RPC gets the right reply. */
	b->o.hold = false;
	if (send_refusal(t, b, cb) && cf_alive(t) && cf_back_goes_on(t, b))
		cf_alive(t);
}

#define WRONG(kind, name, paragraph, what)                                                         \
	{                                                                                          \
		"back-wrong-" name, paragraph, what " answers no callback", wrong_then_right,      \
			kind, CF_NFS4                                                              \
	}
#define ENDED(kind, name, paragraph, what, flags)                                                  \
	{                                                                                          \
		"back-ends-" name, paragraph, what ": the connection and callbacks go on",         \
			back_reply_session_ended, kind, CF_NFS4 | CF_LONG | (flags)                \
	}

static const struct cf_case cases[] = {
	WRONG(OTHER_XID, "xid", "RFC 8167 5.2", "a reply with another xid"),
	WRONG(TWO_XIDS, "two-xids", "RFC 8167 5.2", "a reply with two xids"),
	WRONG(AS_CALL, "direction", "RFC 8167 5.2", "a reply that says CALL"),
	WRONG(READ_CHUNK, "read-chunk", "RFC 8166 4.5", "a reply with a Read chunk"),
	WRONG(WRITE_CHUNK, "write-chunk", "RFC 8166 4.5", "a reply with a Write chunk"),
	WRONG(REPLY_CHUNK, "reply-chunk", "RFC 8166 4.5", "a reply with a Reply chunk"),
	WRONG(POSITION_ZERO, "long", "RFC 8166 4.5", "a reply in a position-zero Read chunk"),
	WRONG(OTHER_VERSION, "version", "RFC 8167 5.2", "a reply of another version"),
	WRONG(OTHER_PROC, "proc", "RFC 8166 4.5", "a reply of another procedure"),
	WRONG(CUT_SHORT, "cut", "RFC 8166 4.5", "a reply cut in its header"),
	{ "back-twice", "RFC 8167 4.1", "a reply that comes three times counts once", twice, 0,
	  CF_NFS4 },
	{ "back-xid-of-call", "RFC 8167 4.1",
	  "a call with the xid of a callback: both are answered", xid_of_a_call, 0, CF_NFS4 },
	{ "back-call-itself", "RFC 5531 9", "the callback program is not served by the server",
	  called_itself, 0, CF_NFS4 },
	{ "back-verifier", "RFC 5531 10.1", "a reply with a verifier of 400 bytes is taken",
	  long_verifier, 0, CF_NFS4 | CF_SHOULD },
	ENDED(DENIED, "denied", "RFC 5531 9", "a denial", 0),
	ENDED(NO_PROGRAM, "program", "RFC 5531 9", "PROG_UNAVAIL", 0),
	ENDED(GARBAGE, "garbage", "RFC 5531 9", "GARBAGE_ARGS", 0),
	ENDED(NO_HEADER, "cut-header", "RFC 5531 9", "a reply that ends behind REPLY", 0),
	ENDED(NO_RESULTS, "no-results", "RFC 8881 20.9", "SUCCESS without results", 0),
	ENDED(OTHER_SLOT, "slot", "RFC 8881 20.9", "results of another slot", 0),
	ENDED(ERR_VERS, "err-vers", "RFC 8166 4.5", "ERR_VERS", 0),
	/* A message shorter than 28 bytes is to be discarded by the same section. */
	ENDED(ERR_CHUNK, "err-chunk", "RFC 8166 4.5", "ERR_CHUNK", CF_SHOULD),
};

const struct cf_group cf_group_back_reply = { "back-reply", 2501, cases, rn_array_size(cases) };

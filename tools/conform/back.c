/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/conform/back.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/util.h"
#include "tools/conform/conform_check.h"
#include "tools/conform/nfs3.h"

#define LOOK_MS 500
#define PAUSE_NS 20000000
#define RANGE 4096u /* bytes that the lock of a round covers */
#define BOTH 3u	    /* CDFC4_FORE_OR_BOTH */

unsigned cf_back_under_way(const struct cf_test *t, const struct cf_back *b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < b->ngot; i++)
		n += !b->got[i].answered && b->got[i].conn == t->conn;
	return n;
}

struct cf_callback *cf_back_unanswered(const struct cf_test *t, struct cf_back *b)
{
	for (unsigned i = 0; i < b->ngot; i++)
		if (!b->got[i].answered && b->got[i].conn == t->conn)
			return &b->got[i];
	return NULL;
}

/* ---- a call of the server ---------------------------------------------------------------------
 */

static bool bad_call(struct cf_test *t, const struct cf_reply *r, const char *expected,
		     const char *seen)
{
	if (t->verdict != CF_PASS)
		return false;
	cf_fail(t, expected, "%s", seen);
	cf_seen_words(t, r->msg, r->len);
	return false;
}

static bool right_header(struct cf_test *t, const struct cf_back *b, const struct cf_reply *r)
{
	const struct cf_lists *l = &r->h.lists;
	const bool may_be_long = b->o.size > t->conn->reply_inline;

	if (r->h.vers != CF_VERSION)
		return bad_call(t, r, "a callback of version 1, as the calls (RFC 8167 5.1)",
				"another");
	if (r->len > t->conn->reply_inline)
		return bad_call(t, r, "no callback above the inline threshold (RFC 8167 4.2)",
				"a longer one");
	if (!may_be_long && (l->nreads || l->nwrites || l->has_reply))
		return bad_call(t, r,
				"only Short messages: ca_maxrequestsize is not above the inline "
				"threshold (RFC 8267 6.5.2)",
				"a callback with chunks");
	return true;
}

/* xid, CALL, version, program, version, procedure, credential, verifier. */
static bool read_rpc(struct cf_test *t, const struct cf_reply *r, struct xdr_in *x,
		     struct cf_callback *cb)
{
	uint32_t len;

	cb->xid = xdr_get_u32(x);
	if (cb->xid != r->h.xid)
		return bad_call(t, r, "the same xid in both headers (RFC 8167 5.1)", "two xids");
	xdr_get_u32(x); /* CALL */
	uint32_t rpcvers = xdr_get_u32(x), prog = xdr_get_u32(x), vers = xdr_get_u32(x);
	cb->proc = xdr_get_u32(x);
	for (int i = 0; i < 2; i++) {
		xdr_get_u32(x);
		xdr_get_opaque(x, 400, &len);
	}
	if (x->err || rpcvers != 2 || prog != CF_BACK_PROGRAM || vers != 1 || cb->proc > 1)
		return bad_call(t, r,
				"a call of the program that CREATE_SESSION named (RFC 8881 20)",
				"something else");
	return true;
}

static bool cf_back_read_compound(struct cf_test *t, const struct cf_reply *r, struct xdr_in *x,
				  struct cf_callback *cb)
{
	uint32_t len;

	xdr_get_opaque(x, 1024, &len); /* tag */
	xdr_skip(x, 4 + 4);	       /* minor version, callback_ident */
	cb->nops = xdr_get_u32(x);
	if (xdr_get_u32(x) != CF_CB_SEQUENCE || x->err)
		return bad_call(t, r, "CB_SEQUENCE first (RFC 8881 20.9)", "another operation");
	xdr_get_fixed(x, cb->session, sizeof(cb->session));
	cb->seqid = xdr_get_u32(x);
	cb->slot = xdr_get_u32(x);
	xdr_skip(x, 4 + 4); /* highest slot, cachethis */
	uint32_t referring = xdr_get_u32(x);
	if (x->err || (t->session && memcmp(cb->session, t->session->id, sizeof(cb->session)) != 0))
		return bad_call(t, r, "CB_SEQUENCE of this session", "another");
	if (cb->nops < 2 || referring)
		return true;
	cb->op = xdr_get_u32(x);
	if (cb->op != CF_CB_NOTIFY_LOCK)
		return true;
	xdr_get_opaque(x, 128, &len); /* filehandle */
	xdr_get_u64(x);		      /* client id */
	const uint8_t *owner = xdr_get_opaque(x, CF4_OWNER_MAX, &len);
	if (!owner || x->left)
		return bad_call(t, r, "CB_NOTIFY_LOCK's arguments (RFC 8881 20.11)", "others");
	memcpy(cb->owner, owner, rn_min(len, sizeof(cb->owner) - 1));
	return true;
}

static bool same_request(const struct cf_callback *a, const struct cf_callback *b)
{
	return a->seqid == b->seqid && a->op == b->op && !strcmp(a->owner, b->owner);
}

/* A slot whose call has no answer is not used for another, and a call is sent again only if its
 * connection is lost (RFC 8881 section 2.10.6.2). */
static bool right_slot(struct cf_test *t, struct cf_back *b, const struct cf_reply *r,
		       const struct cf_callback *cb)
{
	if (cb->proc == 1 && cb->slot >= b->o.slots)
		return bad_call(t, r, "a slot that CREATE_SESSION allows", "another");
	for (unsigned i = 0; cb->proc == 1 && i < b->ngot; i++) {
		struct cf_callback *old = &b->got[i];
		if (old->answered || old->proc != 1 || old->slot != cb->slot ||
		    memcmp(old->session, cb->session, sizeof(cb->session)) != 0)
			continue;
		if (!same_request(old, cb))
			return bad_call(t, r,
					"no other request in a slot that waits for its reply "
					"(RFC 8881 2.10.6.2)",
					"another request");
		if (old->conn)
			return bad_call(t, r,
					"no retry while the connection lasts (RFC 8881 2.10.6.2)",
					"a retry");
		old->answered = true; /* by the answer to this one */
	}
	return true;
}

static bool right_credits(struct cf_test *t, const struct cf_back *b, const struct cf_reply *r)
{
	unsigned n = cf_back_under_way(t, b) + 1;
	char seen[64];

	if (n <= b->most && (n <= r->h.credits || !r->h.credits))
		return true;
	snprintf(seen, sizeof(seen), "%u calls; granted %u, asked for %u", n, b->most,
		 r->h.credits);
	return bad_call(t, r,
			"no more calls under way than were granted, than were asked for, or one "
			"before the first grant (RFC 8166 3.3.1, 3.3.3; RFC 8167 4.1)",
			seen);
}

static bool take_call(struct cf_test *t, const struct cf_reply *r)
{
	struct cf_back *b = t->back;
	struct cf_callback cb = { .conn = t->conn };
	struct rpc_seg seg = { .base = (uint8_t *)r->msg + r->h.size, .len = r->len - r->h.size };
	struct xdr_in x;

	xdr_in_init(&x, &seg, 1, NULL);
	if (!right_header(t, b, r) || !read_rpc(t, r, &x, &cb) ||
	    (cb.proc == 1 && !cf_back_read_compound(t, r, &x, &cb)) || !right_slot(t, b, r, &cb) ||
	    !right_credits(t, b, r))
		return false;
	if (b->ngot == CF_BACK_KEPT)
		return cf_fail(t, "callbacks for waiters", "%u of them", b->ngot);
	bool notify = cb.op == CF_CB_NOTIFY_LOCK;
	struct cf_callback *kept = &cb;
	if (notify || b->o.mute) {
		kept = &b->got[b->ngot++];
		*kept = cb;
	} else {
		b->others++;
	}
	return b->o.mute || (notify && b->o.hold) || cf_back_reply(t, b, kept);
}

/* ---- replies ----------------------------------------------------------------------------------
 */

struct cf_call *cf_back_answer(struct cf_test *t, const struct cf_back *b,
			       const struct cf_callback *cb)
{
	struct cf_call *c = cf_call_new_none(t, 0, 0, 0);
	struct xdr_out *x = &c->rpc;

	c->xid = cb->xid;
	c->credits = b->o.grant;
	xdr_out_rewind(x, 0);
	xdr_put_u32(x, cb->xid);
	xdr_put_u32(x, 1); /* REPLY, accepted, no verifier, SUCCESS */
	for (int i = 0; i < 4; i++)
		xdr_put_u32(x, 0);
	if (cb->proc == 0)
		return c;
	xdr_put_u32(x, CF4_OK);
	xdr_put_u32(x, 0); /* tag */
	xdr_put_u32(x, cb->nops);
	xdr_put_u32(x, CF_CB_SEQUENCE);
	xdr_put_u32(x, CF4_OK);
	xdr_put_fixed(x, cb->session, sizeof(cb->session));
	xdr_put_u32(x, cb->seqid);
	xdr_put_u32(x, cb->slot);
	xdr_put_u32(x, b->o.slots - 1);
	xdr_put_u32(x, b->o.slots - 1);
	if (cb->nops > 1) {
		xdr_put_u32(x, cb->op);
		xdr_put_u32(x, CF4_OK);
	}
	return c;
}

void cf_back_answered(struct cf_back *b, struct cf_callback *cb, const struct cf_call *c)
{
	cb->answered = true;
	if (c->credits > b->most)
		b->most = c->credits;
}

bool cf_back_reply(struct cf_test *t, struct cf_back *b, struct cf_callback *cb)
{
	struct cf_call *c = cf_back_answer(t, b, cb);

	cf_back_answered(b, cb, c);
	return cf_send(t, c);
}

bool cf_back_error(struct cf_test *t, const struct cf_back *b, uint32_t xid, uint32_t err)
{
	uint8_t msg[28];
	struct xdr_out x;

	xdr_out_init(&x, msg, sizeof(msg));
	cf_put_fixed(&x, xid, CF_VERSION, b->o.grant, CF_ERROR);
	xdr_put_u32(&x, err);
	if (err == CF_ERR_VERS) {
		xdr_put_u32(&x, CF_VERSION);
		xdr_put_u32(&x, CF_VERSION);
	}
	return cf_send_bytes(t, msg, xdr_out_pos(&x));
}

/* ---- waiting ----------------------------------------------------------------------------------
 */

bool cf_back_wait(struct cf_test *t, struct cf_back *b, unsigned n, int64_t until)
{
	while (b->ngot < n) {
		struct cf_reply *r = cf_next_until(t, until);

		if (!r)
			return false;
		if (!cf_is_call(r))
			return bad_call(t, r, "a callback", "an answer to nothing");
		if (!take_call(t, r))
			return false;
	}
	return true;
}

bool cf_back_quiet(struct cf_test *t, struct cf_back *b, int ms, const char *expected)
{
	unsigned before = b->ngot;

	if (cf_back_wait(t, b, before + 1, cf_until(t, ms)))
		return cf_fail(t, expected, "a callback, \"%s\"", b->got[before].owner);
	return t->verdict == CF_PASS;
}

struct cf_callback *cf_back_provoke(struct cf_test *t, struct cf_back *b, unsigned n)
{
	unsigned before = b->ngot;

	if (!cf_back_block(t, b, n) || !cf_back_release(t, b))
		return NULL;
	if (cf_back_wait(t, b, before + 1, t->deadline))
		return &b->got[before];
	if (before)
		cf_fail(t, "a further CB_NOTIFY_LOCK", "none in time");
	else
		cf_skip(t, "the server tells no waiter of an unlock");
	return NULL;
}

/* ---- locks and sessions -----------------------------------------------------------------------
 */

/* Each round has a range of its own, so that those who were told of another keep nobody away. The
 * waiters are the same: a server may remember a limited number for a file. */
bool cf_back_block(struct cf_test *t, struct cf_back *b, unsigned n)
{
	char name[32];

	b->round++;
	snprintf(b->holder, sizeof(b->holder), "holder %u", b->round);
	b->held = (struct cf4_lock){ b->holder, strlen(b->holder), CF4_WRITE_LT,
				     (uint64_t)b->round * RANGE, RANGE };
	if (!cf4_lock(t, b->s, &b->file, &b->held, b->stateid))
		return false;
	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "waiter %u", i);
		struct cf4_lock l = { name, strlen(name), CF4_WRITEW_LT, b->held.offset + i, 1 };
		if (!cf4_lock_denied(t, b->s, &b->file, &l))
			return false;
	}
	return true;
}

bool cf_back_release(struct cf_test *t, struct cf_back *b)
{
	return cf4_unlock(t, b->s, &b->file, &b->held, b->stateid);
}

void cf_back_moved(struct cf_back *b, const struct cf_conn *gone)
{
	b->most = 1;
	for (unsigned i = 0; i < b->ngot; i++)
		if (b->got[i].conn == gone)
			b->got[i].conn = NULL;
}

static bool begin_session(struct cf_test *t, struct cf_back *b)
{
	struct cf4_back_channel back = { b->o.slots, b->o.size, CF_BACK_PROGRAM };
	struct cf_fh fh;

	if (!back.size)
		back.size = rn_min(t->conn->reply_inline, t->conn->call_inline);
	b->s = b->o.unasked ? cf4_begin(t, 1) : cf4_begin_back(t, 1, &back);
	if (!b->s || !cf4_handle(t, b->s, "back", &fh) || !cf4_open_file(t, b->s, &fh, &b->file))
		return false;
	b->is_open = true;
	return b->o.unasked || b->file.rflags & CF4_MAY_NOTIFY_LOCK ||
	       cf_skip(t, "the server does not tell waiters of locks");
}

struct cf_back *cf_back_begin(struct cf_test *t, const struct cf_back_options *o)
{
	struct cf_back *b = cf_alloc(t, sizeof(*b));
	struct cf_fh fh;

	b->o = *o;
	cf_back_moved(b, NULL);
	t->back = b;
	t->take_call = take_call;
	return cf3_make_file(t, "back", 0, &fh) && begin_session(t, b) ? b : NULL;
}

void cf_back_end(struct cf_test *t)
{
	struct cf_back *b = t->back;

	b->o.mute = b->o.hold = false;
	if (b->is_open && t->conn && !t->conn->closed)
		cf4_close_file(t, b->s, &b->file);
	b->is_open = false;
}

/* A new session over the same connection, whose credits are as they were. */
static bool begin_anew(struct cf_test *t, struct cf_back *b)
{
	cf_back_end(t);
	cf4_end(t);
	return begin_session(t, b);
}

bool cf_back_bind(struct cf_test *t, struct cf_back *b)
{
	struct cf4_session none = { .minor = 1 };
	struct cf_call *c = cf4_new(t, &none, NULL);

	cf4_op(c, CF4_BIND_CONN_TO_SESSION);
	xdr_put_fixed(&c->rpc, b->s->id, sizeof(b->s->id));
	xdr_put_u32(&c->rpc, BOTH);
	xdr_put_bool(&c->rpc, false);
	struct cf_reply *r = cf4_ask(t, &none, c);
	if (!r || !cf4_op_done(t, r, CF4_BIND_CONN_TO_SESSION, CF4_OK))
		return false;
	xdr_skip(&r->x, sizeof(b->s->id));
	uint32_t bound = xdr_get_u32(&r->x);
	return bound == BOTH ||
	       cf_fail(t, "a connection bound to both channels", "channels %u", bound);
}

bool cf_back_ask_flags(struct cf_test *t, struct cf_back *b)
{
	return cf4_ask(t, b->s, cf4_new(t, b->s, NULL)) != NULL;
}

bool cf_back_await_flags(struct cf_test *t, struct cf_back *b)
{
	static const struct timespec pause = { 0, PAUSE_NS };

	while (cf_back_ask_flags(t, b)) {
		if (b->s->flags & CF_CB_FLAGS)
			return true;
		if (cf_now_ms() >= t->deadline)
			return cf_fail(t, "SEQ4_STATUS_CB_PATH_DOWN or the like (RFC 8881 18.46.3)",
				       "flags %x", b->s->flags);
		nanosleep(&pause, NULL);
	}
	return false;
}

bool cf_back_goes_on(struct cf_test *t, struct cf_back *b)
{
	b->o.mute = b->o.hold = false;
	while (cf_back_ask_flags(t, b)) {
		const unsigned before = b->ngot;

		if (b->s->flags & CF_BACKCHANNEL_FAULT) {
			if (!begin_anew(t, b))
				return false;
		} else if (b->s->flags & CF_CB_FLAGS && !cf_back_bind(t, b)) {
			return false;
		}
		if (!cf_back_block(t, b, 1) || !cf_back_release(t, b))
			return false;
		if (cf_back_wait(t, b, before + 1, cf_until(t, LOOK_MS)))
			return true;
		if (t->verdict == CF_PASS && cf_now_ms() >= t->deadline)
			cf_fail(t, "a further callback, or a flag of SEQUENCE", "flags %x",
				b->s->flags);
		if (t->verdict != CF_PASS)
			return false;
	}
	return false;
}

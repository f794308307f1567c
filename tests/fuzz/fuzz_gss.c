/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RPCSEC_GSS with the real library on both sides: clients with tickets of a realm in this process make, use, spoil,
 * replay and destroy contexts, by steps of eight octets. The outcome of each call is worked out here from RFC 2203,
 * with a window of sequence numbers of its own. A call runs only as the client that has signed it, and once.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gss/gss.h"
#include "lib/util.h"
#include "rpc/principal.h"
#include "tests/fuzz/gss/message.h"
#include "tests/fuzz/gss/realm.h"
#include "tests/unit/rpc_fake.h"

#define STEP 8u
#define STEPS_MAX 48u
#define SLOTS 6u
#define CONNS 3u
#define CONTEXTS_MAX 4u /* fewer than slots, so that contexts are evicted */
#define WINDOW 1024u	/* checked against INIT's answer */
#define SEQ_MAX 0x80000000u
#define BUDGET ((size_t)256 << 20)
#define WHOLE 16384u /* room for a reply */

enum outcome {
	RAN = 1,
	GARBAGE = 2,
	DROPPED = 4,
	CREDPROBLEM = 8,
	CTXPROBLEM = 16,
	BADCRED = 32,
	BADVERF = 64,
	TOO_LONG = 128,
	OTHER = 256
};
#define DENIALS (CREDPROBLEM | CTXPROBLEM | BADCRED | BADVERF)

struct slot {
	gss_ctx_id_t ctx;
	unsigned who;
	OM_uint32 flags;
	bool half, live;	/* in the server's table, as far as known */
	gss_buffer_desc answer; /* half: the token that goes on */
	uint8_t handle[HANDLE_MAX];
	uint32_t handle_len;
	uint32_t highest, used[STEPS_MAX], nused;
};

struct sent {
	struct message m;
	struct outgoing o;
	unsigned slot;
};

static struct {
	struct fake f;
	struct gss *g;
	struct rn_budget budget; /* of g */
	struct rpc_worker event_worker;
	struct fake_conn conns[CONNS];
	struct slot slots[SLOTS];
	struct sent sent[STEPS_MAX];
	unsigned nsent;
	uint32_t xid;
	bool evicted; /* established contexts were evicted, so any may be */
	/* The call under way: its sender, and whether it reached a procedure. */
	unsigned who;
	bool expected, identified;
	enum rpc_sec sec;
	struct reply reply;
	uint8_t results[MESSAGE_MAX * 4];
	long results_len;
} w;

static void finding(const char *what, unsigned long a, unsigned long b)
{
	fprintf(stderr, "FINDING: %s: %lu, %lu\n", what, a, b);
	abort();
}

static enum rpc_run identify(void *ctx, struct rpc_request *req)
{
	const struct rpc_principal *p = req->call.cred.principal;

	(void)ctx;
	if (!w.expected)
		finding("a call runs that nobody has signed", req->call.xid, req->call.proc);
	if (!p || strcmp(p->name, realm_principal(w.who)) != 0)
		finding("a call runs as somebody else", req->call.xid, w.who);
	w.identified = true;
	w.sec = req->call.cred.sec;
	req->call.cred.uid = w.who;
	return RPC_RUN_DONE;
}

static void move(struct rpc_worker *from, struct rpc_request *req)
{
	(void)from;
	req->worker = &w.f.worker;
	rn_inbox_post(&w.f.worker.inbox, &req->node);
}

static void set_up(void)
{
	const struct gss_config cfg = { .keytab = REALM_KEYTAB,
					.principal = REALM_SERVICE,
					.max_contexts = CONTEXTS_MAX,
					.budget = &w.budget };
	char why[GSS_WHY];

	if (!w.f.pool) {
		realm_init();
		fake_init(&w.f, 256);
		rn_budget_init(&w.budget, BUDGET);
		w.f.server.identify = identify;
		w.event_worker.on_event_thread = true;
		w.event_worker.move = move;
		w.event_worker.stacks = w.f.worker.stacks;
		for (unsigned i = 0; i < CONNS; i++)
			fake_conn_init(&w.conns[i], 1 + i, (uint8_t)(1 + i), 700);
	}
	if (gss_new(&cfg, &w.g, why) < 0) {
		fprintf(stderr, "%s\n", why);
		abort();
	}
	gss_secure(w.g, &w.f.server);
	w.nsent = 0;
	w.evicted = false;
}

static void slot_clear(struct slot *s)
{
	OM_uint32 minor;

	gss_delete_sec_context(&minor, &s->ctx, GSS_C_NO_BUFFER);
	gss_release_buffer(&minor, &s->answer);
	memset(s, 0, sizeof(*s));
}

static void tear_down(void)
{
	for (unsigned i = 0; i < SLOTS; i++)
		slot_clear(&w.slots[i]);
	gss_free(w.g);
	if (w.budget.used)
		finding("memory of the budget is left", w.budget.used, 0);
	if (fake_leaks(&w.f))
		finding("buffers are left", fake_leaks(&w.f), 0);
	for (unsigned i = 0; i < CONNS; i++) {
		if (w.conns[i].base.refs != 1)
			finding("references are left", i, w.conns[i].base.refs);
	}
}

/* Sizes of the pieces that a call comes in. */
static size_t piece_size(uint8_t layout)
{
	static const uint16_t sizes[8] = { MESSAGE_MAX, 400, 132, 60, 44, 24, 5, 1 };

	return sizes[layout >> 1 & 7];
}

/* Separate allocations, so that AddressSanitizer sees a read past the end. */
static void cut(struct rpc_request *req, const struct message *m, const struct outgoing *o,
		size_t step)
{
	size_t at = 0;

	for (req->nseg = 0; at < m->len; req->nseg++) {
		const size_t left = m->len - at;
		const size_t n = left < step || req->nseg == RPC_SEGS_MAX - 1 ? left : step;
		struct rpc_seg *s = &req->seg[req->nseg];

		*s = (struct rpc_seg){ .base = malloc(n), .len = (uint32_t)n };
		if (!s->base)
			abort();
		memcpy(s->base, m->bytes + at, n);
		s->placed = o->spoil == SPOIL_PLACED && at + n == m->len && at >= m->body_at;
		at += n;
	}
}

static unsigned answers(const struct fake_conn *c)
{
	return c->replies + c->drops + c->too_longs + c->garbage;
}

/* The call's own answer, however long its thread takes. */
static void await_answer(const struct fake_conn *c, unsigned before)
{
	struct pollfd p = { .fd = w.f.worker.inbox.fd, .events = POLLIN };
	uint64_t ignored;

	while (answers(c) == before) {
		if (fake_run_inbox(&w.f) == 0 && !w.f.pending) {
			if (poll(&p, 1, 60000) == 0)
				finding("a call is not answered", c->base.id, w.nsent);
			if (read(p.fd, &ignored, sizeof(ignored)) < 0)
				continue;
		}
		if (w.f.pending) {
			struct rpc_request *req = w.f.pending;

			w.f.pending = NULL;
			fake_complete(&w.f, req, RPC_RUN_DONE);
		}
	}
	if (answers(c) != before + 1)
		finding("a call is answered twice", answers(c), before);
}

static enum outcome judge(const struct fake_conn *c, unsigned replies, unsigned drops)
{
	if (c->drops != drops)
		return DROPPED;
	if (c->replies == replies)
		return TOO_LONG;
	switch (w.reply.kind) {
	case REPLY_SUCCESS:
		return RAN;
	case REPLY_GARBAGE:
		return GARBAGE;
	case REPLY_DENIED:
		return w.reply.stat == RPC_GSS_CREDPROBLEM  ? CREDPROBLEM
		       : w.reply.stat == RPC_GSS_CTXPROBLEM ? CTXPROBLEM
		       : w.reply.stat == RPC_AUTH_BADCRED   ? BADCRED
		       : w.reply.stat == RPC_AUTH_BADVERF   ? BADVERF
							    : OTHER;
	case REPLY_OTHER:
		return OTHER;
	default:
		finding("a malformed reply", c->reply_len, 0);
		return OTHER;
	}
}

static enum outcome submit(const struct message *m, const struct outgoing *o, uint8_t layout,
			   size_t room, unsigned conn)
{
	struct fake_conn *c = &w.conns[conn % CONNS];
	const unsigned before = answers(c), replies = c->replies, drops = c->drops;
	const uint32_t xid = (uint32_t)m->bytes[0] << 24 | (uint32_t)m->bytes[1] << 16 |
			     (uint32_t)m->bytes[2] << 8 | m->bytes[3];
	struct rpc_request *req = fake_request(&w.f, c, &(struct xdr_out){ 0 });
	uint8_t *mem[RPC_SEGS_MAX];
	unsigned n;

	cut(req, m, o, piece_size(layout));
	n = req->nseg;
	for (unsigned i = 0; i < n; i++)
		mem[i] = req->seg[i].base;
	req->reply_max = room;
	req->nbulk_spaces = layout & 1;
	req->bulk_space[0] = WHOLE;
	req->worker = layout & 1 ? &w.event_worker : &w.f.worker;
	w.identified = false;
	fake_begin(&w.f, req);
	await_answer(c, before);
	for (unsigned i = 0; i < n; i++)
		free(mem[i]);
	/* A bulk item that is not wrapped goes by the chunk, if there is one, and not by the stream. */
	const size_t most = layout & 1 && o->proc == FAKE_BULK ? room + WHOLE : room;

	if (c->replies != replies && c->reply_len > most)
		finding("a reply is longer than its room", c->reply_len, room);
	if (c->replies != replies && c->reply_len <= sizeof(c->reply))
		reply_read(c->reply, c->reply_len, xid, &w.reply);
	return judge(c, replies, drops);
}

static bool is_used(const struct slot *s, uint32_t seq)
{
	if (seq <= s->highest && s->highest - seq >= WINDOW)
		return true;
	for (unsigned i = 0; i < s->nused; i++) {
		if (s->used[i] == seq)
			return true;
	}
	return false;
}

static void use(struct slot *s, uint32_t seq)
{
	s->used[s->nused++ % STEPS_MAX] = seq;
	s->highest = rn_max(s->highest, seq);
}

static uint32_t pick_seq(const struct slot *s, uint8_t how)
{
	switch (how) {
	case 8:
		return s->highest;
	case 9:
		return s->highest - 1;
	case 10:
		return s->highest - (WINDOW - 1);
	case 11:
		return s->highest - WINDOW;
	case 12:
		return SEQ_MAX - 1;
	case 13:
		return SEQ_MAX;
	case 14:
		return UINT32_MAX;
	case 15:
		return s->highest + 5000;
	default:
		return s->highest + 1 + how % 4;
	}
}

/* Fields of the call after the defect. */
static uint32_t gss_proc_of(const struct outgoing *o)
{
	return o->spoil == SPOIL_GSS_PROC ? o->value : o->gss_proc;
}

static uint32_t service_of(const struct outgoing *o)
{
	return o->spoil == SPOIL_SERVICE ? o->value : o->service;
}

/* RFC 2203 section 5.3.1: the outcome of the credential and the verifier; 0: both are right. */
static unsigned expect_header(const struct outgoing *o, const struct message *m,
			      const struct slot *s)
{
	const uint32_t proc = gss_proc_of(o), service = service_of(o);
	const uint32_t rpc_proc = o->spoil == SPOIL_PROC ? o->value % FAKE_PROCS : o->proc;

	if (o->spoil == SPOIL_CRED_CUT || (o->spoil == SPOIL_VERSION && !m->harmless) ||
	    proc > PROC_DESTROY || service < SERVICE_NONE || service > SERVICE_PRIVACY ||
	    (proc != PROC_DATA && rpc_proc != FAKE_NULL))
		return BADCRED;
	if (proc == PROC_INIT || proc == PROC_CONTINUE || o->spoil == SPOIL_VERF_NONE)
		return BADVERF;
	if (!s->live || o->spoil == SPOIL_HANDLE || o->spoil == SPOIL_MIC_CUT ||
	    o->spoil == SPOIL_XID || (o->spoil == SPOIL_PROC && !m->harmless))
		return CREDPROBLEM;
	if (o->spoil == SPOIL_MIC)
		return realm_is_strict(s->who) ? CREDPROBLEM
					       : CREDPROBLEM | CTXPROBLEM | RAN | DROPPED;
	if (o->seq >= SEQ_MAX)
		return CTXPROBLEM;
	return is_used(s, o->seq) ? DROPPED : 0;
}

static unsigned expect(const struct outgoing *o, const struct message *m, const struct slot *s)
{
	const bool protected = service_of(o) != SERVICE_NONE;
	const unsigned header = expect_header(o, m, s);

	if (header)
		return header | (w.evicted && !(header & (BADCRED | BADVERF)) ? CREDPROBLEM : 0);
	const unsigned gone = w.evicted ? CREDPROBLEM : 0;

	if (gss_proc_of(o) == PROC_DESTROY)
		return RAN | gone;
	switch (o->spoil) {
	case SPOIL_SERVICE:
		return (m->harmless ? RAN : RAN | GARBAGE) | gone;
	case SPOIL_BODY:
		return (protected && realm_is_strict(s->who) ? GARBAGE : GARBAGE | RAN) | gone;
	case SPOIL_BODY_CUT:
		return (protected ? GARBAGE : GARBAGE | RAN) | gone;
	case SPOIL_INNER_SEQ:
		return (protected ? GARBAGE : RAN) | gone;
	case SPOIL_TAIL:
	case SPOIL_PLACED:
		return GARBAGE | RAN | gone;
	default:
		return RAN | gone;
	}
}

/* Results of an answer that may be read: the verifier is right, and they are protected as the call was. */
static void check_answer(const struct outgoing *o, const struct slot *s)
{
	struct outgoing as = *o;

	as.service = gss_proc_of(o) == PROC_DESTROY ? SERVICE_NONE : service_of(o);
	if (!reply_signs(s->ctx, &w.reply, o->seq))
		finding("the answer's verifier is wrong", o->seq, w.reply.mic_len);
	if (w.reply.kind != REPLY_SUCCESS)
		return;
	w.results_len = reply_results(s->ctx, &w.reply, &as, w.results);
	if (w.results_len < 0)
		finding("the results are not protected", o->service, w.reply.body_len);
	if (w.identified && (uint32_t)w.sec != RPC_SEC_KRB5 + as.service - 1)
		finding("another flavour than that of the call", w.sec, as.service);
}

static void check_stored(const struct outgoing *o)
{
	uint32_t want[2] = { 0 }, got[2];

	want[0] = (uint32_t)o->args_len - 4;
	for (size_t i = 4; i < o->args_len; i++)
		want[1] += o->args[i];
	for (unsigned i = 0; i < 2 && w.results_len == 8; i++)
		got[i] = (uint32_t)w.results[i * 4] << 24 | (uint32_t)w.results[i * 4 + 1] << 16 |
			 (uint32_t)w.results[i * 4 + 2] << 8 | w.results[i * 4 + 3];
	if (w.results_len != 8 || memcmp(want, got, sizeof(want)) != 0)
		finding("other arguments than those sent arrived", want[0], want[1]);
}

/* The client of a DCE-style context has sequence numbers of its own that only it keeps, so its answers are not read. */
static bool is_read(const struct slot *s)
{
	return !(s->flags & GSS_C_DCE_STYLE);
}

static void call(const struct outgoing *o, const struct message *m, struct slot *s, uint8_t layout,
		 size_t room)
{
	unsigned want = expect(o, m, s);
	struct gss_stats st;
	enum outcome got;

	if (room < WHOLE || o->proc == FAKE_LONG || o->proc == FAKE_BULK)
		want |= TOO_LONG;
	/* A length that was bent may want more memory than there is. */
	if (want & RAN && want & GARBAGE)
		want |= OTHER;
	/* Data lie in at most XDR_BULK_PIECES pieces. */
	if (want & RAN && o->proc == FAKE_STORE && piece_size(layout) < MESSAGE_MAX / 2)
		want |= GARBAGE;
	w.who = s->who;
	w.expected = want & RAN;
	got = submit(m, o, layout, room, s->who);
	if (!(got & want))
		finding("another outcome than RFC 2203 says", got, want);
	if (got == CREDPROBLEM && (want & ~(CREDPROBLEM | TOO_LONG)) && o->spoil != SPOIL_MIC)
		s->live = false; /* evicted */
	if (!(got & DENIALS) && got != DROPPED && s->live && o->spoil != SPOIL_VERF_NONE)
		use(s, o->seq);
	if (got & (RAN | GARBAGE) && is_read(s))
		check_answer(o, s);
	if (got == RAN && is_read(s) && o->proc == FAKE_STORE && gss_proc_of(o) == PROC_DATA &&
	    service_of(o) == o->service && (o->service != SERVICE_NONE || o->spoil == 0))
		check_stored(o);
	if (got == RAN && gss_proc_of(o) == PROC_DESTROY)
		s->live = false;
	gss_stats(w.g, &st);
	w.evicted |= st.evicted > 0;
}

static void keep_sent(const struct outgoing *o, const struct message *m, unsigned slot)
{
	w.sent[w.nsent++] = (struct sent){ *m, *o, slot };
}

/* Arguments of a procedure, of a size that one octet tells. */
static size_t make_args(uint32_t proc, uint8_t size, uint8_t *to)
{
	size_t len = 0;

	switch (proc) {
	case FAKE_NULL:
		return 0;
	case FAKE_STORE:
	case FAKE_ECHO:
		len = proc == FAKE_STORE ? size * 16u : size % 16u * 4u;
		break;
	default:
		to[0] = to[1] = 0;
		to[2] = size;
		to[3] = 4;
		return 4;
	}
	to[0] = to[1] = 0;
	to[2] = (uint8_t)(len >> 8);
	to[3] = (uint8_t)len;
	for (size_t i = 0; i < len; i++)
		to[4 + i] = (uint8_t)(i * 7 + size);
	return 4 + len;
}

static void set_handle(struct outgoing *o, const struct slot *from)
{
	memcpy(o->handle, from->handle, from->handle_len);
	o->handle_len = from->handle_len;
}

static void run_data(const uint8_t *p, struct slot *s, uint32_t gss_proc)
{
	static const uint8_t procs[8] = { FAKE_COUNT, FAKE_STORE,   FAKE_ECHO,	FAKE_NULL,
					  FAKE_BULK,  FAKE_PENDING, FAKE_COUNT, FAKE_LONG };
	static uint8_t args[MESSAGE_MAX];
	static struct message m;
	const size_t room = p[3] & 0x80 ? 24u + p[6] * 4u : WHOLE;
	struct outgoing o = { .ctx = s->ctx,
			      .xid = ++w.xid,
			      .seq = pick_seq(s, p[7] >> 4),
			      .service = SERVICE_NONE + p[3] % 3u,
			      .gss_proc = gss_proc,
			      .proc = gss_proc == PROC_DATA ? procs[p[2] % 8] : FAKE_NULL,
			      .args = args,
			      .spoil = p[4] % SPOILS,
			      .where = p[5],
			      .value = p[6] };

	if (!s->ctx || s->half || s->handle_len == 0)
		return;
	o.args_len = make_args(o.proc, p[5], args);
	set_handle(&o, s);
	if (o.spoil == SPOIL_HANDLE && &w.slots[p[5] % SLOTS] != s && w.slots[p[5] % SLOTS].live)
		set_handle(&o, &w.slots[p[5] % SLOTS]);
	else if (o.spoil == SPOIL_HANDLE)
		o.handle[p[6] % o.handle_len] ^= 0x10;
	message_make(&o, &m);
	keep_sent(&o, &m, (unsigned)(s - w.slots));
	call(&o, &m, s, p[7] & 15, room);
}

/* A whole call once more, by any connection: it must not run, and a number that was used is dropped. */
static void run_replay(const uint8_t *p)
{
	struct fake_conn *c = &w.conns[p[2] % CONNS];
	const unsigned count = w.f.count;
	const struct sent *sent;
	const struct slot *s;
	enum outcome got;

	if (w.nsent == 0)
		return;
	sent = &w.sent[p[1] % w.nsent];
	s = &w.slots[sent->slot];
	if (sent->o.ctx != s->ctx || !is_used(s, sent->o.seq))
		return;
	w.expected = false;
	got = submit(&sent->m, &sent->o, p[7] & 15, WHOLE, p[2]);
	if (w.f.count != count || got == RAN || got == TOO_LONG)
		finding("a replay runs", got, c->base.id);
	if (got == GARBAGE)
		finding("a replay is answered", got, c->base.id);
}

/* A retransmission, with a sequence number of its own: the cached reply, for its principal only. */
static void run_retry(const uint8_t *p, struct slot *s)
{
	static struct message m;
	const unsigned count = w.f.count;
	const struct sent *sent;
	struct outgoing o;

	if (w.nsent == 0 || !s->ctx || s->half || !s->live || !is_read(s))
		return;
	sent = &w.sent[p[2] % w.nsent];
	if (sent->o.proc != FAKE_COUNT || sent->o.spoil != SPOIL_NOTHING)
		return;
	static const uint8_t args[4] = { 0, 0, 0, 4 };
	o = sent->o;
	o.ctx = s->ctx;
	o.args = args;
	o.args_len = sizeof(args);
	o.seq = s->highest + 1;
	o.service = SERVICE_NONE + p[3] % 3u;
	set_handle(&o, s);
	message_make(&o, &m);
	call(&o, &m, s, p[7] & 15, WHOLE);
	if (w.f.count > count + 1)
		finding("a retransmission runs more than once", w.f.count, count);
}

/* The answer to INIT or CONTINUE_INIT: a context that is complete or goes on, or a failure. */
static void take_made(struct slot *s, bool spoilt)
{
	gss_buffer_desc in, out = GSS_C_EMPTY_BUFFER;
	struct made made;
	OM_uint32 minor;

	if (!reply_made(&w.reply, &made))
		finding("the answer to INIT is malformed", w.reply.kind, w.reply.body_len);
	if ((made.major >> 16) != 0) {
		if (made.handle_len > 0 || w.reply.verified)
			finding("a context that failed has a handle", made.major, made.handle_len);
		if (!spoilt && s->who != REALM_LIAR)
			finding("a true token makes no context", made.major, s->who);
		slot_clear(s);
		return;
	}
	if (s->who == REALM_LIAR)
		finding("a ticket of another key makes a context", made.major, 0);
	if (made.window != WINDOW || made.handle_len == 0)
		finding("the answer to INIT", made.window, made.handle_len);
	in = (gss_buffer_desc){ made.token_len, (void *)(uintptr_t)made.token };
	gss_release_buffer(&minor, &s->answer);
	if (made.token_len > 0 && !realm_step(s->who, s->flags, &s->ctx, &in, &out) && !spoilt)
		finding("the client does not take the answer's token", made.token_len, s->who);
	s->answer = out;
	s->half = made.major == GSS_S_CONTINUE_NEEDED;
	s->live = !s->half;
	s->handle_len = made.handle_len;
	memcpy(s->handle, made.handle, made.handle_len);
	/* A spoilt token may still be good for the server, where its client has lost its own side. */
	if (s->live && !spoilt && is_read(s) && !reply_signs(s->ctx, &w.reply, WINDOW))
		finding("the window is not signed", WINDOW, s->who);
	if (spoilt && s->live)
		slot_clear(s);
}

/* Sends a token, spoilt as the step says. True: there is an answer of the context's. */
static bool establish(const uint8_t *p, struct slot *s, uint32_t gss_proc,
		      const gss_buffer_desc *whole, bool *spoilt)
{
	static struct message m;
	gss_buffer_desc cut_token = *whole, *token = &cut_token;
	struct outgoing o = { .xid = ++w.xid,
			      .service = SERVICE_NONE + p[3] % 3u,
			      .gss_proc = gss_proc,
			      .spoil = p[4] % SPOILS,
			      .where = p[5],
			      .value = p[6] };
	size_t claimed = token->length;
	struct gss_stats before, after;
	enum outcome got;

	*spoilt = o.spoil != SPOIL_NOTHING;
	set_handle(&o, s);
	if (o.spoil == SPOIL_HANDLE && o.handle_len > 0)
		o.handle[p[5] % o.handle_len] ^= 1;
	if (o.spoil == SPOIL_BODY && claimed > 0)
		((uint8_t *)token->value)[(p[5] * 256u + p[6]) % claimed] ^=
			(uint8_t)(1u << p[6] % 8);
	if (o.spoil == SPOIL_BODY_CUT && claimed > 0)
		token->length = claimed = (p[5] * 256u + p[6]) % claimed;
	if (o.spoil == SPOIL_TAIL)
		claimed += p[6] * 257u;
	message_establish(&o, token, (uint32_t)claimed, &m);
	gss_stats(w.g, &before);
	w.expected = false;
	got = submit(&m, &o, p[7] & 15, WHOLE, p[7] >> 6);
	gss_stats(w.g, &after);
	w.evicted |= after.contexts < before.contexts + after.accepted - before.accepted;
	if (!*spoilt && got != RAN && gss_proc == PROC_INIT)
		finding("INIT is not answered", got, s->who);
	if (after.half_made > before.half_made && after.contexts < before.contexts)
		finding("a half-made context evicts an established one", after.contexts,
			before.contexts);
	return got == RAN;
}

static void run_init(const uint8_t *p, struct slot *s)
{
	gss_buffer_desc token = GSS_C_EMPTY_BUFFER;
	OM_uint32 minor;
	bool spoilt;

	slot_clear(s);
	s->who = p[2] % REALM_CLIENTS;
	s->flags = GSS_C_MUTUAL_FLAG | GSS_C_INTEG_FLAG | GSS_C_CONF_FLAG;
	if (p[2] & 0x80)
		s->flags |= GSS_C_DCE_STYLE;
	if (p[2] & 0x40)
		s->flags |= GSS_C_REPLAY_FLAG | GSS_C_SEQUENCE_FLAG;
	if (!realm_step(s->who, s->flags, &s->ctx, NULL, &token))
		finding("the client has no token", s->who, s->flags);
	if (establish(p, s, PROC_INIT, &token, &spoilt))
		take_made(s, spoilt);
	else
		slot_clear(s);
	gss_release_buffer(&minor, &token);
}

static void run_continue(const uint8_t *p, struct slot *s)
{
	static const uint8_t junk[16] = { 0x60, 0x0e, 0x06 };
	gss_buffer_desc token = { s->answer.length, s->answer.value };
	uint8_t copy[sizeof(junk)];
	bool spoilt;

	if (token.length == 0) {
		memcpy(copy, junk, sizeof(junk));
		token = (gss_buffer_desc){ sizeof(copy), copy };
	}
	/* A call of another procedure is no CONTINUE_INIT. */
	if (!establish(p, s, PROC_CONTINUE, &token, &spoilt) || p[4] % SPOILS == SPOIL_GSS_PROC)
		return;
	if (!s->half)
		finding("a context goes on that is not half made", s->live, s->who);
	take_made(s, true);
}

static void run_step(const uint8_t *p)
{
	struct slot *s = &w.slots[p[1] % SLOTS];

	switch (p[0] % 8) {
	case 0:
		run_init(p, s);
		break;
	case 1:
		run_continue(p, s);
		break;
	case 5:
		run_data(p, s, PROC_DESTROY);
		break;
	case 6:
		run_replay(p);
		break;
	case 7:
		run_retry(p, s);
		break;
	default:
		run_data(p, s, PROC_DATA);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < STEP)
		return 0;
	set_up();
	for (unsigned i = 0; i < STEPS_MAX && size >= STEP; i++) {
		run_step(data);
		data += STEP;
		size -= STEP;
	}
	tear_down();
	return 0;
}

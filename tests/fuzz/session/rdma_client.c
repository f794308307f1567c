/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/rdma_client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "lib/util.h"
#include "tests/fuzz/session/claims.h"
#include "tests/fuzz/session/finding.h"
#include "tests/fuzz/session/rdma_reply.h"
#include "tests/fuzz/session/sealed.h"
#include "tests/fuzz/session/step.h"
#include "tests/fuzz/session/template.h"
#include "tools/conform/conform_wire.h"

#define MANNER_INVALIDATE 0x04u
#define MANNER_NO_PRIVATE 0x08u
#define MANNER_ONE_READ 0x10u
#define MANNER_NO_RETRY 0x20u

#define NFS_PROG 100003u
#define READLINK 5u
#define READ 6u
#define READDIR 16u
#define READDIRPLUS 17u
#define SIZE_1M 28

int ss_rdma_open(struct ss_rdma *c, uint16_t port, uint8_t how, struct ss_values *values)
{
	static const uint32_t sizes[] = { 4096, 1024, 8192, 65536 };
	const struct cf_conn_options o = {
		.inline_size = sizes[how & 3],
		.invalidate = how & MANNER_INVALIDATE,
		.no_private = how & MANNER_NO_PRIVATE,
		.read_depth = how & MANNER_ONE_READ ? 1 : 0,
		.rnr_retry = how & MANNER_NO_RETRY ? 0 : 7,
	};
	char text[8];

	snprintf(text, sizeof(text), "%u", port);
	int err = cf_conn_open(&c->conn, "127.0.0.1", text, &o, ss_now_ms() + SS_HANG_MS);
	if (err)
		return err;
	c->open = true;
	c->patient = o.rnr_retry == 7;
	c->doomed = c->muted = c->was_muted = c->ended = false;
	c->debts.n = c->debts.open = 0;
	ss_back_init(&c->back);
	memset(c->window, 0, sizeof(c->window));
	c->values = values;
	return 0;
}

void ss_rdma_close(struct ss_rdma *c, bool reset)
{
	if (!c->open)
		return;
	if (!cf_conn_guards_intact(&c->conn))
		ss_finding("rdma: the server wrote outside of what it was offered");
	cf_conn_close(&c->conn, !reset && !c->ended);
	c->open = false;
}

struct ss_window *ss_rdma_window(struct ss_rdma *c, unsigned k, struct ss_values *v)
{
	struct ss_window *w = &c->window[k % SS_WINDOWS];

	if (!c->open || c->ended)
		return NULL;
	if (!w->memory)
		w->memory = cf_window_new(&c->conn, SS_WINDOW_SIZE);
	if (!w->memory)
		return NULL;
	v->rkey = w->memory->handle;
	v->address = (uintptr_t)w->memory->data;
	return w;
}

/* True if all segments of the header lie in memory that the server may read or write. */
static bool segments_are_ours(const struct ss_rdma *c, const struct ss_rdma_header *h)
{
	for (unsigned i = 0; i < h->nsegs; i++)
		if (h->seg[i].length && !cf_conn_segment_data(&c->conn, &h->seg[i]))
			return false;
	return true;
}

/* The RPC message of a header: behind the header, or in the first Read segment. */
static const uint8_t *find_message(const struct ss_rdma *c, const struct ss_rdma_header *h,
				   const uint8_t *msg, size_t len, size_t *rpc_len)
{
	const uint8_t *p = NULL;

	*rpc_len = 0;
	if (h->whole && h->proc == SS_RDMA_MSG) {
		*rpc_len = len - h->size;
		return msg + h->size;
	}
	if (h->whole && h->nreads)
		p = cf_conn_segment_data(&c->conn, &h->seg[0]);
	if (p)
		*rpc_len = h->seg[0].length;
	return p;
}

/* Records the debt for a Send: one answer for every message with an xid, except RDMA_DONE and
 * RDMA_ERROR. */
static void expect(struct ss_rdma *c, const uint8_t *msg, size_t len, struct ss_window *w)
{
	struct ss_rdma_header *h = &w->call;
	struct ss_call call = { 0 };
	size_t rpc_len = 0;

	ss_rdma_parse(msg, len, h);
	if (len > c->conn.call_inline || !segments_are_ours(c, h))
		c->doomed = true;
	/* The server discards messages shorter than a header (RFC 8166 section 4.5). */
	if (len < SS_RDMA_HEADER_MIN ||
	    (h->vers == 1 && (h->proc == SS_RDMA_DONE || h->proc == SS_RDMA_ERROR)))
		return;
	/* Replies may find no Receive posted, and an impatient client forbids the retry. */
	if (!c->patient && c->debts.open >= c->conn.o.recvs)
		c->doomed = true;
	/* The contents of a window that other calls use too may change at any moment. */
	const uint8_t *rpc =
		h->proc == SS_RDMA_MSG || !w->users ? find_message(c, h, msg, len, &rpc_len) : NULL;
	bool reply = rpc_len >= 8 && ss_word(rpc + 4) == 1; /* the message's type is REPLY */
	if (!rpc || !ss_call_parse(rpc, rn_min(rpc_len, SS_HEAD_MAX), &call))
		call.known = call.who.known = call.sealed = false;
	call.claims = call.known ? ss_claims_of(rpc, rpc_len) : 0;
	call.near = true;
	if (call.sealed)
		call.claims = ss_gss_claims(call.xid);
	call.xid = h->xid;
	struct ss_debt *debt = ss_debts_add(&c->debts, &call);
	if (!debt) {
		c->doomed = true;
		return;
	}
	debt->window = (unsigned)(w - c->window);
	if (reply || (call.sealed && ss_gss_may_drop(call.xid)))
		ss_debts_forgive(&c->debts, debt);
	debt->rdma_vers = h->vers;
	w->users++;
}

bool ss_rdma_has_room(const struct ss_rdma *c)
{
	return c->conn.sends_busy + 1 < c->conn.o.sends;
}

void ss_rdma_send(struct ss_rdma *c, const uint8_t *msg, size_t len, struct ss_window *w)
{
	ss_rdma_poll(c);
	if (!c->open || c->ended || c->debts.n == SS_DEBTS_MAX || !ss_rdma_has_room(c))
		return;
	/* Recorded before the Send, because the answer may arrive before cf_conn_send() returns. */
	expect(c, msg, len, w);
	if (cf_conn_send(&c->conn, msg, len, ss_now_ms() + SS_HANG_MS) < 0)
		c->ended = c->doomed = true;
}

void ss_rdma_answer(struct ss_rdma *c, const uint8_t *msg, size_t len, uint32_t xid,
		    uint32_t credits)
{
	uint8_t out[SS_RDMA_HEADER_MIN + SS_ANSWER_MAX];
	struct xdr_out x;

	xdr_out_init(&x, out, sizeof(out));
	cf_put_fixed(&x, xid, 1, credits, msg ? CF_MSG : CF_ERROR);
	if (msg) {
		cf_put_lists(&x, &(struct cf_lists){ 0 });
		xdr_put_fixed(&x, msg, (uint32_t)len);
	} else {
		xdr_put_u32(&x, CF_ERR_CHUNK);
	}
	ss_rdma_poll(c);
	if (!c->open || c->ended || !ss_rdma_has_room(c) || x.used > c->conn.call_inline)
		return;
	if (cf_conn_send(&c->conn, out, x.used, ss_now_ms() + SS_HANG_MS) < 0)
		c->ended = c->doomed = true;
}

size_t ss_rdma_wrap(struct ss_rdma *c, const uint8_t *msg, size_t len, struct ss_window *w,
		    uint8_t *out)
{
	struct ss_values v = { .rkey = w->memory->handle, .address = (uintptr_t)w->memory->data };
	static uint8_t marked[SS_TEMPLATE_MAX], plain[SS_MESSAGE_MAX];
	struct ss_chunks chunks = { 0 };
	struct ss_call call;

	if (ss_call_parse(msg, len, &call) && call.known && call.prog == NFS_PROG) {
		chunks.write = call.proc == READ || call.proc == READLINK ? SIZE_1M : 0;
		chunks.reply = call.proc == READDIR || call.proc == READDIRPLUS ? SIZE_1M : 0;
		if (call.sealed)
			chunks.reply = SIZE_1M;
	}
	chunks.long_call = len + 100 > rn_min(c->conn.call_inline, SS_TEMPLATE_MAX);
	if (chunks.long_call && w->users)
		return 0;
	if (chunks.long_call)
		memcpy(w->memory->data, msg, rn_min(len, SS_WINDOW_SIZE));
	size_t n = ss_template_rdma(&chunks, msg, len, marked);
	n = ss_expand(marked, n, &v, plain);
	/* The mark gave the chunk a size of ss_sizes; a chunk at position zero needs the message's
	 * own length. */
	if (chunks.long_call && n >= 32)
		ss_set_word(plain + 28, (uint32_t)rn_min(len, SS_WINDOW_SIZE));
	n = rn_min(n, SS_DATA_MAX);
	memcpy(out, plain, n);
	return n;
}

static void end(struct ss_rdma *c)
{
	if (!c->doomed && !c->was_muted)
		ss_finding(
			"rdma: the server closed (%s) a connection on which only calls were sent, "
			"%u of them unanswered",
			c->conn.why, c->debts.open);
	c->ended = true;
}

/* Retires a window that the server has invalidated. */
static void forget_window(struct ss_rdma *c, uint32_t handle)
{
	for (unsigned i = 0; i < SS_WINDOWS; i++) {
		struct ss_window *w = &c->window[i];

		if (!w->memory || w->memory->handle != handle)
			continue;
		c->doomed |= w->users > 0; /* other calls still name the window */
		w->memory->handle = 0;	   /* segments with this handle are no longer valid */
		w->memory = NULL;	   /* the connection frees the memory when it closes */
		w->users = 0;
	}
}

/* A call of the server, inline and without chunks, within the credits granted (RFC 8167). */
static void take_call(struct ss_rdma *c, const struct cf_received *r)
{
	const char *wrong =
		ss_back_take(&c->back, r->data + SS_RDMA_HEADER_MIN, r->len - SS_RDMA_HEADER_MIN);

	if (r->len > c->conn.reply_inline)
		wrong = "above the inline threshold";
	else if (ss_word(r->data + 16) || ss_word(r->data + 20) || ss_word(r->data + 24))
		wrong = "with chunks";
	else if (ss_back_waiting(&c->back) > rn_min(c->back.most, ss_word(r->data + 8)))
		wrong = "more at once than granted, or asked for";
	if (wrong)
		ss_finding("rdma: a call of the server: %s", wrong);
	/* A call of the server takes a Receive, of which an impatient client may have none left. */
	c->doomed |= !c->patient;
}

static void take_reply(struct ss_rdma *c, const struct cf_received *r)
{
	if (r->len < SS_RDMA_FIXED)
		ss_finding("rdma: a message of %zu octets", r->len);
	if (r->len >= 36 && ss_word(r->data + 12) == SS_RDMA_MSG && ss_word(r->data + 32) == 0 &&
	    ss_word(r->data + 28) == ss_word(r->data)) {
		take_call(c, r);
		return;
	}
	struct ss_debt *debt = ss_debts_pay(&c->debts, ss_word(r->data));
	if (!debt)
		ss_finding("rdma: a message with xid %x that answers no call", ss_word(r->data));
	struct ss_window *w = &c->window[debt->window];
	const char *bad = ss_rdma_reply_check(&c->conn, w, debt, r, c->values);
	if (bad)
		ss_finding("rdma: reply to program %u version %u procedure %u: %s", debt->call.prog,
			   debt->call.vers, debt->call.proc, bad);
	w->users -= w->users > 0;
	if (r->invalidated)
		forget_window(c, r->handle);
}

static void look_at_events(struct ss_rdma *c)
{
	struct rdma_cm_event *ev;

	while (c->conn.events && rdma_get_cm_event(c->conn.events, &ev) == 0) {
		if (!c->conn.closed)
			snprintf(c->conn.why, sizeof(c->conn.why), "%s", rdma_event_str(ev->event));
		c->conn.closed = true;
		rdma_ack_cm_event(ev);
	}
}

static void arm(struct ss_rdma *c)
{
	struct ibv_cq *cq;
	void *ctx;

	while (ibv_get_cq_event(c->conn.comp, &cq, &ctx) == 0)
		ibv_ack_cq_events(cq, 1);
	ibv_req_notify_cq(c->conn.recv_cq, 0);
	ibv_req_notify_cq(c->conn.send_cq, 0);
}

bool ss_rdma_poll(struct ss_rdma *c)
{
	struct cf_received r;
	bool moved = false;

	if (!c->open || c->ended)
		return false;
	arm(c); /* armed before the poll, so that a later completion wakes the thread */
	for (;;) {
		enum cf_got got = c->muted ? CF_GOT_TIMEOUT : cf_conn_receive(&c->conn, &r, 0);

		if (got == CF_GOT_MESSAGE)
			take_reply(c, &r);
		if (got == CF_GOT_CLOSED) {
			look_at_events(c);
			end(c);
			return true;
		}
		if (got == CF_GOT_TIMEOUT)
			break;
		moved = true;
	}
	look_at_events(c);
	return moved;
}

bool ss_rdma_settled(const struct ss_rdma *c)
{
	return !c->open || c->ended || !c->debts.open;
}

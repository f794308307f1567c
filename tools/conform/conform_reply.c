/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending, and the checks of what comes back. */
#include "tools/conform/conform_call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"

#define CREDITS_SANE 65536u

static const char *const accept_names[] = { "SUCCESS",	    "PROG_UNAVAIL", "PROG_MISMATCH",
					    "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR" };

const char *cf_accept_name(enum cf_accept a)
{
	return (unsigned)a < rn_array_size(accept_names) ? accept_names[a] : "an unknown status";
}

bool cf_send_bytes(struct cf_test *t, const void *msg, size_t len)
{
	if (!t->conn)
		return cf_fail(t, "the connection is open", "it is closed");
	int rc = cf_conn_send(t->conn, msg, len, t->deadline);
	if (rc)
		return cf_fail(t, "the server takes the message", "%s: %s", strerror(-rc),
			       t->conn->why);
	return true;
}

/* The message, in t->out; 0: verdict. */
static size_t cf_message_encode(struct cf_test *t, const struct cf_call *c)
{
	if (!t->out && !(t->out = malloc(CF_INLINE_MAX)))
		return cf_skip(t, "out of memory");
	if (c->rpc.overflow)
		return cf_fail(t, "a case that keeps to cf_call_room", "a mistake in this tool");
	return cf_call_encode(c, t->out);
}

bool cf_send(struct cf_test *t, struct cf_call *c)
{
	size_t len = cf_message_encode(t, c);

	return len && cf_send_bytes(t, t->out, len);
}

struct cf_reply *cf_next_until(struct cf_test *t, int64_t until)
{
	struct cf_received in;

	if (!t->conn) {
		cf_fail(t, "an answer", "the connection is closed");
		return NULL;
	}
	switch (cf_conn_receive(t->conn, &in, until)) {
	case CF_GOT_CLOSED:
		cf_fail(t, "an answer", "the connection was closed: %s", t->conn->why);
		return NULL;
	case CF_GOT_TIMEOUT:
		return NULL;
	case CF_GOT_MESSAGE:
		break;
	}
	struct cf_reply *r = cf_alloc(t, sizeof(*r) + in.len);
	uint8_t *copy = (uint8_t *)(r + 1);
	memcpy(copy, in.data, in.len);
	r->msg = copy;
	r->len = in.len;
	r->invalidated = in.invalidated;
	r->handle = in.handle;
	const char *bad = cf_header_decode(r->msg, r->len, &r->h);
	if (bad) {
		cf_fail(t, "a well-formed RPC-over-RDMA header (RFC 8166 4)", "%s", bad);
		cf_seen_words(t, r->msg, r->len);
		return NULL;
	}
	return r;
}

bool cf_is_call(const struct cf_reply *r)
{
	return r->h.proc == CF_MSG && r->len >= r->h.size + 8 &&
	       cf_word(r->msg + r->h.size + 4) == 0;
}

struct cf_reply *cf_next(struct cf_test *t)
{
	for (;;) {
		struct cf_reply *r = cf_next_until(t, t->deadline);

		if (!r)
			cf_fail(t, "an answer", "nothing came in time"); /* unless it has failed */
		if (!r || !t->take_call || !cf_is_call(r))
			return r;
		if (!t->take_call(t, r))
			return NULL;
	}
}

/* Reports the fault of r. */
static bool bad_reply(struct cf_test *t, const struct cf_reply *r, const char *expected,
		      const char *seen)
{
	if (t->verdict != CF_PASS)
		return false;
	cf_fail(t, expected, "%s", seen);
	cf_seen_words(t, r->msg, r->len);
	return false;
}

static bool fixed_words(struct cf_test *t, const struct cf_call *c, const struct cf_reply *r)
{
	if (r->h.xid != c->xid)
		return bad_reply(t, r, "the call's xid (RFC 8166 4.2.1)", "another xid");
	if (r->h.vers != (r->h.proc == CF_ERROR ? c->vers : CF_VERSION))
		return bad_reply(t, r,
				 "rdma_vers 1, or the call's in an error (RFC 8166 4.2.2, 4.5)",
				 "another version");
	if (r->h.credits == 0 || r->h.credits > CREDITS_SANE)
		return bad_reply(t, r, "a grant that is not zero and can be meant (RFC 8166 3.3.1)",
				 r->h.credits ? "an absurd grant" : "zero credits");
	if (r->len > t->conn->reply_inline)
		return bad_reply(t, r,
				 "no message above the reply inline threshold (RFC 8166 3.3.2)",
				 "a longer one");
	return true;
}

/* RFC 8797 section 4.1. */
static bool invalidation(struct cf_test *t, const struct cf_call *c, const struct cf_reply *r)
{
	const struct cf_lists *l = &c->lists;

	if (!r->invalidated)
		return true;
	if (!t->conn->may_invalidate)
		return bad_reply(t, r,
				 "no Send with Invalidate unless both have offered it "
				 "(RFC 8797 4.1)",
				 "a Send with Invalidate");
	for (unsigned i = 0; i < l->nreads; i++)
		if (l->read[i].seg.handle == r->handle)
			return true;
	for (unsigned i = 0; i < l->nwrites; i++)
		for (unsigned s = 0; s < l->write[i].nsegs; s++)
			if (l->write[i].seg[s].handle == r->handle)
				return true;
	for (unsigned s = 0; l->has_reply && s < l->reply.nsegs; s++)
		if (l->reply.seg[s].handle == r->handle)
			return true;
	return bad_reply(t, r, "only a handle of the same call is invalidated (RFC 8797 4.1)",
			 "another handle was");
}

/* The payload stream: behind the header, or in the Reply chunk. */
static bool cf_reply_gather(struct cf_test *t, struct cf_reply *r)
{
	const struct cf_chunk *chunk = &r->h.lists.reply;

	if (r->h.proc == CF_MSG) {
		r->stream = r->msg + r->h.size;
		r->stream_len = r->len - r->h.size;
		return true;
	}
	if (r->len != r->h.size)
		return bad_reply(t, r, "nothing behind the lists of RDMA_NOMSG (RFC 8166 4.2.4)",
				 "further bytes");
	for (unsigned i = 0; i < chunk->nsegs; i++)
		if (!cf_conn_segment_data(t->conn, &chunk->seg[i]))
			return bad_reply(t, r, "segments of the Reply chunk offered",
					 "one that is elsewhere");
	uint8_t *stream = cf_alloc(t, cf_chunk_len(chunk));
	for (unsigned i = 0; i < chunk->nsegs; i++) {
		memcpy(stream + r->stream_len, cf_conn_segment_data(t->conn, &chunk->seg[i]),
		       chunk->seg[i].length);
		r->stream_len += chunk->seg[i].length;
	}
	r->stream = stream;
	return true;
}

/* xid, REPLY, MSG_ACCEPTED, verifier, status: RFC 5531 section 9. */
static bool cf_reply_decode_rpc(struct cf_test *t, const struct cf_call *c, struct cf_reply *r)
{
	rn_arena_init(&r->arena, cf_alloc_raw(t, r->stream_len + 64), r->stream_len + 64);
	r->seg = (struct rpc_seg){ .base = (uint8_t *)r->stream, .len = r->stream_len };
	xdr_in_init(&r->x, &r->seg, 1, &r->arena);
	uint32_t xid = xdr_get_u32(&r->x);
	uint32_t direction = xdr_get_u32(&r->x);
	r->accepted = xdr_get_u32(&r->x) == 0;
	if (r->x.err || xid != c->xid || direction != 1)
		return bad_reply(t, r,
				 "an RPC reply with the xid of the transport header "
				 "(RFC 8166 4.2.1)",
				 "something else");
	if (r->accepted) {
		r->verf_flavor = xdr_get_u32(&r->x);
		r->verf = xdr_get_opaque(&r->x, 400, &r->verf_len);
		r->accept = xdr_get_u32(&r->x);
		if (r->x.err)
			return bad_reply(t, r, "a whole RPC reply (RFC 5531 9)", "a cut one");
	} else if (xdr_get_u32(&r->x) == 1) { /* AUTH_ERROR */
		r->stat = xdr_get_u32(&r->x);
	}
	if (r->stream_len % 4)
		return bad_reply(t, r, "a payload stream of whole XDR words (RFC 4506 3)",
				 "an odd length");
	return true;
}

bool cf_answers(struct cf_test *t, const struct cf_call *c, struct cf_reply *r)
{
	if (!fixed_words(t, c, r) || !invalidation(t, c, r))
		return false;
	if (!cf_conn_guards_intact(t->conn))
		return bad_reply(t, r, "no byte is written outside of the memory offered",
				 "guard bytes have changed");
	if (r->h.proc == CF_ERROR) {
		if (r->len != r->h.size)
			return bad_reply(t, r, "an RDMA_ERROR without more (RFC 8166 4.1.2)",
					 "further bytes");
		return true;
	}
	const char *bad = cf_lists_answer(&c->lists, &r->h);
	if (bad)
		return bad_reply(t, r, "lists that answer those of the call (RFC 8166 3.4.6, 4.3)",
				 bad);
	return cf_reply_gather(t, r) && cf_reply_decode_rpc(t, c, r);
}

struct cf_reply *cf_wait(struct cf_test *t, const struct cf_call *c)
{
	struct cf_reply *r = cf_next(t);

	return r && cf_answers(t, c, r) ? r : NULL;
}

struct cf_reply *cf_ask_any(struct cf_test *t, struct cf_call *c)
{
	return cf_send(t, c) ? cf_wait(t, c) : NULL;
}

bool cf_expect_accept(struct cf_test *t, struct cf_reply *r, enum cf_accept status)
{
	char want[64];

	snprintf(want, sizeof(want), "an RPC reply with %s", cf_accept_name(status));
	if (r->h.proc == CF_ERROR)
		return bad_reply(t, r, want,
				 r->h.err == CF_ERR_VERS ? "RDMA_ERROR, ERR_VERS"
							 : "RDMA_ERROR, ERR_CHUNK");
	if (!r->accepted)
		return bad_reply(t, r, want, "MSG_DENIED");
	if (r->accept != status)
		return bad_reply(t, r, want, cf_accept_name(r->accept));
	return true;
}

bool cf_expect_success(struct cf_test *t, struct cf_reply *r)
{
	return cf_expect_accept(t, r, CF_SUCCESS);
}

bool cf_expect_err_chunk(struct cf_test *t, const struct cf_reply *r)
{
	if (r->h.proc == CF_ERROR && r->h.err == CF_ERR_CHUNK)
		return true;
	if (r->h.proc == CF_ERROR)
		return bad_reply(t, r, "RDMA_ERROR, ERR_CHUNK", "ERR_VERS");
	return bad_reply(t, r, "RDMA_ERROR, ERR_CHUNK",
			 r->accepted ? cf_accept_name(r->accept) : "MSG_DENIED");
}

bool cf_expect_violation(struct cf_test *t, struct cf_reply *r)
{
	if (r->h.proc == CF_ERROR && r->h.err == CF_ERR_CHUNK)
		return true;
	if (r->h.proc != CF_ERROR && r->accepted && r->accept == CF_GARBAGE_ARGS)
		return true;
	return bad_reply(t, r, "ERR_CHUNK or GARBAGE_ARGS",
			 r->h.proc == CF_ERROR ? "ERR_VERS"
			 : r->accepted	       ? cf_accept_name(r->accept)
					       : "MSG_DENIED");
}

struct cf_reply *cf_ask(struct cf_test *t, struct cf_call *c)
{
	struct cf_reply *r = cf_ask_any(t, c);

	return r && cf_expect_success(t, r) ? r : NULL;
}

bool cf_refused(struct cf_test *t, struct cf_call *c)
{
	struct cf_reply *r = cf_ask_any(t, c);

	return r && cf_expect_err_chunk(t, r);
}

bool cf_refused_bytes(struct cf_test *t, const void *msg, size_t len, uint32_t xid)
{
	struct cf_call c = { .xid = xid, .vers = CF_VERSION };

	if (!cf_send_bytes(t, msg, len))
		return false;
	struct cf_reply *r = cf_next(t);
	if (!r)
		return false;
	if (r->h.proc != CF_ERROR)
		return bad_reply(t, r, "RDMA_ERROR, ERR_CHUNK", "a reply");
	return cf_answers(t, &c, r) && cf_expect_err_chunk(t, r);
}

bool cf_silence(struct cf_test *t, int ms)
{
	struct cf_received in;

	switch (cf_conn_receive(t->conn, &in, cf_now_ms() + ms)) {
	case CF_GOT_TIMEOUT:
		return true;
	case CF_GOT_CLOSED:
		return cf_fail(t, "the message is silently discarded",
			       "the connection was closed: %s", t->conn->why);
	case CF_GOT_MESSAGE:
		break;
	}
	cf_fail(t, "the message is silently discarded", "an answer of %zu bytes", in.len);
	cf_seen_words(t, in.data, in.len);
	return false;
}

bool cf_expect_closed(struct cf_test *t)
{
	struct cf_received in;

	switch (cf_conn_receive(t->conn, &in, t->deadline)) {
	case CF_GOT_CLOSED:
		return true;
	case CF_GOT_TIMEOUT:
		return cf_fail(t, "the connection is closed", "it is still open");
	case CF_GOT_MESSAGE:
		break;
	}
	cf_fail(t, "the connection is closed", "an answer of %zu bytes", in.len);
	cf_seen_words(t, in.data, in.len);
	return false;
}

bool cf_alive(struct cf_test *t)
{
	return cf_ask(t, cf_call_new_none(t, CF_PROG_NFS, 3, 0)) != NULL;
}

/*
 * Waits for the NULL call's answer or the end of the connection, without a time limit of its own.
 */
bool cf_not_carried_out(struct cf_test *t, uint32_t xid)
{
	struct cf_call *c = cf_call_new_none(t, CF_PROG_NFS, 3, 0);
	struct cf_received in;
	enum cf_got got;

	size_t len = cf_message_encode(t, c);
	if (!len)
		return false;
	if (cf_conn_send(t->conn, t->out, len, t->deadline) < 0)
		return cf_server_alive(t);
	while ((got = cf_conn_receive(t->conn, &in, t->deadline)) == CF_GOT_MESSAGE) {
		if (in.len >= 4 && cf_word(in.data) == c->xid)
			return true;
		if (in.len < 20 || cf_word(in.data) != xid)
			break;
		if (in.len >= 52 && cf_word(in.data + 12) == CF_MSG && cf_word(in.data + 36) == 0 &&
		    cf_word(in.data + 48) == CF_SUCCESS) {
			cf_fail(t, "what cannot be a call is not carried out", "SUCCESS");
			cf_seen_words(t, in.data, in.len);
			return false;
		}
	}
	if (got == CF_GOT_CLOSED)
		return cf_server_alive(t);
	return cf_fail(t, "the answer to a NULL call", "%s",
		       got == CF_GOT_TIMEOUT ? "nothing in time" : "an answer to nothing");
}

bool cf_server_alive(struct cf_test *t)
{
	if ((!t->conn || t->conn->closed) && !cf_reopen(t))
		return false;
	return cf_alive(t);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a call's credential to its arguments in plain text (RFC 2203 section 5.3). What may fail for want of
 * memory comes before the sequence number is used up, as such a call is looked at again later.
 */
#include "gss/gss_private.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "gss/contexts.h"
#include "lib/util.h"
#include "rpc/worker.h"
#include "rpc/xdr_in.h"

bool gss_get_cred(const uint8_t *body, uint32_t len, struct gss_cred *out)
{
	/* The reader does not write to what it reads. */
	const struct rpc_seg seg = { .base = (uint8_t *)(uintptr_t)body, .len = len };
	struct xdr_in x;

	xdr_in_init(&x, &seg, 1, NULL);
	out->version = xdr_get_u32(&x);
	if (x.err || out->version != GSS_VERSION)
		return false;
	out->proc = xdr_get_u32(&x);
	out->seq = xdr_get_u32(&x);
	out->service = xdr_get_u32(&x);
	out->handle = xdr_get_opaque(&x, len, &out->handle_len);
	return !x.err && x.left == 0 && out->proc <= GSS_DESTROY && out->service >= GSS_NONE &&
	       out->service <= GSS_PRIVACY;
}

/* Copies for a context that several threads want, made on the acceptor's threads: the library looks at its
 * configuration file for each. */
struct growing {
	struct rn_job job;
	struct gss *g;
	struct gss_context *context; /* a reference */
};

static void gss_grow_run(struct rn_job *job)
{
	struct growing *w = rn_container_of(job, struct growing, job);
	struct gss_context *x = w->context;

	if (!gss_copies_grow(&x->copies, w->g->memory.copies))
		gss_contexts_remove(w->g->contexts, x);
	/* Another context may have taken its place meanwhile. */
	if (!gss_contexts_is_grown(w->g->contexts, x))
		gss_copies_shrink(&x->copies);
}

static void gss_grow_done(struct rn_job *job)
{
	struct growing *w = rn_container_of(job, struct growing, job);

	gss_context_put(w->context);
	free(w);
}

/* Has copies made of a context, for a call of that host. */
static void gss_grow(struct gss *g, struct gss_context *x, const struct rn_host *host)
{
	struct growing *w;

	if (!x->may_copy || !gss_contexts_may_grow(g->contexts, x))
		return;
	w = calloc(1, sizeof(*w));
	if (!w)
		return;
	w->job.host = *host;
	w->job.admitted = true;
	w->job.run = gss_grow_run;
	w->job.done = gss_grow_done;
	w->g = g;
	w->context = x;
	atomic_fetch_add_explicit(&x->refs, 1, memory_order_relaxed);
	if (!rn_jobs_submit(g->acceptor, &w->job))
		gss_grow_done(&w->job);
}

/* From the xid to the end of the longest credential: RFC 5531 section 9. */
#define SIGNED_MOST (8u * 4u + RPC_AUTH_BYTES_MAX)

void gss_release_call(struct rpc_request *req)
{
	struct gss_call *c = rn_container_of(req->secured, struct gss_call, base);

	gss_context_put(c->context);
	free(c);
}

/* RPC_SECURE_CALL if it is. An event thread does not wait for other threads' calls of the library. */
static enum rpc_secure_verdict gss_call_check_verifier(struct gss_context *x,
						       struct rpc_request *req)
{
	const struct rpc_call *call = &req->call;
	uint8_t header[SIGNED_MOST];
	struct gss_mech_piece piece = { header, call->signed_len };
	struct gss_mech_ctx *mech;
	struct xdr_in in;
	bool right;

	if (call->signed_len > sizeof(header))
		return RPC_SECURE_REFUSE;
	xdr_in_init(&in, req->seg, req->nseg, NULL);
	xdr_get_fixed(&in, header, (uint32_t)call->signed_len);
	mech = rpc_on_event_thread(req) ? gss_copies_try(&x->copies) : NULL;
	if (!mech) {
		rpc_move(req);
		mech = gss_copies_take(&x->copies);
	}
	right = !in.err && gss_mech_verify(mech, &piece, 1, call->verf, call->verf_len);
	gss_copies_give(&x->copies, mech);
	return right ? RPC_SECURE_CALL : RPC_SECURE_REFUSE;
}

static bool gss_call_take_seq(struct gss_context *x, uint32_t seq)
{
	bool fresh;

	pthread_mutex_lock(&x->lock);
	fresh = gss_window_take(&x->window, seq);
	pthread_mutex_unlock(&x->lock);
	return fresh;
}

/* Bytes that the reply grows by. An integrity or privacy body has a length word and the sequence number. */
static size_t overhead_of(const struct gss_context *x, uint32_t service)
{
	const size_t mic = x->mic_len + rn_xdr_pad(x->mic_len);

	switch (service) {
	case GSS_INTEGRITY:
		return mic + 4 + 4 + 4 + mic;
	case GSS_PRIVACY:
		return mic + 4 + 4 + x->wrap_len + rn_xdr_pad((uint32_t)x->wrap_len);
	default:
		return mic;
	}
}

static struct gss_call *call_new(struct gss_context *x, const struct gss_cred *cred)
{
	struct gss_call *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	atomic_fetch_add_explicit(&x->refs, 1, memory_order_relaxed);
	c->context = x;
	c->seq = cred->seq;
	c->service = cred->proc == GSS_DESTROY ? GSS_NONE : cred->service;
	c->base.wraps = c->service != GSS_NONE;
	c->base.overhead = overhead_of(x, c->service);
	return c;
}

static void set_identity(struct rpc_request *req, const struct gss_call *c, uint32_t service)
{
	static const enum rpc_sec secs[] = { [GSS_NONE] = RPC_SEC_KRB5,
					     [GSS_INTEGRITY] = RPC_SEC_KRB5I,
					     [GSS_PRIVACY] = RPC_SEC_KRB5P };
	struct rpc_cred *cred = &req->call.cred;

	cred->sec = secs[service];
	cred->principal = c->context->principal;
}

/* Cuts the message behind its first `len` bytes from `at` on. */
static void gss_call_cut_message(struct rpc_request *req, size_t at, size_t len)
{
	size_t end = at + len;

	for (unsigned i = 0; i < req->nseg; i++) {
		req->seg[i].len = (uint32_t)rn_min(req->seg[i].len, end);
		end -= req->seg[i].len;
	}
}

/* The pieces of the message from `at` on, len bytes. False: there are too many. */
static bool gss_call_pieces_of(const struct rpc_request *req, size_t at, size_t len,
			       struct gss_mech_piece *piece, unsigned *n)
{
	*n = 0;
	for (unsigned i = 0; i < req->nseg && len > 0; i++) {
		const struct rpc_seg *s = &req->seg[i];
		const size_t skip = rn_min(at, s->len), some = rn_min(s->len - skip, len);

		at -= skip;
		len -= some;
		if (some == 0)
			continue;
		if (*n == GSS_MECH_PIECES)
			return false;
		piece[(*n)++] = (struct gss_mech_piece){ s->base + skip, some };
	}
	return len == 0;
}

/* rpc_gss_integ_data (section 5.3.2.2): the arguments behind their sequence number, and a MIC of both. */
static bool take_integrity(struct rpc_request *req, const struct gss_call *c)
{
	struct gss_mech_piece piece[GSS_MECH_PIECES];
	const uint32_t len = xdr_get_u32(&req->in);
	const size_t at = xdr_in_pos(&req->in);
	const uint8_t *mic;
	uint32_t mic_len, seq;
	struct gss_mech_ctx *mech;
	unsigned n;
	bool right;

	if (req->in.err || len < 4 || len % 4 != 0 || len > req->in.left)
		return false;
	seq = xdr_get_u32(&req->in);
	xdr_skip(&req->in, len - 4);
	mic = xdr_get_opaque(&req->in, GSS_MECH_MIC_MAX, &mic_len);
	if (req->in.err || seq != c->seq || !gss_call_pieces_of(req, at, len, piece, &n))
		return false;
	mech = gss_copies_take(&c->context->copies);
	right = gss_mech_verify(mech, piece, n, mic, mic_len);
	gss_copies_give(&c->context->copies, mech);
	if (!right)
		return false;
	gss_call_cut_message(req, at, len);
	req->secured->args_at = at + 4;
	return true;
}

/* The encrypted body of a call. */
struct token {
	struct gss_mech_piece piece[GSS_MECH_PIECES];
	unsigned n;
	size_t at, len;		/* in the message, if it was not copied */
	struct rn_payload *own; /* the copy, in one piece; or NULL */
};

/* True if the token can be decrypted where it lies, and its data are in no more pieces than a procedure takes. */
static bool gss_call_token_stays(const struct rpc_request *req, const struct token *t)
{
	uint8_t start[GSS_MECH_START];
	struct xdr_in in = req->in;

	if (t->n == 1)
		return true;
	if (t->n > XDR_BULK_PIECES || t->len < sizeof(start))
		return false;
	xdr_get_fixed(&in, start, sizeof(start));
	return !in.err && gss_mech_is_straight(start);
}

/* Finds the encrypted body, and copies it to one piece if it must be. */
static enum rpc_secure_verdict find_token(struct rpc_request *req, struct token *t)
{
	const uint32_t len = xdr_get_u32(&req->in);
	uint8_t *to;

	t->own = NULL;
	t->at = xdr_in_pos(&req->in);
	t->len = len;
	if (req->in.err || len == 0 || len > req->in.left ||
	    !gss_call_pieces_of(req, t->at, len, t->piece, &t->n))
		return RPC_SECURE_GARBAGE;
	if (gss_call_token_stays(req, t))
		return RPC_SECURE_CALL;
	if (len > RN_PAYLOAD_MAX)
		return RPC_SECURE_GARBAGE;
	t->own = rn_payload_get_for(req->server->pool, len, rpc_request_account(req));
	if (!t->own)
		return RPC_SECURE_NO_ROOM;
	to = t->own->data;
	for (unsigned i = 0; i < t->n; i++) {
		memcpy(to, t->piece[i].base, t->piece[i].len);
		to += t->piece[i].len;
	}
	t->piece[0] = (struct gss_mech_piece){ t->own->data, len };
	t->n = 1;
	return RPC_SECURE_CALL;
}

/* Leaves so many bytes of the message, from `at` on. */
static void gss_call_narrow_message(struct rpc_request *req, size_t at, size_t len)
{
	for (unsigned i = 0; i < req->nseg; i++) {
		struct rpc_seg *s = &req->seg[i];
		const size_t skip = rn_min(at, s->len), some = rn_min(s->len - skip, len);

		at -= skip;
		len -= some;
		s->base += skip;
		s->len = (uint32_t)some;
	}
}

/* Makes the copy's plain text the whole message, or leaves that of the segments. */
static void take_plain(struct rpc_request *req, const struct token *t,
		       const struct gss_mech_piece *plain)
{
	if (!t->own) {
		gss_call_narrow_message(req, t->at + (size_t)(plain->base - t->piece[0].base),
					plain->len);
		return;
	}
	rpc_request_forget_call(req);
	req->seg[0] = (struct rpc_seg){ .base = plain->base,
					.len = (uint32_t)plain->len,
					.payload = t->own };
	req->nseg = 1;
}

/* Decrypts the body, and leaves its plain text as the message. */
static bool gss_call_unwrap(struct rpc_request *req, struct gss_mech_ctx *mech,
			    const struct token *t)
{
	struct gss_mech_piece plain;
	size_t before, behind;

	if (t->n == 1) {
		if (!gss_mech_unwrap(mech, t->piece[0].base, t->piece[0].len, &plain)) {
			rn_payload_put(t->own);
			return false;
		}
		take_plain(req, t, &plain);
		return true;
	}
	if (!gss_mech_unwrap_pieces(mech, t->piece, t->n, &before, &behind))
		return false;
	gss_call_narrow_message(req, t->at + before, t->len - before - behind);
	return true;
}

/* rpc_gss_priv_data (section 5.3.2.3). */
static bool take_privacy(struct rpc_request *req, const struct gss_call *c, const struct token *t)
{
	struct gss_mech_ctx *mech = gss_copies_take(&c->context->copies);
	const bool right = gss_call_unwrap(req, mech, t);
	struct xdr_in in;

	gss_copies_give(&c->context->copies, mech);
	if (!right)
		return false;
	req->secured->args_at = 4; /* behind the sequence number */
	xdr_in_init(&in, req->seg, req->nseg, NULL);
	return xdr_get_u32(&in) == c->seq && !in.err;
}

static bool has_placed(const struct rpc_request *req)
{
	for (unsigned i = 0; i < req->nseg; i++) {
		if (req->seg[i].placed)
			return true;
	}
	return false;
}

static enum rpc_secure_verdict take_data(struct gss *g, struct rpc_request *req, struct gss_call *c,
					 const struct gss_cred *cred)
{
	struct token token = { .own = NULL };
	enum rpc_secure_verdict v = RPC_SECURE_CALL;
	bool right = true;

	/* Nothing of a protected body goes by chunks but the whole call: RFC 8166 section 8.2.2. */
	if (cred->service != GSS_NONE && has_placed(req))
		v = RPC_SECURE_GARBAGE;
	else if (cred->service == GSS_PRIVACY)
		v = find_token(req, &token);
	if (v == RPC_SECURE_NO_ROOM)
		return v;
	if (!gss_call_take_seq(c->context, cred->seq)) {
		gss_count(&g->replays);
		rn_payload_put(token.own);
		return RPC_SECURE_DROP;
	}
	req->secured = &c->base;
	set_identity(req, c, cred->service);
	c->base.args_at = xdr_in_pos(&req->in);
	if (v == RPC_SECURE_CALL && cred->service == GSS_PRIVACY)
		right = take_privacy(req, c, &token);
	else if (v == RPC_SECURE_CALL && cred->service == GSS_INTEGRITY)
		right = take_integrity(req, c);
	if (right && v == RPC_SECURE_CALL)
		return v;
	gss_count(&g->bad);
	return RPC_SECURE_GARBAGE;
}

/* DESTROY (section 5.4): an empty answer with a verifier. Without room for it the context stays, like anything else that a
 * call would change. */
static enum rpc_secure_verdict gss_call_destroy(struct gss *g, struct rpc_request *req,
						struct gss_call *c)
{
	if (!gss_call_take_seq(c->context, c->seq)) {
		gss_count(&g->replays);
		return RPC_SECURE_DROP;
	}
	req->secured = &c->base;
	xdr_out_init(&req->out, req->head->data, rpc_reply_head_size(req, req->head->size));
	rpc_put_accepted(&req->out, req->call.xid, RPC_SUCCESS);
	if (req->out.used + c->base.overhead <= req->reply_max)
		gss_contexts_remove(g->contexts, c->context);
	return RPC_SECURE_ANSWER;
}

static void have_copies(struct gss *g, struct gss_context *x, const struct rpc_request *req)
{
	struct rn_host host;

	gss_host_of(req->conn, &host);
	gss_grow(g, x, &host);
}

/* A call of an established context. */
static enum rpc_secure_verdict in_context(struct gss *g, struct rpc_request *req,
					  const struct gss_cred *cred, struct gss_context *x,
					  enum rpc_auth_stat *stat)
{
	enum rpc_secure_verdict v;
	struct gss_call *c;

	if (gss_contexts_now(g->contexts) > x->ends_ns) {
		*stat = RPC_GSS_CTXPROBLEM;
		return RPC_SECURE_REFUSE;
	}
	v = gss_call_check_verifier(x, req);
	if (v == RPC_SECURE_REFUSE) {
		gss_count(&g->bad);
		*stat = RPC_GSS_CREDPROBLEM;
	}
	if (v != RPC_SECURE_CALL)
		return v;
	if (gss_copies_crowded(&x->copies))
		have_copies(g, x, req);
	if (cred->seq >= GSS_SEQ_MAX) {
		*stat = RPC_GSS_CTXPROBLEM;
		return RPC_SECURE_REFUSE;
	}
	c = call_new(x, cred);
	if (!c)
		return RPC_SECURE_NO_ROOM;
	v = cred->proc == GSS_DESTROY ? gss_call_destroy(g, req, c) : take_data(g, req, c, cred);
	if (!req->secured) {
		gss_context_put(c->context);
		free(c);
	}
	return v;
}

enum rpc_secure_verdict gss_accept_call(void *ctx, struct rpc_request *req,
					enum rpc_auth_stat *stat)
{
	struct gss *g = ctx;
	struct gss_context *x;
	struct gss_cred cred;
	enum rpc_secure_verdict v;

	*stat = RPC_AUTH_BADCRED;
	if (!gss_get_cred(req->call.auth, req->call.auth_len, &cred) ||
	    (cred.proc != GSS_DATA && req->call.proc != 0))
		return RPC_SECURE_REFUSE;
	*stat = RPC_AUTH_BADVERF;
	if (cred.proc == GSS_INIT || cred.proc == GSS_CONTINUE_INIT)
		return req->call.verf_flavor == RPC_AUTH_NONE ? gss_establish(g, req, &cred)
							      : RPC_SECURE_REFUSE;
	if (req->call.verf_flavor != RPC_RPCSEC_GSS)
		return RPC_SECURE_REFUSE;
	if (cred.service != GSS_NONE && req->in.left > RPC_SECURE_EVENT_MOST)
		rpc_move(req);
	x = gss_contexts_find(g->contexts, cred.handle, cred.handle_len);
	if (!x || !x->established) {
		gss_context_put(x);
		gss_count(&g->unknown);
		*stat = RPC_GSS_CREDPROBLEM;
		return RPC_SECURE_REFUSE;
	}
	v = in_context(g, req, &cred, x, stat);
	gss_context_put(x);
	return v;
}

const struct rpc_principal *gss_called_as(struct rpc_request *req)
{
	const struct gss_call *c = rn_container_of(req->secured, struct gss_call, base);

	return rpc_principal_ref(c->context->called);
}

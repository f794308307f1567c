/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls to clients under a context (RFC 2203 section 5.3): the mirror of gss/gss_call.c and gss/gss_reply.c. A call of
 * the library is short, as messages are, so that threads wait for a copy of the context. Behind them, contexts that this
 * server makes itself.
 */
#include "gss/gss_private.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/util.h"
#include "rpc/principal.h"
#include "rpc/xdr_out.h"

/* The credential's body must fit into RPC_AUTH_BYTES_MAX. */
#define HANDLE_MOST (RPC_AUTH_BYTES_MAX - 5u * 4u)
enum { CRED_AT = 24, ARGS_AT = 40 }; /* in a call with AUTH_NONE */

struct gss_cb_auth {
	struct rpc_cb_auth base;
	struct gss_context *context; /* a reference */
	uint64_t ends_ns;	     /* CLOCK_MONOTONIC */
	uint32_t service;
	uint32_t handle_len;
	uint8_t handle[]; /* the client's */
};

static struct gss_cb_auth *gss_cb_auth_of(struct rpc_cb_auth *s)
{
	return rn_container_of(s, struct gss_cb_auth, base);
}

static uint32_t gss_cb_auth_next_seq(struct rpc_cb_auth *s)
{
	return atomic_fetch_add_explicit(&gss_cb_auth_of(s)->context->calls, 1,
					 memory_order_relaxed) +
	       1;
}

static uint64_t seconds_left(const struct rpc_cb_auth *s)
{
	const struct gss_cb_auth *g = rn_container_of(s, const struct gss_cb_auth, base);
	const uint64_t now = rn_now_ns(), ends = g->ends_ns;

	return ends > now ? (ends - now) / RN_NS_PER_SECOND : 0;
}

static void put_cred(struct xdr_out *x, const struct gss_cb_auth *g, uint32_t seq)
{
	xdr_put_u32(x, RPC_RPCSEC_GSS);
	xdr_put_u32(x, 5 * 4 + g->handle_len + rn_xdr_pad(g->handle_len));
	xdr_put_u32(x, GSS_VERSION);
	xdr_put_u32(x, GSS_DATA);
	xdr_put_u32(x, seq);
	xdr_put_u32(x, g->service);
	xdr_put_opaque(x, g->handle, g->handle_len);
}

/* Puts the MIC of the bytes of x from `at` on. */
static bool put_mic(struct xdr_out *x, struct gss_mech_ctx *m, size_t at)
{
	uint8_t mic[GSS_MECH_MIC_MAX];
	const uint32_t len = x->overflow ? 0 : gss_mech_sign(m, x->base + at, x->used - at, mic);

	xdr_put_opaque(x, mic, len);
	return len > 0 && !x->overflow;
}

static bool put_private(struct xdr_out *x, struct gss_mech_ctx *m, const uint8_t *body,
			uint32_t len)
{
	struct gss_mech_piece piece[3];
	size_t before, behind, token;
	uint8_t *at;

	if (!gss_mech_wrap_sizes(m, len, &before, &behind))
		return false;
	token = before + len + behind;
	if (x->overflow || token + 8 > x->size - x->used)
		return false;
	xdr_put_u32(x, (uint32_t)token);
	at = x->base + x->used;
	piece[0] = (struct gss_mech_piece){ at, before };
	piece[1] = (struct gss_mech_piece){ at + before, len };
	piece[2] = (struct gss_mech_piece){ at + before + len, behind };
	memcpy(piece[1].base, body, len);
	if (!gss_mech_wrap(m, piece, 3))
		return false;
	x->used += token;
	xdr_put_fixed(x, "\0\0\0", rn_xdr_pad((uint32_t)token));
	return !x->overflow;
}

/* The arguments, with the number before them unless they go as they are. */
static bool gss_cb_auth_put_body(struct xdr_out *x, struct gss_mech_ctx *m, uint32_t service,
				 uint32_t seq, const struct rpc_seg *args)
{
	uint8_t body[4 + RPC_CALLBACK_SIZE];
	const uint32_t be = htonl(seq);
	size_t at;

	if (service == GSS_NONE) {
		xdr_put_fixed(x, args->base, args->len);
		return !x->overflow;
	}
	if (args->len > RPC_CALLBACK_SIZE)
		return false;
	memcpy(body, &be, 4);
	memcpy(body + 4, args->base, args->len);
	if (service == GSS_PRIVACY)
		return put_private(x, m, body, 4 + args->len);
	xdr_put_u32(x, 4 + args->len);
	at = x->used;
	xdr_put_fixed(x, body, 4 + args->len);
	return put_mic(x, m, at);
}

static uint32_t gss_cb_auth_wrap_call(struct rpc_cb_auth *s, uint32_t seq,
				      const struct rpc_seg *msg, struct rpc_seg *out)
{
	const struct gss_cb_auth *g = gss_cb_auth_of(s);
	struct rpc_seg args;
	struct gss_mech_ctx *m;
	struct xdr_out x;
	bool ok;

	if (msg->len < ARGS_AT || seq >= GSS_SEQ_MAX || seconds_left(s) == 0)
		return 0;
	args = (struct rpc_seg){ .base = msg->base + ARGS_AT, .len = msg->len - ARGS_AT };
	xdr_out_init(&x, out->base, out->len);
	xdr_put_fixed(&x, msg->base, CRED_AT);
	put_cred(&x, g, seq);
	m = gss_copies_take(&g->context->copies);
	/* The verifier's flavour is not signed. */
	ok = !x.overflow;
	if (ok) {
		const size_t head = x.used;
		uint8_t mic[GSS_MECH_MIC_MAX];
		const uint32_t len = gss_mech_sign(m, x.base, head, mic);

		xdr_put_u32(&x, RPC_RPCSEC_GSS);
		xdr_put_opaque(&x, mic, len);
		ok = len > 0 && gss_cb_auth_put_body(&x, m, g->service, seq, &args);
	}
	gss_copies_give(&g->context->copies, m);
	return ok && !x.overflow ? (uint32_t)x.used : 0;
}

static bool check_mic(const struct gss_cb_auth *g, const uint8_t *msg, size_t len,
		      const uint8_t *mic, uint32_t mic_len)
{
	struct gss_mech_piece piece = { (uint8_t *)(uintptr_t)msg, len };
	struct gss_mech_ctx *m;
	bool right;

	if (mic_len != g->context->mic_len)
		return false;
	m = gss_copies_take(&g->context->copies);
	right = gss_mech_verify(m, &piece, 1, mic, mic_len);
	gss_copies_give(&g->context->copies, m);
	return right;
}

static bool gss_cb_auth_verify(struct rpc_cb_auth *s, uint32_t seq, const uint8_t *verf,
			       uint32_t len)
{
	const uint32_t be = htonl(seq);

	return check_mic(gss_cb_auth_of(s), (const uint8_t *)&be, sizeof(be), verf, len);
}

static bool decrypt(const struct gss_cb_auth *g, const uint8_t *token, uint32_t len,
		    struct gss_mech_piece *out)
{
	struct gss_mech_ctx *m = gss_copies_take(&g->context->copies);
	const bool right = gss_mech_unwrap(m, (uint8_t *)(uintptr_t)token, len, out);

	gss_copies_give(&g->context->copies, m);
	return right;
}

static bool gss_cb_auth_unwrap_results(struct rpc_cb_auth *s, uint32_t seq, struct xdr_in *x,
				       struct rpc_seg *plain)
{
	const struct gss_cb_auth *g = gss_cb_auth_of(s);
	struct gss_mech_piece body;
	const uint8_t *p, *mic;
	uint32_t len, mic_len, be;

	if (g->service == GSS_NONE)
		return true;
	p = xdr_get_opaque(x, UINT32_MAX, &len);
	if (!p || len == 0)
		return false;
	body = (struct gss_mech_piece){ (uint8_t *)(uintptr_t)p, len };
	if (g->service == GSS_INTEGRITY) {
		mic = xdr_get_opaque(x, GSS_MECH_MIC_MAX, &mic_len);
		if (!mic || !check_mic(g, p, len, mic, mic_len))
			return false;
	} else if (!decrypt(g, p, len, &body)) {
		return false;
	}
	if (body.len < 4)
		return false;
	memcpy(&be, body.base, 4);
	*plain = (struct rpc_seg){ .base = body.base + 4, .len = (uint32_t)body.len - 4 };
	xdr_in_init(x, plain, 1, NULL);
	return ntohl(be) == seq;
}

static void gss_cb_auth_destroy(struct rpc_cb_auth *s)
{
	gss_context_put(gss_cb_auth_of(s)->context);
	free(gss_cb_auth_of(s));
}

static void gss_cb_auth_offer(const struct rpc_cb_auth *s, struct rpc_cb_auth_offer *out)
{
	const struct gss_cb_auth *g = rn_container_of(s, const struct gss_cb_auth, base);

	*out = (struct rpc_cb_auth_offer){
		.service = g->service,
		.from_server = g->context->handle,
		.from_server_len = GSS_HANDLE_SIZE,
		.from_client = g->handle,
		.from_client_len = g->handle_len,
		.principal = g->context->principal,
	};
}

static const struct rpc_cb_auth_ops established_ops = {
	.seq = gss_cb_auth_next_seq,
	.wrap = gss_cb_auth_wrap_call,
	.verify = gss_cb_auth_verify,
	.unwrap = gss_cb_auth_unwrap_results,
	.offer = gss_cb_auth_offer,
	.seconds = seconds_left,
	.destroy = gss_cb_auth_destroy,
};

/* The security of calls by an established context, of which it takes a reference. ends_ns: the context's end, by CLOCK_MONOTONIC.
 * handle: the client's, for calls to it. NULL: there is no such service, the handle is too long, or there is no memory. */
static struct rpc_cb_auth *gss_cb_auth_new(struct gss_context *x, uint32_t service,
					   uint64_t ends_ns, const uint8_t *handle, uint32_t len)
{
	const size_t size = sizeof(struct gss_cb_auth) + len;
	struct gss_cb_auth *g;

	if (service < GSS_NONE || service > GSS_PRIVACY || len > HANDLE_MOST)
		return NULL;
	g = calloc(1, size);
	if (!g)
		return NULL;
	atomic_fetch_add_explicit(&x->refs, 1, memory_order_relaxed);
	g->context = x;
	g->ends_ns = ends_ns;
	g->service = service;
	g->handle_len = len;
	memcpy(g->handle, handle, len);
	g->base.ops = &established_ops;
	atomic_init(&g->base.refs, 1);
	g->base.cost = size + GSS_CONTEXT_BYTES;
	/* Credential, verifier, and what the body grows by, each with its pad. */
	g->base.overhead = 5 * 4 + len + x->mic_len + 4 + x->mic_len + (uint32_t)x->wrap_len + 24;
	return &g->base;
}

struct rpc_cb_auth *gss_cb_auth_offered(void *ctx, const struct rpc_cb_auth_offer *o)
{
	struct gss *g = ctx;
	struct gss_context *x = gss_contexts_find(g->contexts, o->from_server, o->from_server_len);
	const uint64_t skipped = gss_contexts_skipped(g->contexts);
	struct rpc_cb_auth *s = NULL;

	/* A context of another user would sign for its owner what this caller gets. */
	if (x && x->established && rn_now_ns() + skipped < x->ends_ns &&
	    rpc_principal_is(x->principal, o->principal))
		s = gss_cb_auth_new(x, o->service, x->ends_ns - skipped, o->from_client,
				    o->from_client_len);
	gss_context_put(x);
	return s;
}

/*
 * The exchange with a client to whom this server makes a context (gss_initiate): security that has no context yet makes of its first call
 * the INIT of RFC 2203 section 5.2, and of the answer the context. From then on it is that of the functions above.
 */

struct initiated {
	struct rpc_cb_auth base;
	struct gss_context *context;	/* a reference */
	const struct rpc_principal *to; /* a reference */
	uint32_t service;
	/* State of the exchange. Only one call may be under way until it is over. */
	uint8_t *token;
	uint32_t token_len;
	uint8_t verf[GSS_MECH_MIC_MAX];
	uint32_t verf_len;
	_Atomic(struct rpc_cb_auth *)
		ready; /* the client's context; NULL: there was no answer yet */
};

static struct initiated *gss_cb_init_of(struct rpc_cb_auth *s)
{
	return rn_container_of(s, struct initiated, base);
}

static struct rpc_cb_auth *ready(struct rpc_cb_auth *s)
{
	return atomic_load_explicit(&gss_cb_init_of(s)->ready, memory_order_acquire);
}

static uint32_t gss_cb_init_next_seq(struct rpc_cb_auth *s)
{
	struct rpc_cb_auth *r = ready(s);

	return r ? r->ops->seq(r) : 0;
}

static uint32_t put_init(const struct initiated *i, const struct rpc_seg *msg, struct rpc_seg *out)
{
	struct xdr_out x;

	xdr_out_init(&x, out->base, out->len);
	if (msg->len < CRED_AT)
		return 0;
	xdr_put_fixed(&x, msg->base, CRED_AT);
	xdr_put_u32(&x, RPC_RPCSEC_GSS);
	xdr_put_u32(&x, 5 * 4);
	xdr_put_u32(&x, GSS_VERSION);
	xdr_put_u32(&x, GSS_INIT);
	xdr_put_u32(&x, 0);
	xdr_put_u32(&x, i->service);
	xdr_put_u32(&x, 0);
	xdr_put_u32(&x, RPC_AUTH_NONE);
	xdr_put_u32(&x, 0);
	xdr_put_opaque(&x, i->token, i->token_len);
	return x.overflow ? 0 : (uint32_t)x.used;
}

static uint32_t gss_cb_init_wrap_call(struct rpc_cb_auth *s, uint32_t n, const struct rpc_seg *msg,
				      struct rpc_seg *out)
{
	struct rpc_cb_auth *r = ready(s);

	return r ? r->ops->wrap(r, n, msg, out) : put_init(gss_cb_init_of(s), msg, out);
}

/* The verifier of INIT's answer signs the window, which comes behind it. */
static bool gss_cb_init_verify(struct rpc_cb_auth *s, uint32_t n, const uint8_t *verf, uint32_t len)
{
	struct rpc_cb_auth *r = ready(s);
	struct initiated *i = gss_cb_init_of(s);

	if (r)
		return r->ops->verify(r, n, verf, len);
	if (len > sizeof(i->verf))
		return false;
	memcpy(i->verf, verf, len);
	i->verf_len = len;
	return true;
}

/* rpc_gss_init_res. */
struct answer {
	const uint8_t *handle, *token;
	uint32_t handle_len, token_len, major, window;
};

static bool get_answer(struct xdr_in *x, struct answer *a)
{
	a->handle = xdr_get_opaque(x, RPC_AUTH_BYTES_MAX, &a->handle_len);
	a->major = xdr_get_u32(x);
	xdr_get_u32(x); /* minor */
	a->window = xdr_get_u32(x);
	a->token = xdr_get_opaque(x, UINT32_MAX, &a->token_len);
	return !x->err && a->major == 0 && a->handle_len > 0 && a->window > 0;
}

/* True if the client has the key of its name, and this is its answer. */
static bool is_genuine(struct initiated *i, struct gss_mech_ctx *m, const struct answer *a,
		       uint32_t *lifetime)
{
	uint32_t be = htonl(a->window);
	struct gss_mech_piece window = { (uint8_t *)&be, sizeof(be) };

	return gss_mech_go_on(m, i->to->name, a->token, a->token_len, lifetime) &&
	       gss_mech_verify(m, &window, 1, i->verf, i->verf_len) && gss_measure(i->context, m);
}

static bool gss_cb_init_unwrap_results(struct rpc_cb_auth *s, uint32_t n, struct xdr_in *x,
				       struct rpc_seg *plain)
{
	struct rpc_cb_auth *r = ready(s);
	struct initiated *i = gss_cb_init_of(s);
	uint32_t lifetime = 0;
	struct gss_mech_ctx *m;
	struct answer a;
	bool ok;

	if (r)
		return r->ops->unwrap(r, n, x, plain);
	if (!get_answer(x, &a))
		return false;
	m = gss_copies_take(&i->context->copies);
	ok = is_genuine(i, m, &a, &lifetime);
	gss_copies_give(&i->context->copies, m);
	if (!ok)
		return false;
	i->context->established = true;
	i->context->ends_ns = rn_now_ns() + lifetime * RN_NS_PER_SECOND;
	r = gss_cb_auth_new(i->context, i->service, i->context->ends_ns, a.handle, a.handle_len);
	atomic_store_explicit(&i->ready, r, memory_order_release);
	return r;
}

static uint64_t seconds(const struct rpc_cb_auth *s)
{
	const struct initiated *i = rn_container_of(s, const struct initiated, base);
	const struct rpc_cb_auth *r = atomic_load_explicit(&i->ready, memory_order_acquire);

	return r ? r->ops->seconds(r) : UINT32_MAX;
}

static void gss_cb_init_destroy(struct rpc_cb_auth *s)
{
	struct initiated *i = gss_cb_init_of(s);

	rpc_cb_auth_put(ready(s));
	gss_context_put(i->context);
	rpc_principal_put(i->to);
	free(i->token);
	free(i);
}

static const struct rpc_cb_auth_ops initiated_ops = {
	.seq = gss_cb_init_next_seq,
	.wrap = gss_cb_init_wrap_call,
	.verify = gss_cb_init_verify,
	.unwrap = gss_cb_init_unwrap_results,
	.seconds = seconds,
	.destroy = gss_cb_init_destroy,
};

/* Security whose first call establishes the context with `to`. Takes over mech, and the token that is first
 * sent. NULL: no memory. */
static struct rpc_cb_auth *gss_cb_init_new(struct gss_mech_ctx *mech, struct gss_mech_step *first,
					   const struct rpc_principal *to, uint32_t service)
{
	struct initiated *i = calloc(1, sizeof(*i));

	if (!i) {
		gss_mech_ctx_free(mech);
		return NULL;
	}
	i->context = gss_context_new(mech);
	if (!i->context) {
		free(i);
		return NULL;
	}
	i->to = rpc_principal_ref(to);
	i->service = service;
	i->token = first->token;
	i->token_len = (uint32_t)first->token_len;
	first->token = NULL;
	i->base.ops = &initiated_ops;
	atomic_init(&i->base.refs, 1);
	i->base.cost = RPC_CB_AUTH_COST;
	return &i->base;
}

/*
 * Contexts that this server begins, to call clients of NFSv4.0. The first token needs tickets, which the KDC gives: threads of their own
 * wait for it, so a KDC that is silent holds up nothing but other calls of this kind. The exchange with the client comes next.
 */

struct starting {
	struct rn_job job;
	struct gss *g;
	struct rpc_cb_initiation *init;
	_Atomic bool answered;		       /* the initiation is its owner's again */
	const struct rpc_principal *from, *to; /* references */
	uint32_t service;
	uint64_t due_ns;
	struct rpc_cb_auth *made;
};

/* On a thread of its own. */
static void gss_initiate_run(struct rn_job *job)
{
	struct starting *w = rn_container_of(job, struct starting, job);
	struct gss_mech_step step = { 0 };
	struct gss_mech_ctx *mech = NULL;
	char to[RN_LOG_TEXT], from[RN_LOG_TEXT];
	unsigned left_out;

	if (rn_now_ns() > w->due_ns)
		return;
	if (gss_mech_start(w->g->cfg.keytab, w->from->name, w->to->name, &mech, &step))
		w->made = gss_cb_init_new(mech, &step, w->to, w->service);
	else if (rn_log_hosts_pass(&w->g->said, &w->job.host, rn_now_ns(), &left_out)) {
		rn_log_text(to, sizeof(to), w->to->name, w->to->len);
		rn_log_text(from, sizeof(from), w->from->name, w->from->len);
		rn_notice(
			w->g->cfg.log,
			"%s gets no delegations by NFSv4.0, as it cannot be called back as %s: %s",
			to, from, step.why);
	}
	free(step.token);
}

static void gss_initiate_answer(struct starting *w, struct rpc_cb_auth *made)
{
	if (atomic_exchange(&w->answered, true))
		rpc_cb_auth_put(made);
	else
		w->init->made(w->init, made);
}

static void gss_initiate_abandon(struct rn_job *job)
{
	gss_initiate_answer(rn_container_of(job, struct starting, job), NULL);
}

static void gss_initiate_done(struct rn_job *job)
{
	struct starting *w = rn_container_of(job, struct starting, job);

	gss_initiate_answer(w, w->made);
	rpc_principal_put(w->from);
	rpc_principal_put(w->to);
	free(w);
}

bool gss_initiate(void *ctx, struct rpc_cb_initiation *init)
{
	struct starting *w = calloc(1, sizeof(*w));
	struct gss *g = ctx;

	if (!w)
		return false;
	w->job.host = init->host;
	w->job.admitted = true;
	w->job.run = gss_initiate_run;
	w->job.done = gss_initiate_done;
	w->job.abandon = gss_initiate_abandon;
	w->g = g;
	w->init = init;
	w->from = rpc_principal_ref(init->from);
	w->to = rpc_principal_ref(init->to);
	w->service = init->service;
	w->due_ns = init->due_ns;
	if (rn_jobs_submit(g->initiator, &w->job))
		return true;
	rpc_principal_put(w->from);
	rpc_principal_put(w->to);
	free(w);
	return false;
}

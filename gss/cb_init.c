/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The exchange with a client to whom this server makes a context (gss/initiate.c): security that has no context yet makes of its first call
 * the INIT of RFC 2203 section 5.2, and of the answer the context. From then on it is that of gss/gss_cb_auth.c.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "gss/gss_cb_auth.h"
#include "lib/clock.h"
#include "lib/util.h"
#include "rpc/principal.h"
#include "rpc/xdr_out.h"

enum { CRED_AT = 24 }; /* in a call */

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

static const struct rpc_cb_auth_ops ops = {
	.seq = gss_cb_init_next_seq,
	.wrap = gss_cb_init_wrap_call,
	.verify = gss_cb_init_verify,
	.unwrap = gss_cb_init_unwrap_results,
	.seconds = seconds,
	.destroy = gss_cb_init_destroy,
};

struct rpc_cb_auth *gss_cb_init_new(struct gss_mech_ctx *mech, struct gss_mech_step *first,
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
	i->base.ops = &ops;
	atomic_init(&i->base.refs, 1);
	i->base.cost = RPC_CB_AUTH_COST;
	return &i->base;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/conform/conform_gss.h"

#include <string.h>

#include "lib/util.h"

#define FLAVOR 6u /* RPCSEC_GSS */
#define ROOM 65536u
#define HEAD 24u /* bytes of a call before its credential */
#define TOKEN_MAX 65536u
#define HANDLE_MAX 400u

static const char *const names[] = { "", "krb5", "krb5i", "krb5p" };

const char *cf_service_name(enum cf_service s)
{
	return names[s];
}

unsigned cf_gss_flavors(const char *list)
{
	unsigned mask = 0;

	for (;;) {
		size_t n = strcspn(list, ":,");
		unsigned s = CF_KRB5;
		while (s <= CF_KRB5P && (strlen(names[s]) != n || strncmp(names[s], list, n) != 0))
			s++;
		if (s > CF_KRB5P)
			return 0;
		mask |= 1u << s;
		if (!list[n])
			return mask;
		list += n + 1;
	}
}

/* ---- calls ------------------------------------------------------------------------------------
 */

static struct cf_bytes put_so_far(const struct xdr_out *x)
{
	return (struct cf_bytes){ x->base, xdr_out_pos(x) };
}

static void put_credential(struct xdr_out *x, const struct cf_gss *g, uint32_t s, uint32_t seq)
{
	xdr_put_u32(x, FLAVOR);
	xdr_put_u32(x, 5 * 4 + g->handle.len + rn_xdr_pad(g->handle.len));
	xdr_put_u32(x, 1); /* version */
	xdr_put_u32(x, g->proc);
	xdr_put_u32(x, seq);
	xdr_put_u32(x, g->service ? g->service : s);
	xdr_put_opaque(x, g->handle.data, g->handle.len);
}

/* A verifier over everything before it (RFC 2203 section 5.3.1). */
static bool cf_gss_put_verifier(struct cf_test *t, struct cf_call *c)
{
	struct cf_bytes mic;

	if (!cf_mech_sign(t, t->gss->mech, put_so_far(&c->rpc), &mic))
		return false;
	xdr_put_u32(&c->rpc, FLAVOR);
	c->mic_at = xdr_out_pos(&c->rpc) + 4;
	xdr_put_opaque(&c->rpc, mic.data, mic.len);
	return true;
}

/* Arguments, protected as sections 5.3.2.2 and 5.3.2.3 say. */
static bool cf_gss_put_body(struct cf_test *t, struct xdr_out *x, struct cf_bytes args,
			    enum cf_service s, uint32_t seq)
{
	struct cf_bytes plain = { cf_alloc_raw(t, args.len + 4), args.len + 4 }, sum;
	struct xdr_out p;

	if (s == CF_KRB5) {
		xdr_put_fixed(x, args.data, args.len);
		return true;
	}
	xdr_out_init(&p, plain.data, plain.len);
	xdr_put_u32(&p, seq + t->gss->skew);
	xdr_put_fixed(&p, args.data, args.len);
	if (s == CF_KRB5I) {
		if (!cf_mech_sign(t, t->gss->mech, plain, &sum))
			return false;
		xdr_put_opaque(x, plain.data, plain.len);
	} else if (!cf_mech_wrap(t, t->gss->mech, plain, &sum)) {
		return false;
	}
	xdr_put_opaque(x, sum.data, sum.len);
	return true;
}

bool cf_gss_protect_as(struct cf_test *t, struct cf_call *c, enum cf_service s, uint32_t seq)
{
	struct cf_bytes plain = put_so_far(&c->rpc);
	struct cf_bytes args = { plain.data + c->head, plain.len - c->head };
	uint32_t head = c->head;

	xdr_out_init(&c->rpc, cf_alloc_raw(t, plain.len + ROOM), plain.len + ROOM);
	xdr_put_fixed(&c->rpc, plain.data, HEAD);
	put_credential(&c->rpc, t->gss, s, seq);
	if (!cf_gss_put_verifier(t, c))
		return false;
	c->head = xdr_out_pos(&c->rpc);
	c->gss_seq = seq;
	c->gss_service = s;
	for (unsigned i = 0; i < c->lists.nreads; i++)
		c->lists.read[i].position += c->head - head;
	return cf_gss_put_body(t, &c->rpc, args, s, seq);
}

bool cf_gss_protect(struct cf_test *t, struct cf_call *c, enum cf_service s)
{
	return cf_gss_protect_as(t, c, s, ++t->gss->seq);
}

/* ---- replies ----------------------------------------------------------------------------------
 */

/* The MIC of a word: of the sequence number, or in answer to INIT of the window. */
static bool right_verifier(struct cf_test *t, const struct cf_reply *r, uint32_t word)
{
	uint8_t data[4];
	struct xdr_out x;

	if (r->verf_flavor != FLAVOR)
		return cf_fail(t, "a verifier of RPCSEC_GSS (RFC 2203 5.3.3.2)", "one of flavor %u",
			       r->verf_flavor);
	xdr_out_init(&x, data, sizeof(data));
	xdr_put_u32(&x, word);
	return cf_mech_verify(t, t->gss->mech, (struct cf_bytes){ data, 4 },
			      (struct cf_bytes){ (uint8_t *)r->verf, r->verf_len },
			      "a verifier with the server's MIC (RFC 2203 5.3.3.2)");
}

static struct cf_bytes get_opaque(struct cf_reply *r)
{
	struct cf_bytes b = { 0 };

	b.data = (uint8_t *)xdr_get_opaque(&r->x, UINT32_MAX, &b.len);
	return b;
}

static bool cf_gss_unwrap(struct cf_test *t, const struct cf_call *c, struct cf_reply *r,
			  struct cf_bytes *plain)
{
	struct cf_bytes body = get_opaque(r), mic = { 0 };

	if (c->gss_service == CF_KRB5I)
		mic = get_opaque(r);
	if (r->x.err || r->x.left)
		return cf_fail(t, "a protected body that decodes to its end (RFC 2203 5.3.3.2)",
			       "%s", r->x.err ? "it is too short" : "bytes are left");
	if (c->gss_service == CF_KRB5P)
		return cf_mech_unwrap(t, t->gss->mech, body, plain);
	*plain = body;
	return cf_mech_verify(t, t->gss->mech, body, mic,
			      "a body with the server's MIC (RFC 2203 5.3.3.2)");
}

bool cf_gss_results(struct cf_test *t, const struct cf_call *c, struct cf_reply *r)
{
	struct cf_bytes plain;

	if (!r->accepted)
		return cf_fail(t, "an accepted call", "MSG_DENIED, auth_stat %u", r->stat);
	if (!right_verifier(t, r, c->gss_seq))
		return false;
	if (r->accept != CF_SUCCESS || c->gss_service == CF_KRB5)
		return true;
	if (!cf_gss_unwrap(t, c, r, &plain))
		return false;
	if (plain.len < 4 || cf_word(plain.data) != c->gss_seq)
		return cf_fail(t, "the call's sequence number in the body (RFC 2203 5.3.3.2)",
			       "another");
	r->seg = (struct rpc_seg){ .base = plain.data + 4, .len = plain.len - 4 };
	xdr_in_init(&r->x, &r->seg, 1, &r->arena);
	return true;
}

struct cf_reply *cf_gss_ask(struct cf_test *t, struct cf_call *c)
{
	struct cf_reply *r = cf_ask_any(t, c);

	return r && cf_expect_success(t, r) && cf_gss_results(t, c, r) ? r : NULL;
}

/* ---- contexts ---------------------------------------------------------------------------------
 */

bool cf_gss_new(struct cf_test *t, enum cf_service s)
{
	if (!(t->run->gss_flavors & 1u << s))
		return cf_skip(t, "--gss does not name %s", cf_service_name(s));
	if (t->gss)
		cf_mech_free(t->gss->mech);
	t->gss = cf_alloc(t, sizeof(*t->gss));
	t->gss->mech = cf_mech_new(t, t->run->login);
	t->gss->proc = CF_GSS_INIT;
	return cf_mech_step(t, t->gss->mech, (struct cf_bytes){ 0 }, &t->gss->token);
}

/* Control calls of a context that is not complete have no verifier (RFC 2203 section 5.2.2). */
struct cf_call *cf_gss_init_call(struct cf_test *t)
{
	struct cf_call *c = cf_call_new_none(t, CF_PROG_NFS, 3, 0);

	xdr_out_rewind(&c->rpc, HEAD);
	put_credential(&c->rpc, t->gss, CF_KRB5, 0);
	xdr_put_u32(&c->rpc, 0);
	xdr_put_u32(&c->rpc, 0);
	c->head = xdr_out_pos(&c->rpc);
	xdr_put_opaque(&c->rpc, t->gss->token.data, t->gss->token.len);
	return c;
}

static bool cf_gss_keep_opaque(struct cf_test *t, struct cf_reply *r, uint32_t max,
			       struct cf_bytes *to)
{
	const uint8_t *p = xdr_get_opaque(&r->x, max, &to->len);

	to->data = cf_alloc_raw(t, to->len + 1);
	if (p && to->len)
		memcpy(to->data, p, to->len);
	return p != NULL;
}

bool cf_gss_init_result(struct cf_test *t, struct cf_call *c, struct cf_reply *r)
{
	struct cf_gss *g = t->gss;
	struct cf_bytes token;

	(void)c;
	bool got = cf_gss_keep_opaque(t, r, HANDLE_MAX, &g->handle);
	uint32_t major = xdr_get_u32(&r->x), minor = xdr_get_u32(&r->x);
	g->window = xdr_get_u32(&r->x);
	if (!got || !cf_gss_keep_opaque(t, r, TOKEN_MAX, &token) || r->x.err || r->x.left)
		return cf_fail(t, "a context's results (RFC 2203 5.2.3.1)", "they do not decode");
	if (major > 1)
		return cf_fail(t, "a context (RFC 2203 5.2.3.1)", "gss_major %u, gss_minor %u",
			       major, minor);
	g->token.len = 0;
	if (token.len && !cf_mech_step(t, g->mech, token, &g->token))
		return false;
	g->proc = CF_GSS_CONTINUE;
	if (major)
		return true;
	if (!cf_mech_complete(g->mech))
		return cf_fail(t, "GSS_S_CONTINUE_NEEDED",
			       "GSS_S_COMPLETE: the context is not complete here");
	g->proc = CF_GSS_DATA;
	if (!g->handle.len || !g->window)
		return cf_fail(t, "a handle, and a window (RFC 2203 5.2.3.1)",
			       "handle of %u bytes, window %u", g->handle.len, g->window);
	return right_verifier(t, r, g->window);
}

bool cf_gss_begin(struct cf_test *t, enum cf_service s)
{
	if (!cf_gss_new(t, s))
		return false;
	while (t->gss->proc != CF_GSS_DATA) {
		struct cf_call *c = cf_gss_init_call(t);
		if (xdr_out_pos(&c->rpc) + 28 > t->conn->call_inline && !cf_make_long(t, c, 1))
			return false;
		struct cf_reply *r = cf_ask(t, c);
		if (!r || !cf_gss_init_result(t, c, r))
			return false;
	}
	return true;
}

struct cf_call *cf_gss_destroy_call(struct cf_test *t)
{
	struct cf_call *c = cf_call_new_none(t, CF_PROG_NFS, 3, 0);

	t->gss->proc = CF_GSS_DESTROY;
	bool good = cf_gss_protect(t, c, CF_KRB5);
	t->gss->proc = CF_GSS_DATA;
	return good ? c : NULL;
}

void cf_gss_end(struct cf_test *t)
{
	struct cf_gss *g = t->gss;

	if (!g)
		return;
	if (g->proc == CF_GSS_DATA && t->conn && !t->conn->closed) {
		struct cf_call *c = cf_gss_destroy_call(t);
		if (c)
			cf_ask_any(t, c);
	}
	cf_mech_free(g->mech);
	t->gss = NULL;
}

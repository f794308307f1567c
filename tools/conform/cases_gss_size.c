/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sizes under Kerberos: the verifier and what wraps the results count, too, where a reply is fitted into the inline threshold or a
 * Reply chunk (RFC 8166 sections 3.3.2 and 8.2.2). t->arg is the service.
 */
#include "lib/util.h"
#include "tools/conform/conform_check.h"
#include "tools/conform/gss_check.h"

#define FILE_SIZE 8192u
#define LONG_COUNT 6000u

static bool gss_size_begin(struct cf_test *t, struct cf_fh *fh)
{
	return cf_open_small(t) && cf_gss_begin(t, t->arg) && cf_gss_file(t, FILE_SIZE, fh);
}

static struct cf_reply *gss_size_read(struct cf_test *t, const struct cf_fh *fh, uint32_t count)
{
	struct cf_call *c = cf_gss_read(t, fh, count, t->arg);
	struct cf_reply *r = c ? cf_gss_ask(t, c) : NULL;

	return r && cf_gss_read_is(t, r, count) ? r : NULL;
}

/* Bytes of a READ's reply beside its data, if they are the same for every length. */
static bool overhead(struct cf_test *t, const struct cf_fh *fh, uint32_t *bytes)
{
	uint32_t len[2];

	for (unsigned i = 0; i < 2; i++) {
		struct cf_reply *r = gss_size_read(t, fh, 4 * (i + 1));
		if (!r)
			return false;
		len[i] = r->len;
	}
	*bytes = len[0] - 4;
	return len[1] == len[0] + 4 || cf_skip(t, "this encryption type wraps to blocks");
}

/* The longest reply that goes inline. */
static void inline_exact(struct cf_test *t)
{
	uint32_t bytes;
	struct cf_fh fh;

	if (!gss_size_begin(t, &fh) || !overhead(t, &fh, &bytes))
		return;
	struct cf_reply *r = gss_size_read(t, &fh, t->conn->reply_inline - bytes);
	if (r && (r->h.proc != CF_MSG || r->len != t->conn->reply_inline))
		cf_fail(t, "an RDMA_MSG that fills the threshold", "%zu bytes", r->len);
}

static void inline_over(struct cf_test *t)
{
	uint32_t bytes;
	struct cf_fh fh;

	if (!gss_size_begin(t, &fh) || !overhead(t, &fh, &bytes))
		return;
	uint32_t count = t->conn->reply_inline - bytes + 1;
	struct cf_call *c = cf_gss_read(t, &fh, count, t->arg);
	if (!c || !cf_offer_reply(t, c, 2 * t->conn->reply_inline, 1))
		return;
	struct cf_reply *r = cf_gss_ask(t, c);
	if (r && cf_gss_read_is(t, r, count) && r->h.proc != CF_NOMSG)
		cf_fail(t, "RDMA_NOMSG: the reply is longer than the inline threshold",
			"RDMA_MSG of %zu bytes", r->len);
}

/* A refusal, or a READ that was shortened to fit; the context and the connection go on. */
static void gss_size_refused_or_short(struct cf_test *t, struct cf_call *c, uint32_t count)
{
	struct cf3_read_result got;
	struct cf_reply *r = cf_ask_any(t, c);

	if (!r)
		return;
	if (!cf_is_refusal(r)) {
		if (!cf_gss_results(t, c, r))
			return;
		if (cf_peek_status(r) == CF3_OK) {
			if (!cf3_read_result(t, r, false, &got))
				return;
			if (got.count >= count) {
				cf_fail(t, "ERR_CHUNK, an error, or fewer bytes than asked for",
					"%u bytes", got.count);
				return;
			}
		}
	}
	if (cf_alive(t))
		cf_gss_works(t, t->arg);
}

static void over_no_chunk(struct cf_test *t)
{
	struct cf_conn_options o = cf_default_options(t->run);
	uint32_t bytes;
	struct cf_fh fh;

	/* The Receives could take a longer message, so that only the server's restraint is tested. */
	o.inline_size = CF_INLINE_MIN;
	o.recv_size = 4 * CF_INLINE_MIN;
	if (!cf_open(t, &o) || !cf_gss_begin(t, t->arg) || !cf_gss_file(t, FILE_SIZE, &fh) ||
	    !overhead(t, &fh, &bytes))
		return;
	uint32_t count = t->conn->reply_inline - bytes + 1;
	struct cf_call *c = cf_gss_read(t, &fh, count, t->arg);
	if (c)
		gss_size_refused_or_short(t, c, count);
}

/* Much too long, and there is no Reply chunk; privacy's clients often offer a Write chunk alone. */
static void long_no_chunk(struct cf_test *t)
{
	struct cf_fh fh;

	if (!gss_size_begin(t, &fh))
		return;
	struct cf_call *c = cf_gss_read(t, &fh, LONG_COUNT, t->arg);
	if (c && cf_offer_write(t, c, LONG_COUNT, 1))
		gss_size_refused_or_short(t, c, LONG_COUNT);
}

static uint32_t gss_size_measure(struct cf_test *t, const struct cf_fh *fh)
{
	struct cf_call *c = cf_gss_read(t, fh, LONG_COUNT, t->arg);

	if (!c || !cf_offer_reply(t, c, 2 * LONG_COUNT, 1))
		return 0;
	struct cf_reply *r = cf_gss_ask(t, c);
	return r && cf_gss_read_is(t, r, LONG_COUNT) ? r->stream_len : 0;
}

static void chunk_exact(struct cf_test *t)
{
	struct cf_fh fh;
	uint32_t len = gss_size_begin(t, &fh) ? gss_size_measure(t, &fh) : 0;
	struct cf_call *c = len ? cf_gss_read(t, &fh, LONG_COUNT, t->arg) : NULL;

	if (!c || !cf_offer_reply(t, c, len, 3))
		return;
	struct cf_reply *r = cf_gss_ask(t, c);
	if (r && cf_gss_read_is(t, r, LONG_COUNT))
		cf_chunk_filled(t, &c->lists.reply, &r->h.lists.reply, len);
}

static void chunk_short(struct cf_test *t)
{
	struct cf_fh fh;
	uint32_t len = gss_size_begin(t, &fh) ? gss_size_measure(t, &fh) : 0;
	struct cf_call *c = len ? cf_gss_read(t, &fh, LONG_COUNT, t->arg) : NULL;

	if (c && cf_offer_reply(t, c, len - 1, 1))
		gss_size_refused_or_short(t, c, LONG_COUNT);
}

/* A denial has no results, and its reply is short: a Reply chunk too small for results is enough. */
static void chunk_small_denied(struct cf_test *t)
{
	struct cf_fh fh;

	if (!gss_size_begin(t, &fh))
		return;
	struct cf_call *c = cf_gss_read(t, &fh, LONG_COUNT, t->arg);
	if (!c || !cf_offer_reply(t, c, 64, 1))
		return;
	c->rpc.base[c->head - 1] ^= 1;
	cf_gss_denied(t, c, CF_GSS_CREDPROBLEM);
}

#define EACH(name, paragraph, title, run)                                                               \
	{ "gss-krb5-" name, paragraph, "krb5: " title, run, CF_KRB5, CF_GSS | CF_OWN_CONN },            \
		{ "gss-krb5i-" name, paragraph, "krb5i: " title, run, CF_KRB5I, CF_GSS | CF_OWN_CONN }, \
	{                                                                                               \
		"gss-krb5p-" name, paragraph, "krb5p: " title, run, CF_KRB5P, CF_GSS | CF_OWN_CONN      \
	}

static const struct cf_case cases[] = {
	EACH("inline-exact", "RFC 8166 3.3.2", "a reply of just the inline threshold",
	     inline_exact),
	EACH("inline-over", "RFC 8166 3.3.2",
	     "a reply of a byte more than the threshold goes by the Reply chunk", inline_over),
	EACH("inline-over-none", "RFC 8166 4.5.3",
	     "a reply of a byte more than the threshold, and no Reply chunk", over_no_chunk),
	{ "gss-krb5i-none", "RFC 8166 4.5.3",
	  "krb5i: a long READ with a Write chunk and no Reply chunk", long_no_chunk, CF_KRB5I,
	  CF_GSS | CF_OWN_CONN },
	{ "gss-krb5p-none", "RFC 8166 4.5.3",
	  "krb5p: a long READ with a Write chunk and no Reply chunk", long_no_chunk, CF_KRB5P,
	  CF_GSS | CF_OWN_CONN },
	EACH("reply-exact", "RFC 8166 4.3.3", "a Reply chunk of just the reply's length",
	     chunk_exact),
	EACH("reply-short", "RFC 8267 3.1", "a Reply chunk one byte too short", chunk_short),
	EACH("reply-small-denied", "RFC 8166 4.3.3", "a small Reply chunk, and a denied call",
	     chunk_small_denied),
};

const struct cf_group cf_group_gss_size = { "gss-size", 3001, cases, rn_array_size(cases) };

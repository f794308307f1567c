/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kerberos over RDMA: contexts and the protected header (RFC 8166 sections 8.2.2.1 and 8.2.2.2, RFC 2203 sections 5.2 to 5.4).
 * With authentication alone data may be reduced as under AUTH_SYS.
 */
#include <string.h>

#include "lib/util.h"
#include "tools/conform/conform_check.h"
#include "tools/conform/gss_check.h"
#include "tools/conform/long_reply.h"

/* ---- contexts ---------------------------------------------------------------------------------
 */

static void context(struct cf_test *t)
{
	if (cf_gss_begin(t, CF_KRB5))
		cf_gss_works(t, CF_KRB5);
}

/* INIT as a Long Call of t->arg segments, with a Reply chunk offered. */
static void long_context(struct cf_test *t)
{
	if (!cf_gss_new(t, CF_KRB5))
		return;
	while (t->gss->proc != CF_GSS_DATA) {
		struct cf_call *c = cf_gss_init_call(t);
		if (!cf_make_long(t, c, t->arg) || !cf_offer_reply(t, c, 4096, t->arg))
			return;
		struct cf_reply *r = cf_ask(t, c);
		if (!r || !cf_gss_init_result(t, c, r))
			return;
	}
	cf_gss_works(t, CF_KRB5);
}

/* An answer that is not a success, and a connection that goes on. */
static void gss_case_refused(struct cf_test *t, struct cf_call *c)
{
	struct cf_reply *r = cf_ask_any(t, c);

	if (!r)
		return;
	if (!cf_is_refusal(r))
		cf_fail(t, "ERR_CHUNK, or an error of the RPC layer", "SUCCESS");
	else
		cf_alive(t);
}

/* The token by a Read chunk. */
static void reduced_token(struct cf_test *t)
{
	if (!cf_gss_new(t, CF_KRB5))
		return;
	struct cf_call *c = cf_gss_init_call(t);
	if (cf_gss_cut(t, c, c->head + 4, t->gss->token.len))
		gss_case_refused(t, c);
}

/* A Write chunk in the call that makes a context: its results have no item that may go there. */
static void write_chunk_at_init(struct cf_test *t)
{
	if (!cf_gss_new(t, CF_KRB5))
		return;
	while (t->gss->proc != CF_GSS_DATA) {
		struct cf_call *c = cf_gss_init_call(t);
		if (xdr_out_pos(&c->rpc) + 64 > t->conn->call_inline && !cf_make_long(t, c, 1))
			return;
		if (!cf_offer_write(t, c, 4096, 1))
			return;
		struct cf_reply *r = cf_ask(t, c);
		if (!r || !cf_writes_unused(t, r, 0) || !cf_gss_init_result(t, c, r))
			return;
	}
	cf_gss_works(t, CF_KRB5);
}

static void gss_case_other_conn(struct cf_test *t)
{
	if (cf_gss_begin(t, CF_KRB5) && cf_open(t, NULL) && cf_gss_works(t, CF_KRB5) &&
	    cf_reopen(t))
		cf_gss_works(t, CF_KRB5);
}

static bool gss_case_destroy(struct cf_test *t, bool as_long)
{
	struct cf_call *c = cf_gss_destroy_call(t);

	if (!c || (as_long && !cf_make_long(t, c, 2)))
		return false;
	struct cf_reply *r = cf_gss_ask(t, c);
	if (!r)
		return false;
	if (r->x.left)
		return cf_fail(t, "no results (RFC 2203 5.4)", "%zu bytes", r->x.left);
	return true;
}

/* Calls under a destroyed context are denied, and do not cost the connection. */
static void destroyed(struct cf_test *t)
{
	if (!cf_gss_begin(t, CF_KRB5) || !cf_gss_works(t, CF_KRB5) || !gss_case_destroy(t, t->arg))
		return;
	struct cf_call *c = cf_gss_getattr(t, CF_KRB5);
	if (!c || !cf_gss_denied(t, c, CF_GSS_CREDPROBLEM) || !(c = cf_gss_destroy_call(t)) ||
	    !cf_gss_denied(t, c, CF_GSS_CREDPROBLEM))
		return;
	if (cf_gss_begin(t, CF_KRB5))
		cf_gss_works(t, CF_KRB5);
}

/* ---- bad headers ------------------------------------------------------------------------------
 */

enum {
	BAD_MIC = 1,
	CUT_MIC,
	OTHER_HANDLE,
	OTHER_XID,
	HIGH_SEQ,
	MAX_SEQ,
	SERVICE_0,
	SERVICE_4,
	VERSION_2,
	LONG_CALL = 16
};

#define VERSION_AT (24u + 8)

static uint32_t bad_seq(struct cf_test *t)
{
	switch (t->arg & ~LONG_CALL) {
	case HIGH_SEQ:
		return UINT32_MAX;
	case MAX_SEQ:
		return CF_GSS_SEQ_MAX;
	default:
		return ++t->gss->seq;
	}
}

/* A call with something wrong in its credential. */
static struct cf_call *bad_credential(struct cf_test *t, long what)
{
	struct cf_call *c = cf3_getattr(t, &t->run->scratch);
	struct cf_gss *g = t->gss, before = *g;

	if (what == SERVICE_4)
		g->service = 4;
	if (what == SERVICE_0)
		g->service = UINT32_MAX;
	if (what == OTHER_HANDLE) {
		g->handle.data = cf_alloc(t, before.handle.len);
		memset(g->handle.data, 0xdb, before.handle.len);
	}
	bool good = cf_gss_protect_as(t, c, CF_KRB5, bad_seq(t));
	g->service = 0;
	g->handle = before.handle;
	return good ? c : NULL;
}

static void bad_header(struct cf_test *t)
{
	long what = t->arg & ~LONG_CALL;

	if (!cf_gss_begin(t, CF_KRB5))
		return;
	struct cf_call *c = bad_credential(t, what);
	if (!c)
		return;
	if (what == BAD_MIC)
		c->rpc.base[c->head - 1] ^= 1;
	if (what == CUT_MIC)
		memset(c->rpc.base + c->mic_at, 0, c->head - c->mic_at);
	if (what == VERSION_2)
		xdr_patch_u32(&c->rpc, VERSION_AT, 77);
	if (what == OTHER_XID) {
		c->xid = cf_xid(t);
		xdr_patch_u32(&c->rpc, 0, c->xid);
	}
	if ((t->arg & LONG_CALL) && !cf_make_long(t, c, 2))
		return;
	uint32_t stat = what == HIGH_SEQ || what == MAX_SEQ ? CF_GSS_CTXPROBLEM
			: what == SERVICE_0 || what == SERVICE_4 || what == VERSION_2
				? CF_AUTH_BADCRED
				: CF_GSS_CREDPROBLEM;
	if (cf_gss_denied(t, c, stat))
		cf_gss_works(t, CF_KRB5);
}

/* ---- parts of the header by Read chunks -------------------------------------------------------
 */

enum { HANDLE, CREDENTIAL, MIC };

static void reduced_part(struct cf_test *t)
{
	if (!cf_gss_begin(t, CF_KRB5))
		return;
	struct cf_call *c = cf_gss_getattr(t, CF_KRB5);
	if (!c)
		return;
	uint32_t credential = 24 + 8, handle = credential + 5 * 4,
		 mic_len = cf_word(c->rpc.base + c->mic_at - 4);
	bool cut = t->arg == HANDLE ? cf_gss_cut(t, c, handle, t->gss->handle.len)
		   : t->arg == CREDENTIAL
			   ? cf_gss_cut(t, c, credential, cf_word(c->rpc.base + credential - 4))
			   : cf_gss_cut(t, c, c->mic_at, mic_len);
	if (cut)
		gss_case_refused(t, c);
}

/* ---- krb5: data may be reduced ----------------------------------------------------------------
 */

enum { W_ONE, W_ODD, W_LONG };

static void gss_case_write_reduced(struct cf_test *t)
{
	uint32_t len = t->arg == W_ODD ? 3001 : 8192;
	uint8_t *data = cf_alloc_raw(t, len);
	struct cf_fh fh;

	if (!cf_gss_begin(t, CF_KRB5) || !cf_gss_file(t, 0, &fh))
		return;
	cf_fill_pattern(data, 17, len);
	struct cf_call *c = cf3_write(t, &fh, 0, len, NULL);
	if (!cf_reduce(t, c, data, len, t->arg == W_ONE ? 1 : 3) ||
	    !cf_gss_protect(t, c, CF_KRB5) || (t->arg == W_LONG && !cf_make_long(t, c, 2)))
		return;
	struct cf_reply *r = cf_gss_ask(t, c);
	if (r && cf3_status(t, r, CF3_OK))
		cf_gss_file_is(t, &fh, 17, len);
}

static void read_reduced(struct cf_test *t)
{
	uint32_t len = t->arg;
	struct cf3_read_result got;
	struct cf_fh fh;

	if (!cf_gss_begin(t, CF_KRB5) || !cf_gss_file(t, len, &fh))
		return;
	struct cf_call *c = cf_gss_read(t, &fh, len, CF_KRB5);
	if (!c || !cf_offer_write(t, c, len + 100, 3))
		return;
	struct cf_reply *r = cf_gss_ask(t, c);
	if (r && cf3_read_result(t, r, true, &got))
		cf_chunk_has_pattern(t, &c->lists.write[0], &r->h.lists.write[0], 0, len);
}

static void long_reply(struct cf_test *t)
{
	if (!cf_open_small(t) || !cf_gss_begin(t, CF_KRB5))
		return;
	struct cf_call *c = cf_long_call(t, CF_LONG_READDIRPLUS);
	if (!c || !cf_gss_protect(t, c, CF_KRB5) || !cf_offer_reply(t, c, 16384, 2))
		return;
	struct cf_reply *r = cf_gss_ask(t, c);
	if (!r)
		return;
	if (r->h.proc != CF_NOMSG)
		cf_fail(t, "RDMA_NOMSG: the reply is longer than the inline threshold",
			"RDMA_MSG of %zu bytes", r->len);
	else
		cf_long_check(t, CF_LONG_READDIRPLUS, r);
}

#define BAD(what, name, title)                                                                     \
	{ "gss-" name, "RFC 2203 5.3.3.3", title, bad_header, what, CF_GSS },                      \
	{                                                                                          \
		"gss-" name "-long", "RFC 2203 5.3.3.3", title ", in a Long Call", bad_header,     \
			(what) | LONG_CALL, CF_GSS                                                 \
	}

static const struct cf_case cases[] = {
	{ "gss-context", "RFC 2203 5.2.3", "a context is made over RDMA, and its window is signed",
	  context, 0, CF_GSS },
	{ "gss-context-long", "RFC 8166 8.2.2.2",
	  "a context's token in a Long Call, with a Reply chunk", long_context, 1, CF_GSS },
	{ "gss-context-long-3", "RFC 8166 8.2.2.2",
	  "a context's token in a Long Call of three segments", long_context, 3, CF_GSS },
	{ "gss-context-reduced", "RFC 8166 8.2.2",
	  "a context's token by a Read chunk of its own is refused", reduced_token, 0, CF_GSS },
	{ "gss-context-write-chunk", "RFC 8166 8.2.2",
	  "a context is made beside a Write chunk, which comes back unused", write_chunk_at_init, 0,
	  CF_GSS },
	{ "gss-other-connection", "RFC 8166 8.2.2.1",
	  "a context that was made over another connection", gss_case_other_conn, 0, CF_GSS },
	{ "gss-destroyed", "RFC 2203 5.4", "a destroyed context is gone, and the connection is not",
	  destroyed, false, CF_GSS },
	{ "gss-destroyed-long", "RFC 2203 5.4", "a context is destroyed by a Long Call", destroyed,
	  true, CF_GSS },
	BAD(BAD_MIC, "bad-mic", "a MIC with a wrong bit"),
	BAD(CUT_MIC, "zero-mic", "a MIC of zeros"),
	BAD(OTHER_XID, "other-xid", "a MIC over another xid"),
	BAD(OTHER_HANDLE, "other-handle", "a handle that is nobody's"),
	BAD(MAX_SEQ, "seq-max", "the first sequence number that is too high"),
	BAD(HIGH_SEQ, "seq-last", "the highest sequence number"),
	BAD(SERVICE_0, "service-max", "a service that does not exist"),
	BAD(SERVICE_4, "service-4", "the service behind privacy"),
	BAD(VERSION_2, "version", "another version than the context's"),
	{ "gss-reduced-handle", "RFC 8166 8.2.2", "the context's handle by a Read chunk is refused",
	  reduced_part, HANDLE, CF_GSS },
	{ "gss-reduced-credential", "RFC 8166 8.2.2", "the credential by a Read chunk is refused",
	  reduced_part, CREDENTIAL, CF_GSS },
	{ "gss-reduced-mic", "RFC 8166 8.2.2", "the verifier's MIC by a Read chunk is refused",
	  reduced_part, MIC, CF_GSS },
	{ "gss-krb5-write", "RFC 8166 8.2.2.2", "krb5: WRITE's data by a Read chunk",
	  gss_case_write_reduced, W_ONE, CF_GSS },
	{ "gss-krb5-write-odd", "RFC 8166 8.2.2.2",
	  "krb5: WRITE's data, with a pad, in three segments", gss_case_write_reduced, W_ODD,
	  CF_GSS },
	{ "gss-krb5-write-long", "RFC 8166 8.2.2.2",
	  "krb5: WRITE as a Long Call, its data by a chunk of their own", gss_case_write_reduced,
	  W_LONG, CF_GSS },
	{ "gss-krb5-read", "RFC 8166 8.2.2.2", "krb5: READ's data by a Write chunk", read_reduced,
	  8192, CF_GSS },
	{ "gss-krb5-read-odd", "RFC 8166 8.2.2.2",
	  "krb5: READ of 3001 bytes by a Write chunk, without a pad", read_reduced, 3001, CF_GSS },
	{ "gss-krb5-read-64k", "RFC 8166 8.2.2.2", "krb5: READ of 64 KiB by a Write chunk",
	  read_reduced, 65536, CF_GSS },
	{ "gss-krb5-long-reply", "RFC 8166 8.2.2.2", "krb5: READDIRPLUS by a Long Reply",
	  long_reply, 0, CF_GSS | CF_OWN_CONN },
};

const struct cf_group cf_group_gss = { "gss", 2801, cases, rn_array_size(cases) };

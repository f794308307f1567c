/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kerberos with integrity and privacy (RFC 8166 section 8.2.2.3): nothing is reduced; calls and replies go inline, or whole by
 * Long Calls and Long Replies. t->arg: the service, and what makes the case differ.
 */
#include "lib/util.h"
#include "tools/conform/conform_check.h"
#include "tools/conform/gss_check.h"
#include "tools/conform/long_reply.h"

#define SERVICE(arg) ((enum cf_service)((arg)&3))
#define WHAT(arg) ((arg) >> 2)
#define ARG(s, what) ((s) | (long)(what) << 2)

/* ---- arguments --------------------------------------------------------------------------------
 */

static void gss_body_null_call(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);

	if (cf_gss_begin(t, SERVICE(t->arg)) && cf_gss_protect(t, c, SERVICE(t->arg)))
		cf_gss_ask(t, c);
}

static void write_inline(struct cf_test *t)
{
	uint32_t len = WHAT(t->arg);
	struct cf_fh fh;

	if (!cf_gss_begin(t, SERVICE(t->arg)) || !cf_gss_file(t, 0, &fh))
		return;
	struct cf_call *c = cf_gss_write(t, &fh, 3, len, SERVICE(t->arg));
	struct cf_reply *r = c ? cf_gss_ask(t, c) : NULL;
	if (r && cf3_status(t, r, CF3_OK))
		cf_gss_file_is(t, &fh, 3, len);
}

/* As a Long Call of one to four segments, according to the length, with room for a Long Reply beside it. */
static void write_long(struct cf_test *t)
{
	uint32_t len = WHAT(t->arg);
	struct cf_fh fh;

	if (!cf_gss_begin(t, SERVICE(t->arg)) || !cf_gss_file(t, 0, &fh))
		return;
	struct cf_call *c = cf_gss_write(t, &fh, 3, len, SERVICE(t->arg));
	if (!c || !cf_make_long(t, c, 1 + len % 4) || !cf_offer_reply(t, c, 4096, 1))
		return;
	struct cf_reply *r = cf_gss_ask(t, c);
	if (r && cf3_status(t, r, CF3_OK))
		cf_gss_file_is(t, &fh, 3, len);
}

/* ---- results ----------------------------------------------------------------------------------
 */

/* Long Call and Long Reply in one: what RFC 8166 section 8.2.2.3 says that a Requester provides. */
static void long_both(struct cf_test *t)
{
	if (!cf_open_small(t) || !cf_gss_begin(t, SERVICE(t->arg)))
		return;
	struct cf_call *c = cf_long_call(t, WHAT(t->arg));
	if (!c || !cf_gss_protect(t, c, SERVICE(t->arg)) || !cf_make_long(t, c, 2) ||
	    !cf_offer_reply(t, c, 16384, 3))
		return;
	struct cf_reply *r = cf_gss_ask(t, c);
	if (!r)
		return;
	if (r->h.proc != CF_NOMSG)
		cf_fail(t, "RDMA_NOMSG: the reply is longer than the inline threshold",
			"RDMA_MSG of %zu bytes", r->len);
	else
		cf_long_check(t, WHAT(t->arg), r);
}

/* READ of so many bytes beside Write chunks, which may not be used. Long ones get a Reply chunk, too. */
static void writes_unused(struct cf_test *t)
{
	uint32_t len = WHAT(t->arg);
	bool is_long = len > 1024;
	struct cf_fh fh;

	if (!cf_gss_begin(t, SERVICE(t->arg)) || !cf_gss_file(t, len, &fh))
		return;
	struct cf_call *c = cf_gss_read(t, &fh, len, SERVICE(t->arg));
	if (!c)
		return;
	struct cf_window *first = cf_offer_write(t, c, len + 100, 2),
			 *second = cf_offer_write(t, c, 64, 1);
	if (!first || !second || (is_long && !cf_offer_reply(t, c, len + 1024, 2)))
		return;
	struct cf_reply *r = cf_gss_ask(t, c);
	if (!r || !cf_writes_unused(t, r, 0) || !cf_gss_read_is(t, r, len))
		return;
	if (!cf_window_untouched(first, 0, first->len) ||
	    !cf_window_untouched(second, 0, second->len))
		cf_fail(t, "nothing written to a Write chunk that comes back unused",
			"bytes in it");
}

/* ---- Read chunks where none may be ------------------------------------------------------------
 */

enum { CUT_DATA, CUT_BODY, CUT_SUM, CUT_BESIDE_LONG, CUT_NOTHING };

#define DATA 512u

/* The call was protected as a whole, so that only the use of the chunk is wrong; CUT_NOTHING has a chunk behind the call. */
static bool gss_body_cut(struct cf_test *t, struct cf_call *c, long what)
{
	uint32_t body = cf_word(c->rpc.base + c->head), start = c->head + 4;

	switch (what) {
	case CUT_DATA: /* the body ends with the data */
		return cf_gss_cut(t, c, start + body - DATA, DATA);
	case CUT_SUM:
		return cf_gss_cut(t, c, start + body + 4, cf_word(c->rpc.base + start + body));
	case CUT_BESIDE_LONG:
		return cf_gss_cut(t, c, start, body) && cf_make_long(t, c, 1);
	case CUT_NOTHING:
		return cf_reduce(t, c, "behind the call", 15, 1);
	default:
		return cf_gss_cut(t, c, start, body);
	}
}

static void refused_chunk(struct cf_test *t)
{
	uint64_t size;
	struct cf_fh fh;

	if (!cf_gss_begin(t, SERVICE(t->arg)) || !cf_gss_file(t, 0, &fh))
		return;
	struct cf_call *c = cf_gss_write(t, &fh, 0, DATA, SERVICE(t->arg));
	if (!c || !gss_body_cut(t, c, WHAT(t->arg)))
		return;
	struct cf_reply *r = cf_ask_any(t, c);
	if (!r || !cf_expect_violation(t, r) || !cf3_file_size(t, &fh, &size))
		return;
	if (size)
		cf_fail(t, "a refused WRITE does nothing", "%llu bytes were written",
			(unsigned long long)size);
	else
		cf_gss_works(t, SERVICE(t->arg));
}

/* ---- bodies that are not as they were sent ----------------------------------------------------
 */

enum { BEND_BODY, BEND_SUM, BEND_NUMBER, BEND_LENGTH, BEND_LONG = 8 };

static void bent(struct cf_test *t)
{
	long what = WHAT(t->arg);
	uint64_t size;
	struct cf_fh fh;

	if (!cf_gss_begin(t, SERVICE(t->arg)) || !cf_gss_file(t, 0, &fh))
		return;
	t->gss->skew = (what & ~BEND_LONG) == BEND_NUMBER ? 7 : 0;
	struct cf_call *c = cf_gss_write(t, &fh, 0, DATA, SERVICE(t->arg));
	t->gss->skew = 0;
	if (!c)
		return;
	if ((what & ~BEND_LONG) == BEND_BODY)
		c->rpc.base[c->head + 4 + 100] ^= 4;
	if ((what & ~BEND_LONG) == BEND_SUM)
		c->rpc.base[xdr_out_pos(&c->rpc) - 5] ^= 4;
	if ((what & ~BEND_LONG) == BEND_LENGTH)
		xdr_patch_u32(&c->rpc, c->head, 0x7ffffff0);
	if ((what & BEND_LONG) && !cf_make_long(t, c, 3))
		return;
	struct cf_reply *r = cf_ask_any(t, c);
	if (!r || !cf_expect_accept(t, r, CF_GARBAGE_ARGS) || !cf_gss_results(t, c, r) ||
	    !cf3_file_size(t, &fh, &size))
		return;
	if (size)
		cf_fail(t, "a refused WRITE does nothing", "%llu bytes were written",
			(unsigned long long)size);
	else
		cf_gss_works(t, SERVICE(t->arg));
}

#define R8166 "RFC 8166 8.2.2.3"
/* Two cases: with integrity and with privacy. */
#define BOTH(what, name, paragraph, title, run, flags)                                             \
	{                                                                                          \
		"gss-krb5i-" name,   paragraph,	      "krb5i: " title, run,                        \
		ARG(CF_KRB5I, what), CF_GSS | (flags)                                              \
	},                                                                                         \
	{                                                                                          \
		"gss-krb5p-" name, paragraph, "krb5p: " title, run, ARG(CF_KRB5P, what),           \
			CF_GSS | (flags)                                                           \
	}

static const struct cf_case cases[] = {
	BOTH(0, "null", R8166, "NULL", gss_body_null_call, 0),
	BOTH(501, "write", R8166, "WRITE inline", write_inline, 0),
	BOTH(4096, "write-long", R8166, "WRITE as a Long Call", write_long, 0),
	BOTH(7003, "write-long-4", R8166, "WRITE of odd length as a Long Call of four segments",
	     write_long, 0),
	BOTH(65534, "write-long-64k", R8166, "WRITE of nearly 64 KiB as a Long Call", write_long,
	     0),
	BOTH(501, "read", R8166, "READ inline: Write chunks come back unused", writes_unused, 0),
	BOTH(8000, "read-long", R8166, "READ by a Long Reply: Write chunks come back unused",
	     writes_unused, 0),
	BOTH(65535, "read-long-64k", R8166,
	     "READ of 65535 bytes by a Long Reply: Write chunks come back unused", writes_unused,
	     0),
	BOTH(CF_LONG_READDIRPLUS, "readdirplus", R8166,
	     "READDIRPLUS as a Long Call with a Long Reply", long_both, CF_OWN_CONN),
	BOTH(CF_LONG_READLINK, "readlink", R8166, "READLINK as a Long Call with a Long Reply",
	     long_both, CF_OWN_CONN),
	{ "gss-krb5i-chunk-data", R8166,
	  "krb5i: WRITE's data by a Read chunk within the body are refused", refused_chunk,
	  ARG(CF_KRB5I, CUT_DATA), CF_GSS },
	{ "gss-krb5i-chunk-mic", R8166, "krb5i: the body's MIC by a Read chunk is refused",
	  refused_chunk, ARG(CF_KRB5I, CUT_SUM), CF_GSS },
	BOTH(CUT_BODY, "chunk-body", R8166, "the body by a Read chunk is refused", refused_chunk,
	     0),
	BOTH(CUT_BESIDE_LONG, "chunk-beside-long", R8166,
	     "a Long Call, its body by another Read chunk, is refused", refused_chunk, 0),
	BOTH(CUT_NOTHING, "chunk-behind", R8166, "a Read chunk behind the call is refused",
	     refused_chunk, 0),
	BOTH(BEND_BODY, "bent", "RFC 2203 5.3.3.4", "a wrong bit in the body", bent, 0),
	BOTH(BEND_BODY | BEND_LONG, "bent-long", "RFC 2203 5.3.3.4",
	     "a wrong bit in the body of a Long Call", bent, 0),
	BOTH(BEND_SUM, "bent-sum", "RFC 2203 5.3.3.4",
	     "a wrong bit at the end of what protects the body", bent, 0),
	BOTH(BEND_NUMBER, "number", "RFC 2203 5.3.3.1",
	     "another sequence number in the body than in the credential", bent, 0),
	BOTH(BEND_NUMBER | BEND_LONG, "number-long", "RFC 2203 5.3.3.1",
	     "another sequence number in the body of a Long Call", bent, 0),
	BOTH(BEND_LENGTH | BEND_LONG, "length", "RFC 2203 5.3.2", "a body that claims 2 GiB", bent,
	     0),
};

const struct cf_group cf_group_gss_body = { "gss-body", 2901, cases, rn_array_size(cases) };

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reply chunks (RFC 8166 sections 3.5.3 and 4.3.3), on connections of 1024 bytes inline, where
 * replies become long early.
 */
#include <stdio.h>
#include <string.h>

#include "lib/util.h"
#include "tools/conform/conform_check.h"
#include "tools/conform/long_reply.h"
#include "tools/conform/nfs3.h"

#define ROOM 16384u

/* ---- long replies -----------------------------------------------------------------------------
 */

/* Gets the reply to c, which must come whole by the Reply chunk. */
static bool comes_by_chunk(struct cf_test *t, enum cf_long kind, struct cf_call *c)
{
	struct cf_reply *r = cf_ask(t, c);

	if (!r)
		return false;
	if (r->h.proc != CF_NOMSG)
		return cf_fail(t, "RDMA_NOMSG: the reply is longer than the inline threshold",
			       "RDMA_MSG of %zu bytes", r->len);
	return cf_long_check(t, kind, r);
}

static void reply_by_chunk(struct cf_test *t)
{
	if (cf_open_small(t)) {
		struct cf_call *c = cf_long_call(t, t->arg);
		if (c && cf_offer_reply(t, c, ROOM, 1))
			comes_by_chunk(t, t->arg, c);
	}
}

/* Returns the length of a long reply's payload stream, or 0 after a verdict. */
static uint32_t reply_measure(struct cf_test *t, enum cf_long kind)
{
	struct cf_call *c = cf_long_call(t, kind);

	if (!c || !cf_offer_reply(t, c, ROOM, 1))
		return 0;
	struct cf_reply *r = cf_ask(t, c);
	return r && cf_long_check(t, kind, r) ? r->stream_len : 0;
}

static void exact(struct cf_test *t)
{
	if (!cf_open_small(t))
		return;
	uint32_t len = reply_measure(t, t->arg);
	struct cf_call *c = len ? cf_long_again(t, t->arg) : NULL;
	if (c && cf_offer_reply(t, c, len, 1))
		comes_by_chunk(t, t->arg, c);
}

/*
 * Accepts a refusal or a reply shortened to fit: READ and READDIR may return less than asked for.
 */
static void reply_refused_or_short(struct cf_test *t, enum cf_long kind, struct cf_call *c)
{
	struct cf_reply *r = cf_ask_any(t, c);

	if (!r)
		return;
	if (!cf_is_refusal(r) && cf_peek_status(r) == CF3_OK) {
		if (kind == CF_LONG_READLINK) {
			cf_fail(t, "ERR_CHUNK, or an error of RPC or NFS", "a successful READLINK");
			return;
		}
		if (!cf_long_check(t, kind, r))
			return;
	}
	cf_alive(t);
}

static void one_short(struct cf_test *t)
{
	if (!cf_open_small(t))
		return;
	uint32_t len = reply_measure(t, t->arg);
	struct cf_call *c = len ? cf_long_again(t, t->arg) : NULL;
	if (c && cf_offer_reply(t, c, len - 1, 1))
		reply_refused_or_short(t, t->arg, c);
}

static void no_chunk(struct cf_test *t)
{
	if (!cf_open_small(t))
		return;
	struct cf_call *c = cf_long_call(t, t->arg);
	if (c)
		reply_refused_or_short(t, t->arg, c);
}

static void reply_chunk_empty(struct cf_test *t)
{
	static const uint32_t zeros[] = { 0, 0, CF_END };

	if (!cf_open_small(t))
		return;
	struct cf_call *c = cf_long_call(t, CF_LONG_READLINK);
	if (!c)
		return;
	cf_add_reply(&c->lists);
	if (t->arg && !cf_add_segs(t, &c->lists.reply, zeros, 0))
		return;
	reply_refused_or_short(t, CF_LONG_READLINK, c);
}

/* ---- segments ---------------------------------------------------------------------------------
 */

#define S16(n) n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n

static const struct shape {
	uint32_t lens[18];
	uint32_t skew;
} shapes[] = {
	{ { 8192, 8192, CF_END }, 0 },		{ { S16(1024), CF_END }, 0 },
	{ { 1, 7, 13, 101, ROOM, CF_END }, 0 }, { { 0, 1000, 0, 0, ROOM, 0, CF_END }, 0 },
	{ { 999, ROOM, CF_END }, 3 },		{ { 500, ROOM, 4096, CF_END }, 0 },
};

static void reply_chunk_segments(struct cf_test *t)
{
	const struct shape *s = &shapes[t->arg];

	if (!cf_open_small(t))
		return;
	struct cf_call *c = cf_long_call(t, CF_LONG_READDIRPLUS);
	if (!c || !cf_add_segs(t, cf_add_reply(&c->lists), s->lens, s->skew))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (r && cf_long_check(t, CF_LONG_READDIRPLUS, r))
		cf_chunk_filled(t, &c->lists.reply, &r->h.lists.reply, r->stream_len);
}

/* Offers segments whose sum is exactly the reply's length. */
static void exact_segments(struct cf_test *t)
{
	if (!cf_open_small(t))
		return;
	uint32_t len = reply_measure(t, CF_LONG_READDIRPLUS);
	struct cf_call *c = len ? cf_long_again(t, CF_LONG_READDIRPLUS) : NULL;
	if (c && cf_offer_reply(t, c, len, 7))
		comes_by_chunk(t, CF_LONG_READDIRPLUS, c);
}

/* ---- offered and not needed -------------------------------------------------------------------
 */

enum { SMALL_NULL, SMALL_GETATTR, SMALL_LOOKUP_FAILS, SMALL_EMPTY, SMALL_ZERO, SMALL_SEGMENTS };

static void not_needed(struct cf_test *t)
{
	static const uint32_t zeros[] = { 0, 0, 0, CF_END };
	const struct cf_fh *dir = &t->run->scratch;
	struct cf_call *c = t->arg == SMALL_NULL	   ? cf3_null(t)
			    : t->arg == SMALL_LOOKUP_FAILS ? cf3_lookup(t, dir, "no-such-name")
							   : cf3_getattr(t, dir);

	cf_add_reply(&c->lists);
	if (t->arg == SMALL_ZERO && !cf_add_segs(t, &c->lists.reply, zeros, 0))
		return;
	if (t->arg != SMALL_ZERO && t->arg != SMALL_EMPTY &&
	    !cf_offer_reply(t, c, 4096, t->arg == SMALL_SEGMENTS ? 5 : 1))
		return;
	bool no_room = t->arg == SMALL_EMPTY || t->arg == SMALL_ZERO;
	struct cf_reply *r = cf_ask_any(t, c);
	/* A server may use a Reply chunk for any reply. If the chunk is too small, an error is
	 * permitted. */
	if (!r || (no_room && cf_is_refusal(r)) || !cf_expect_success(t, r))
		return;
	if (t->arg != SMALL_NULL)
		cf3_status(t, r, t->arg == SMALL_LOOKUP_FAILS ? CF3ERR_NOENT : CF3_OK);
}

/* READ of more than fits inline; its data cannot be reduced, as there is no Write chunk. */
static void whole_read(struct cf_test *t)
{
	uint32_t len = (uint32_t)t->arg;
	struct cf3_read_result got;
	struct cf_fh fh;

	if (!cf_open_small(t) || !cf3_make_file(t, "reply-read", len, &fh))
		return;
	struct cf_call *c = cf3_read(t, &fh, 0, len);
	if (!cf_offer_reply(t, c, len + 1024, 3))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (!r || !cf3_read_result(t, r, false, &got))
		return;
	if (!got.count || got.count > len) {
		cf_fail(t, "the file's bytes", "count %u", got.count);
		return;
	}
	for (uint32_t i = 0; i < got.count; i++)
		if (got.data[i] != cf_pattern(i)) {
			cf_fail(t, "the file's bytes in the Reply chunk", "byte %u is %02x", i,
				got.data[i]);
			return;
		}
}

static void reply_chunk_rpc_refuses(struct cf_test *t)
{
	struct cf_call *c = cf3_new(t, CF3_GETATTR); /* the argument is missing */

	if (!cf_offer_reply(t, c, 4096, 2))
		return;
	struct cf_reply *r = cf_ask_any(t, c);
	if (r)
		cf_expect_accept(t, r, CF_GARBAGE_ARGS);
}

static void bad_handle(struct cf_test *t)
{
	if (!cf_open_small(t))
		return;
	struct cf_call *c = cf_long_call(t, CF_LONG_READDIRPLUS);
	if (!c || !cf_offer_reply(t, c, ROOM, 1))
		return;
	c->lists.reply.seg[0].handle ^= 0x5a5a00;
	if (cf_refused_or_closed(t, c))
		cf_server_alive(t);
}

#define LONG_CASES(kind, name, proc)                                                               \
	{ "reply-" name,                                                                           \
	  "RFC 8166 3.5.3",                                                                        \
	  proc " longer than the threshold uses the Reply chunk",                                  \
	  reply_by_chunk,                                                                          \
	  kind,                                                                                    \
	  CF_OWN_CONN },                                                                           \
		{ "reply-" name "-exact",                                                          \
		  "RFC 8166 4.3.3",                                                                \
		  proc " into a Reply chunk of its length",                                        \
		  exact,                                                                           \
		  kind,                                                                            \
		  CF_OWN_CONN },                                                                   \
		{ "reply-" name "-short",                                                          \
		  "RFC 8267 3.1",                                                                  \
		  proc " into a Reply chunk one byte too short",                                   \
		  one_short,                                                                       \
		  kind,                                                                            \
		  CF_OWN_CONN },                                                                   \
	{                                                                                          \
		"reply-" name "-none", "RFC 8267 3", proc " too long, and no Reply chunk",         \
			no_chunk, kind, CF_OWN_CONN                                                \
	}

#define SEGMENTS(i, name, title)                                                                   \
	{                                                                                          \
		"reply-segments-" name, "RFC 8166 4.3.3", title, reply_chunk_segments, i,          \
			CF_OWN_CONN                                                                \
	}

static const struct cf_case cases[] = {
	LONG_CASES(CF_LONG_READDIR, "readdir", "READDIR"),
	LONG_CASES(CF_LONG_READDIRPLUS, "readdirplus", "READDIRPLUS"),
	LONG_CASES(CF_LONG_READ, "read", "READ without a Write list"),
	LONG_CASES(CF_LONG_READLINK, "readlink", "READLINK"),
	SEGMENTS(0, "two", "a Reply chunk of two segments"),
	SEGMENTS(1, "sixteen", "a Reply chunk of sixteen segments"),
	SEGMENTS(2, "odd", "a Reply chunk with segments of odd lengths"),
	SEGMENTS(3, "zero", "a Reply chunk with empty segments between others"),
	SEGMENTS(4, "unaligned", "a Reply chunk at odd addresses"),
	SEGMENTS(5, "unused", "segments behind the reply come back with length zero"),
	{ "reply-segments-exact", "RFC 8166 4.3.3", "seven segments that are exactly long enough",
	  exact_segments, 0, CF_OWN_CONN },
	{ "reply-empty", "RFC 8267 3.1", "a long reply, and a Reply chunk without segments",
	  reply_chunk_empty, 0, CF_OWN_CONN },
	{ "reply-zero-length", "RFC 8267 3.1", "a long reply, and a Reply chunk of empty segments",
	  reply_chunk_empty, 1, CF_OWN_CONN },
	{ "reply-spare-null", "RFC 8166 4.3.3", "NULL with a Reply chunk", not_needed, SMALL_NULL,
	  0 },
	{ "reply-spare-getattr", "RFC 8166 4.3.3", "GETATTR with a Reply chunk", not_needed,
	  SMALL_GETATTR, 0 },
	{ "reply-spare-error", "RFC 8166 4.3.3", "a failed LOOKUP with a Reply chunk", not_needed,
	  SMALL_LOOKUP_FAILS, 0 },
	{ "reply-spare-empty", "RFC 8166 4.3.3", "a short reply, a Reply chunk without segments",
	  not_needed, SMALL_EMPTY, 0 },
	{ "reply-spare-zero", "RFC 8166 4.3.3", "a short reply, a Reply chunk of empty segments",
	  not_needed, SMALL_ZERO, 0 },
	{ "reply-spare-segments", "RFC 8166 4.3.3", "GETATTR with a Reply chunk of five segments",
	  not_needed, SMALL_SEGMENTS, 0 },
	{ "reply-read-pad", "RFC 8166 3.5.3", "READ of 1501 bytes in a Reply chunk, with its pad",
	  whole_read, 1501, CF_OWN_CONN },
	{ "reply-read-64k", "RFC 8166 3.5.3", "READ of 64 KiB in a Reply chunk", whole_read, 65536,
	  CF_OWN_CONN },
	{ "reply-rpc-refusal", "RFC 8166 4.3.3", "GARBAGE_ARGS with a Reply chunk",
	  reply_chunk_rpc_refuses, 0, 0 },
	{ "reply-bad-handle", "RFC 8166 4.5.3",
	  "a Reply chunk with a handle that is not registered", bad_handle, 0, CF_OWN_CONN },
};

const struct cf_group cf_group_reply = { "reply", 1201, cases, rn_array_size(cases) };

/* SPDX-License-Identifier: BSD-2-Clause */
/* Long Calls: position-zero Read chunks, RFC 8166 sections 3.5.3 and 4.2.4. */
#include <string.h>

#include "lib/util.h"
#include "tools/conform/nfs3.h"

#define NAME "position-zero"

/* Uses GETATTR, as it is longer than NULL's 40 bytes and has results. */
static bool zero_long_getattr(struct cf_test *t, unsigned nsegs)
{
	struct cf_call *c = cf3_getattr(t, &t->run->scratch);

	if (!cf_make_long(t, c, nsegs))
		return false;
	struct cf_reply *r = cf_ask(t, c);
	return r && cf3_status(t, r, CF3_OK);
}

static void zero_segments(struct cf_test *t)
{
	zero_long_getattr(t, t->arg);
}

static void zero_null_call(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);

	if (cf_make_long(t, c, 1) && cf_ask(t, c))
		cf_alive(t);
}

/* Uses tiny segments, so that the header words of the call come in pieces. */
static void zero_odd_segments(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);
	static const uint32_t seg[] = { 1, 3, 2, 5, 1, 1, 11, 7, 6, 3 }; /* 40 bytes */
	uint32_t at = 0;

	for (size_t i = 0; i < rn_array_size(seg); i++) {
		struct cf_window *w = cf_window_new(t->conn, seg[i]);
		if (!w)
			return;
		memcpy(w->data, c->rpc.base + at, seg[i]);
		at += seg[i];
		cf_add_read(&c->lists, 0, cf_window_seg(w, 0, seg[i]));
	}
	c->proc = CF_NOMSG;
	if (cf_ask(t, c))
		cf_alive(t);
}

/* Puts empty segments before, between and behind the others. */
static void empty_segments(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);
	struct cf_window *w = cf_window_new(t->conn, 40);

	if (!w)
		return;
	memcpy(w->data, c->rpc.base, 40);
	cf_add_read(&c->lists, 0, cf_window_seg(w, 0, 0));
	cf_add_read(&c->lists, 0, cf_window_seg(w, 0, 20));
	cf_add_read(&c->lists, 0, cf_window_seg(w, 20, 0));
	cf_add_read(&c->lists, 0, cf_window_seg(w, 20, 20));
	cf_add_read(&c->lists, 0, cf_window_seg(w, 40, 0));
	c->proc = CF_NOMSG;
	if (cf_ask(t, c))
		cf_alive(t);
}

/* WRITE with its data unreduced in the position-zero chunk, where eligibility does not matter. */
static void write_unreduced(struct cf_test *t)
{
	struct cf_fh fh;
	uint32_t len = t->arg;
	uint8_t *data = cf_alloc(t, len);

	if (!cf3_make_file(t, NAME, 0, &fh))
		return;
	cf_fill_pattern(data, 31, len);
	struct cf_call *c = cf3_write(t, &fh, 0, len, data);
	if (!cf_make_long(t, c, 2))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (r && cf3_status(t, r, CF3_OK))
		cf3_file_is(t, &fh, data, len);
}

/* The call in a position-zero chunk, its data in a chunk of its own. */
static void zero_write_reduced(struct cf_test *t)
{
	struct cf_fh fh;
	uint8_t data[3001];

	if (!cf3_make_file(t, NAME, 0, &fh))
		return;
	cf_fill_pattern(data, 31, sizeof(data));
	struct cf_call *c = cf3_write(t, &fh, 0, sizeof(data), NULL);
	if (!cf_reduce(t, c, data, sizeof(data), t->arg) || !cf_make_long(t, c, t->arg))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (r && cf3_status(t, r, CF3_OK))
		cf3_file_is(t, &fh, data, sizeof(data));
}

static void symlink_reduced(struct cf_test *t)
{
	char text[99];

	memset(text, 'y', sizeof(text));
	if (!cf_ask(t, cf3_remove(t, &t->run->scratch, "zero-link")))
		return;
	struct cf_call *c = cf3_symlink(t, &t->run->scratch, "zero-link", NULL, sizeof(text));
	if (!cf_reduce(t, c, text, sizeof(text), 1) || !cf_make_long(t, c, 1))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (r && cf3_status(t, r, CF3_OK))
		cf_alive(t);
}

/* Uses a SYMLINK whose path exceeds 1024 bytes, as no LOOKUP can have such a long name. The message
 * would not fit inline, and only the path is DDP-eligible. */
static void longer_than_inline(struct cf_test *t)
{
	struct cf_conn_options o = { .no_private = true };
	char text[1021];
	struct cf_fh fh;
	uint32_t len;

	memset(text, 'z', sizeof(text));
	if (!cf_open(t, &o) || !cf_ask(t, cf3_remove(t, &t->run->scratch, "long-link")))
		return;
	struct cf_call *c = cf3_symlink(t, &t->run->scratch, "long-link", text, sizeof(text));
	if (!cf_make_long(t, c, 3))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (!r || !cf3_status(t, r, CF3_OK))
		return;
	r = cf_ask(t, cf3_lookup(t, &t->run->scratch, "long-link"));
	if (!r || !cf3_status(t, r, CF3_OK))
		return;
	cf_get_fh(&r->x, &fh);
	c = cf3_readlink(t, &fh);
	if (!cf_offer_reply(t, c, 2048, 1))
		return;
	r = cf_ask(t, c);
	if (!r || !cf3_status(t, r, CF3_OK))
		return;
	cf3_skip_post_attr(&r->x);
	const uint8_t *p = xdr_get_opaque(&r->x, 2048, &len);
	if (!p || len != sizeof(text) || memcmp(p, text, len) != 0)
		cf_fail(t, "the text of the link", "%u bytes of %zu", len, sizeof(text));
}

/* ---- what must be refused ---------------------------------------------------------------------
 */

/* Expects a refusal, no effect of the call and a working connection. */
static void refused_call(struct cf_test *t, struct cf_call *c)
{
	if (cf_refused(t, c))
		cf_alive(t);
}

/* Message with two payload streams: the inline one and the chunk's. */
static void under_msg(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);

	if (!cf_make_long(t, c, 1))
		return;
	c->proc = CF_MSG;
	struct cf_reply *r = cf_ask_any(t, c);
	if (r && cf_expect_violation(t, r))
		cf_alive(t);
}

static void under_msg_with_more(struct cf_test *t)
{
	struct cf_fh fh;
	uint64_t size;
	uint8_t data[100] = { 1 };

	if (!cf3_make_file(t, NAME, 0, &fh))
		return;
	struct cf_call *c = cf3_write(t, &fh, 0, sizeof(data), NULL);
	if (!cf_reduce(t, c, data, sizeof(data), 1) || !cf_make_long(t, c, 1))
		return;
	c->proc = CF_MSG;
	struct cf_reply *r = cf_ask_any(t, c);
	if (!r || !cf_expect_violation(t, r) || !cf3_file_size(t, &fh, &size))
		return;
	if (size)
		cf_fail(t, "a refused WRITE does nothing", "%llu bytes were written",
			(unsigned long long)size);
}

static void no_lists(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);

	c->proc = CF_NOMSG;
	refused_call(t, c);
}

/* RDMA_NOMSG with empty lists and a whole call behind them, where nothing may be. */
static void inline_call(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);
	uint8_t *msg = cf_alloc(t, CF_INLINE_MAX);

	size_t len = cf_call_encode(c, msg);
	msg[15] = CF_NOMSG;
	if (cf_refused_bytes(t, msg, len, c->xid))
		cf_alive(t);
}

static void only_other_position(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);
	static const uint8_t data[100];

	c->proc = CF_NOMSG;
	if (cf_reduce(t, c, data, sizeof(data), 1))
		refused_call(t, c);
}

static void only_write_list(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);

	c->proc = CF_NOMSG;
	if (cf_offer_write(t, c, 4096, 1))
		refused_call(t, c);
}

static void only_reply_chunk(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);

	c->proc = CF_NOMSG;
	if (cf_offer_reply(t, c, 4096, 1))
		refused_call(t, c);
}

static void zero_nomsg_empty(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);
	struct cf_window *w = cf_window_new(t->conn, 64);

	if (!w)
		return;
	c->proc = CF_NOMSG;
	cf_add_read(&c->lists, 0, cf_window_seg(w, 0, 0));
	refused_call(t, c);
}

/* Too short to be a call: any answer is accepted, but the server must go on and must not act. */
static void zero_call_cut(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);
	struct cf_window *w = cf_window_new(t->conn, 64);

	if (!w)
		return;
	memcpy(w->data, c->rpc.base, 40);
	c->proc = CF_NOMSG;
	cf_add_read(&c->lists, 0, cf_window_seg(w, 0, t->arg));
	if (cf_send(t, c))
		cf_not_carried_out(t, c->xid);
}

/*
 * Sections 4.2.1 and 4.5.2 permit ERR_CHUNK, or taking the transport's xid and ignoring the other.
 */
static void zero_two_xids(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);

	xdr_patch_u32(&c->rpc, 0, c->xid ^ 0x01000000);
	if (!cf_make_long(t, c, 1) || !cf_send(t, c))
		return;
	struct cf_reply *r = cf_next(t);
	if (!r)
		return;
	if (r->h.xid != c->xid) {
		cf_fail(t, "an answer with the transport header's xid", "%08x, not %08x", r->h.xid,
			c->xid);
		return;
	}
	cf_alive(t);
}

#define SEGMENTS(n)                                                                                \
	{                                                                                          \
		"zero-segments-" #n, "RFC 8166 3.5.3", "a Long Call in " #n " segment(s)",         \
			zero_segments, n, 0                                                        \
	}
#define CUT(n)                                                                                     \
	{                                                                                          \
		"zero-cut-" #n, "RFC 8166 4.5.2",                                                  \
			"a Long Call of " #n " bytes is not carried out", zero_call_cut, n, 0      \
	}

static const struct cf_case cases[] = {
	{ "zero-null", "RFC 8166 3.5.3", "a NULL call by a position-zero chunk", zero_null_call, 0,
	  0 },
	SEGMENTS(1),
	SEGMENTS(2),
	SEGMENTS(3),
	SEGMENTS(8),
	SEGMENTS(16),
	{ "zero-odd-segments", "RFC 8166 3.4.4", "segments of odd lengths", zero_odd_segments, 0,
	  0 },
	{ "zero-empty-segments", "RFC 8166 3.4.3", "empty segments among others", empty_segments, 0,
	  0 },
	{ "zero-write-512", "RFC 8166 3.5.3", "WRITE with its data in the position-zero chunk",
	  write_unreduced, 512, 0 },
	{ "zero-write-odd", "RFC 8166 3.5.3", "the same with data of odd length", write_unreduced,
	  513, 0 },
	{ "zero-write-65536", "RFC 8166 3.5.3", "the same with 64 KiB", write_unreduced, 65536, 0 },
	{ "zero-further-1", "RFC 8166 3.5.3", "position zero and a further Read chunk",
	  zero_write_reduced, 1, 0 },
	{ "zero-further-8", "RFC 8166 3.5.3", "the same, eight segments each", zero_write_reduced,
	  8, 0 },
	{ "zero-symlink", "RFC 8166 3.5.3", "SYMLINK: position zero, and its path by a chunk",
	  symlink_reduced, 0, 0 },
	{ "zero-long", "RFC 8166 3.5.3", "a call longer than the threshold", longer_than_inline, 0,
	  CF_OWN_CONN },
	{ "zero-under-msg", "RFC 8166 4.5.2", "a position-zero chunk under RDMA_MSG is refused",
	  under_msg, 0, 0 },
	{ "zero-under-msg-more", "RFC 8166 4.5.2", "the same with a further chunk",
	  under_msg_with_more, 0, 0 },
	{ "nomsg-no-lists", "RFC 8166 4.5.2", "RDMA_NOMSG without any list: ERR_CHUNK", no_lists, 0,
	  0 },
	{ "nomsg-inline-call", "RFC 8166 4.2.4", "RDMA_NOMSG with its call inline: ERR_CHUNK",
	  inline_call, 0, 0 },
	{ "nomsg-other-position", "RFC 8166 4.2.4",
	  "RDMA_NOMSG with a Read chunk elsewhere only: ERR_CHUNK", only_other_position, 0, 0 },
	{ "nomsg-write-list", "RFC 8166 4.2.4", "RDMA_NOMSG with a Write list only: ERR_CHUNK",
	  only_write_list, 0, 0 },
	{ "nomsg-reply-chunk", "RFC 8166 4.2.4", "RDMA_NOMSG with a Reply chunk only: ERR_CHUNK",
	  only_reply_chunk, 0, 0 },
	{ "nomsg-empty", "RFC 8166 4.2.4", "RDMA_NOMSG with an empty chunk: ERR_CHUNK",
	  zero_nomsg_empty, 0, 0 },
	CUT(4),
	CUT(8),
	CUT(24),
	CUT(39),
	{ "zero-two-xids", "RFC 8166 4.5.2", "a Long Call with another xid than its header",
	  zero_two_xids, 0, 0 },
};

const struct cf_group cf_group_zero = { "zero", 401, cases, rn_array_size(cases) };

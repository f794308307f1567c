/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Write lists and Reply chunks of many segments, absurd counts and lengths, and lists that end
 * early (RFC 8166 sections 3.4.4, 4.3 and 4.5.2, RFC 8267 section 6.4.2).
 */
#include <string.h>

#include "lib/util.h"
#include "tools/conform/conform_check.h"
#include "tools/conform/nfs3.h"

#define LEN 1000u

/* ---- many -------------------------------------------------------------------------------------
 */

/* Accepts ERR_CHUNK or GARBAGE_ARGS if the call may exceed the server's limits; else the reply must
 * be right. */
static void right_or_refused(struct cf_test *t, struct cf_call *c, bool by_write_chunk)
{
	struct cf3_read_result got;
	struct cf_reply *r = cf_ask_any(t, c);

	if (!r)
		return;
	if (!cf_is_refusal(r)) {
		if (!cf3_read_result(t, r, by_write_chunk, &got))
			return;
		if (by_write_chunk && !cf_chunk_has_pattern(t, &c->lists.write[0],
							    &r->h.lists.write[0], 0, got.count))
			return;
	}
	cf_alive(t);
}

static void write_segments(struct cf_test *t)
{
	struct cf_fh fh;

	if (!cf3_make_file(t, "limits", LEN, &fh))
		return;
	struct cf_call *c = cf3_read(t, &fh, 0, LEN);
	if (cf_offer_write(t, c, LEN, t->arg))
		right_or_refused(t, c, true);
}

static void write_chunks(struct cf_test *t)
{
	struct cf_fh fh;

	if (!cf3_make_file(t, "limits", LEN, &fh))
		return;
	struct cf_call *c = cf3_read(t, &fh, 0, LEN);
	for (long i = 0; i < t->arg; i++)
		if (!cf_offer_write(t, c, LEN, 1))
			return;
	right_or_refused(t, c, true);
}

static void reply_segments(struct cf_test *t)
{
	struct cf_fh fh;

	if (!cf3_make_file(t, "limits", LEN, &fh))
		return;
	struct cf_call *c = cf3_read(t, &fh, 0, LEN);
	if (cf_offer_reply(t, c, 4096, t->arg))
		right_or_refused(t, c, false);
}

/* ---- large lengths ----------------------------------------------------------------------------
 */

/* Segments that claim far more memory than there is; the data fit into the real memory. */
static void claims_too_much(struct cf_test *t)
{
	struct cf_window *w = cf_window_new(t->conn, 4096);
	struct cf_fh fh;

	if (!w || !cf3_make_file(t, "limits", LEN, &fh))
		return;
	struct cf_call *c = cf3_read(t, &fh, 0, LEN);
	struct cf_chunk *chunk = t->arg & 1 ? cf_add_reply(&c->lists) : cf_add_write(&c->lists);
	struct cf_seg seg = cf_window_seg(w, 0, 4096);
	for (int i = 0; i < (t->arg & 2 ? 5 : 1); i++) {
		seg.length = UINT32_MAX - (i & 1);
		cf_add_seg(chunk, seg);
	}
	right_or_refused(t, c, !(t->arg & 1));
}

/* Segment whose end is beyond 2^64, so that it has no valid address. */
static void wraps(struct cf_test *t)
{
	struct cf_window *w = cf_window_new(t->conn, 4096);
	struct cf_fh fh;

	if (!w || !cf3_make_file(t, "limits", LEN, &fh))
		return;
	struct cf_call *c = cf3_read(t, &fh, 0, LEN);
	struct cf_seg seg = cf_window_seg(w, 0, 4096);
	seg.offset = UINT64_MAX - 15;
	cf_add_seg(cf_add_write(&c->lists), seg);
	if (!cf_refused_or_closed(t, c))
		return;
	if (!cf_window_untouched(w, 0, 4096))
		cf_fail(t, "memory that was not named is untouched", "it was written");
	else
		cf_server_alive(t);
}

/* ---- lists that cannot go back ----------------------------------------------------------------
 */

/* The client accepts 1024 bytes but sends more: no reply header can hold these lists. */
static void no_room_for_lists(struct cf_test *t)
{
	struct cf_conn_options o = cf_default_options(t->run);
	uint8_t private[CF_PRIVATE_SIZE];

	cf_private_encode(private, false, 4096, CF_INLINE_MIN);
	o.private_data = private;
	o.private_len = sizeof(private);
	o.recv_size = CF_INLINE_MIN;
	if (!cf_open(t, &o))
		return;
	if (t->conn->call_inline < 2048) {
		cf_skip(t, "the server takes no messages longer than %u bytes",
			t->conn->call_inline);
		return;
	}
	struct cf_call *c = cf3_getattr(t, &t->run->scratch);
	if (!cf_offer_write(t, c, LEN, 32) || !cf_offer_reply(t, c, 4096, 32))
		return;
	struct cf_reply *r = cf_ask_any(t, c);
	if (r && cf_expect_err_chunk(t, r))
		cf_alive(t);
}

/* ---- absurd counts, lists that end early ------------------------------------------------------
 */

/* Encodes a call with an empty Read list and with lists given word by word. */
static void limits_call_begin(struct cf_test *t, struct xdr_out *x, uint8_t *msg, size_t size,
			      uint32_t *xid)
{
	*xid = cf_xid(t);
	xdr_out_init(x, msg, size);
	cf_put_fixed(x, *xid, CF_VERSION, 32, CF_MSG);
	xdr_put_u32(x, 0);
}

static void limits_call_end(struct xdr_out *x, const struct cf_call *c, uint32_t xid)
{
	xdr_put_u32(x, xid);
	xdr_put_fixed(x, c->rpc.base + 4, xdr_out_pos(&c->rpc) - 4);
}

/* Low bit of t->arg: wrong count in the Reply chunk instead of a Write chunk. */
static void absurd_count(struct cf_test *t)
{
	static const uint32_t counts[] = { UINT32_MAX, 0x10000001, 0x40000000, 1000 };
	struct cf_window *w = cf_window_new(t->conn, 64);
	uint8_t msg[512];
	struct xdr_out x;
	uint32_t xid;

	if (!w)
		return;
	struct cf_seg seg = cf_window_seg(w, 0, 64);
	limits_call_begin(t, &x, msg, sizeof(msg), &xid);
	if (t->arg & 1)
		xdr_put_u32(&x, 0);
	xdr_put_u32(&x, 1);
	xdr_put_u32(&x, counts[t->arg >> 1]);
	cf_put_seg(&x, &seg);
	xdr_put_u32(&x, 0);
	xdr_put_u32(&x, 0);
	limits_call_end(&x, cf3_null(t), xid);
	if (cf_refused_bytes(t, msg, xdr_out_pos(&x), xid))
		cf_alive(t);
}

/* Valid message, cut within its Write list and within its Reply chunk. */
static void limits_call_cut(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);
	uint8_t *msg = cf_alloc(t, CF_INLINE_MAX);

	if (!cf_offer_write(t, c, 64, 2) || !cf_offer_reply(t, c, 64, 2))
		return;
	cf_call_encode(c, msg);
	/* 4 words, Read list 1; Write list 1 + 1 + 8 + 1; Reply chunk 1 + 1 + 8. */
	for (unsigned words = 7; words < 26; words += 3)
		if (!cf_refused_bytes(t, msg, 4 * words, c->xid))
			return;
	cf_alive(t);
}

/* Optional-data mark that is neither 0 nor 1 (RFC 4506 sections 4.4 and 4.19). */
static void bad_mark(struct cf_test *t)
{
	uint8_t msg[512];
	struct xdr_out x;
	uint32_t xid;

	limits_call_begin(t, &x, msg, sizeof(msg), &xid);
	xdr_put_u32(&x, t->arg ? 0 : 2);
	if (!t->arg) {
		xdr_put_u32(&x, 0);
		xdr_put_u32(&x, 0);
	}
	xdr_put_u32(&x, t->arg ? 2 : 0);
	xdr_put_u32(&x, 0);
	limits_call_end(&x, cf3_null(t), xid);
	if (cf_refused_bytes(t, msg, xdr_out_pos(&x), xid))
		cf_alive(t);
}

#define COUNT(i, name, title)                                                                      \
	{ "limits-write-count-" name,                                                              \
	  "RFC 8166 4.5.2",                                                                        \
	  "a Write chunk of " title,                                                               \
	  absurd_count,                                                                            \
	  2 * (i),                                                                                 \
	  0 },                                                                                     \
	{                                                                                          \
		"limits-reply-count-" name, "RFC 8166 4.5.2", "a Reply chunk of " title,           \
			absurd_count, 2 * (i) + 1, 0                                               \
	}

static const struct cf_case cases[] = {
	{ "limits-write-17", "RFC 8267 6.4.2", "a Write chunk of 17 segments: right, or refused",
	  write_segments, 17, 0 },
	{ "limits-write-32", "RFC 8267 6.4.2", "a Write chunk of 32 segments: right, or refused",
	  write_segments, 32, 0 },
	{ "limits-chunks-4", "RFC 8267 6.4.2", "four Write chunks for one READ: right, or refused",
	  write_chunks, 4, 0 },
	{ "limits-chunks-16", "RFC 8267 6.4.2", "sixteen Write chunks: right, or refused",
	  write_chunks, 16, 0 },
	{ "limits-reply-17", "RFC 8267 6.4.2", "a Reply chunk of 17 segments: right, or refused",
	  reply_segments, 17, 0 },
	{ "limits-reply-32", "RFC 8267 6.4.2", "a Reply chunk of 32 segments: right, or refused",
	  reply_segments, 32, 0 },
	{ "limits-write-length", "RFC 8166 3.4.4", "a Write segment that claims 2^32-1 bytes",
	  claims_too_much, 0, 0 },
	{ "limits-reply-length", "RFC 8166 3.4.4", "a Reply segment that claims 2^32-1 bytes",
	  claims_too_much, 1, 0 },
	{ "limits-write-sum", "RFC 8166 3.4.4", "a Write chunk whose length is above 2^32",
	  claims_too_much, 2, 0 },
	{ "limits-reply-sum", "RFC 8166 3.4.4", "a Reply chunk whose length is above 2^32",
	  claims_too_much, 3, 0 },
	{ "limits-wrap", "RFC 8166 4.5.3", "a segment that ends beyond 2^64", wraps, 0, 0 },
	{ "limits-lists-too-long", "RFC 8166 4.5.3",
	  "lists that no reply header of 1024 bytes can return: ERR_CHUNK", no_room_for_lists, 0,
	  CF_OWN_CONN },
	COUNT(0, "2-32", "2^32-1 segments"),
	COUNT(1, "2-28", "2^28+1 segments"),
	COUNT(2, "2-30", "2^30 segments"),
	COUNT(3, "1000", "1000 segments, of which one is there"),
	{ "limits-cut", "RFC 8166 4.5.2", "lists that end in the middle", limits_call_cut, 0, 0 },
	{ "limits-write-mark", "RFC 8166 4.5.2", "a Write list's mark that is neither 0 nor 1",
	  bad_mark, 0, 0 },
	{ "limits-reply-mark", "RFC 8166 4.5.2", "a Reply chunk's mark that is neither 0 nor 1",
	  bad_mark, 1, 0 },
};

const struct cf_group cf_group_limits = { "limits", 2201, cases, rn_array_size(cases) };

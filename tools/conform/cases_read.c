/* SPDX-License-Identifier: BSD-2-Clause */
/* Valid Read chunks, in NFSv3 WRITE and SYMLINK: RFC 8166 sections 3.4.4 and 3.4.5. */
#include <string.h>

#include "lib/util.h"
#include "tools/conform/nfs3.h"

#define NAME "read-chunk"

/* WRITE of len bytes in a chunk with the given segment lengths; bytes beyond len are padding. The
 * file must then hold exactly the data. */
static void write_by(struct cf_test *t, uint32_t len, const uint32_t *seg, unsigned nsegs)
{
	struct cf_fh fh;
	uint8_t *data = cf_alloc(t, len + 64);
	uint64_t size;
	uint32_t at = 0;

	if (!cf3_make_file(t, NAME, 0, &fh))
		return;
	cf_fill_pattern(data, 1000, len);
	struct cf_call *c = cf3_write(t, &fh, 0, len, NULL);
	uint32_t position = cf_position(c);
	for (unsigned i = 0; i < nsegs; i++) {
		struct cf_window *w = cf_window_new(t->conn, seg[i]);
		if (!w) {
			cf_skip(t, "this machine's device registers no more memory");
			return;
		}
		memcpy(w->data, data + at, seg[i]);
		at += seg[i];
		cf_add_read(&c->lists, position, cf_window_seg(w, 0, seg[i]));
	}
	struct cf_reply *r = cf_ask(t, c);
	if (!r || !cf3_status(t, r, CF3_OK))
		return;
	cf3_skip_wcc(&r->x);
	uint32_t count = xdr_get_u32(&r->x);
	if (count != len)
		cf_fail(t, "a WRITE of all bytes", "%u of %u", count, len);
	if (!cf3_file_size(t, &fh, &size))
		return;
	if (size != len)
		cf_fail(t, "pad is not part of the data: the file has what the count says",
			"%llu bytes, not %u", (unsigned long long)size, len);
	cf3_file_is(t, &fh, data, len);
}

static void read_chunk_segments(struct cf_test *t)
{
	uint32_t seg[16], len = 0;

	for (int i = 0; i < t->arg; i++)
		len += seg[i] = 512 + 4 * i;
	write_by(t, len, seg, t->arg);
}

/* Segments may have any boundaries (section 3.4.4): none of these is aligned. */
static void read_chunk_odd_segments(struct cf_test *t)
{
	static const uint32_t seg[] = {
		1, 3, 5, 7, 2, 1021, 333, 1, 1, 77, 999, 13, 511, 6, 4, 17
	};
	uint32_t len = 0;

	for (size_t i = 0; i < rn_array_size(seg); i++)
		len += seg[i];
	write_by(t, len, seg, rn_array_size(seg));
}

static void one_byte_segments(struct cf_test *t)
{
	static const uint32_t seg[16] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };

	write_by(t, 16, seg, 16);
}

static void read_chunk_no_pad(struct cf_test *t)
{
	uint32_t seg = t->arg;

	write_by(t, seg, &seg, 1);
}

static void pad_in_segment(struct cf_test *t)
{
	uint32_t seg = t->arg + rn_xdr_pad(t->arg);

	write_by(t, t->arg, &seg, 1);
}

static void pad_of_its_own(struct cf_test *t)
{
	uint32_t seg[2] = { t->arg, rn_xdr_pad(t->arg) };

	write_by(t, t->arg, seg, 2);
}

static void empty_segment(struct cf_test *t)
{
	static const uint32_t seg[][4] = {
		{ 0, 700, 900, 400 }, { 700, 0, 900, 400 }, { 700, 900, 400, 0 }, { 0, 0, 2000, 0 }
	};

	write_by(t, 2000, seg[t->arg], 4);
}

/* WRITE of no bytes, with an empty chunk. */
static void read_chunk_empty(struct cf_test *t)
{
	static const uint32_t seg[1] = { 0 };

	write_by(t, 0, seg, 1);
}

/* WRITE of the largest size that the server takes, wtmax of FSINFO. */
static void read_chunk_largest(struct cf_test *t)
{
	uint32_t seg[16], part;
	struct cf_reply *r = cf_ask(t, cf3_fsinfo(t, &t->run->scratch));

	if (!r || !cf3_status(t, r, CF3_OK))
		return;
	cf3_skip_post_attr(&r->x);
	xdr_skip(&r->x, 12); /* rtmax, rtpref, rtmult */
	uint32_t max = rn_min(xdr_get_u32(&r->x), 1u << 20);
	part = max / t->arg;
	for (int i = 0; i < t->arg; i++)
		seg[i] = i == t->arg - 1 ? max - part * (t->arg - 1) : part;
	write_by(t, max, seg, t->arg);
}

/* Segments of one memory region. */
static void same_handle(struct cf_test *t)
{
	struct cf_fh fh;
	struct cf_window *w = cf_window_new(t->conn, 3000);

	if (!w || !cf3_make_file(t, NAME, 0, &fh))
		return;
	cf_fill_pattern(w->data, 7, 3000);
	struct cf_call *c = cf3_write(t, &fh, 0, 3000, NULL);
	for (uint32_t at = 0; at < 3000; at += 1000)
		cf_add_read(&c->lists, cf_position(c), cf_window_seg(w, at, 1000));
	struct cf_reply *r = cf_ask(t, c);
	if (r && cf3_status(t, r, CF3_OK))
		cf3_file_is(t, &fh, w->data, 3000);
}

/* Segments are joined in list order, which may differ from address order (section 3.4.5). */
static void list_order(struct cf_test *t)
{
	struct cf_fh fh;
	struct cf_window *w = cf_window_new(t->conn, 3000);
	uint8_t *want = cf_alloc(t, 3000);

	if (!w || !cf3_make_file(t, NAME, 0, &fh))
		return;
	cf_fill_pattern(w->data, 7, 3000);
	struct cf_call *c = cf3_write(t, &fh, 0, 3000, NULL);
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t at = 2000 - i * 1000;
		cf_add_read(&c->lists, cf_position(c), cf_window_seg(w, at, 1000));
		memcpy(want + i * 1000, w->data + at, 1000);
	}
	struct cf_reply *r = cf_ask(t, c);
	if (r && cf3_status(t, r, CF3_OK))
		cf3_file_is(t, &fh, want, 3000);
}

/* SYMLINK's path is the other DDP-eligible argument (RFC 8267 section 4). */
static void symlink_path(struct cf_test *t)
{
	char text[256];
	struct cf_call *c;
	uint32_t len, got;

	memset(text, 'x', sizeof(text));
	len = t->arg;
	if (!cf_ask(t, cf3_remove(t, &t->run->scratch, "link")))
		return;
	c = cf3_symlink(t, &t->run->scratch, "link", NULL, len);
	if (!cf_reduce(t, c, text, len, 2))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (!r || !cf3_status(t, r, CF3_OK))
		return;
	struct cf_fh fh;
	r = cf_ask(t, cf3_lookup(t, &t->run->scratch, "link"));
	if (!r || !cf3_status(t, r, CF3_OK))
		return;
	cf_get_fh(&r->x, &fh);
	r = cf_ask(t, cf3_readlink(t, &fh));
	if (!r || !cf3_status(t, r, CF3_OK))
		return;
	cf3_skip_post_attr(&r->x);
	const uint8_t *p = xdr_get_opaque(&r->x, 1024, &got);
	if (!p || got != len || memcmp(p, text, len) != 0)
		cf_fail(t, "the link's text as it was in the chunk", "%u bytes of %u", got, len);
}

/* Chunks of many calls in flight must not mix. */
static void read_chunks_at_once(struct cf_test *t)
{
	enum { N = 8, LEN = 4097 };
	struct cf_fh fh;
	struct cf_call *c[N];
	uint8_t *data = cf_alloc(t, N * LEN);
	bool seen[N] = { false };

	if (!cf3_make_file(t, NAME, 0, &fh) || !cf_alive(t))
		return;
	cf_fill_pattern(data, 3, N * LEN);
	for (int i = 0; i < N; i++) {
		c[i] = cf3_write(t, &fh, i * LEN, LEN, NULL);
		if (!cf_reduce(t, c[i], data + i * LEN, LEN, 3) || !cf_send(t, c[i]))
			return;
	}
	for (int n = 0; n < N; n++) {
		struct cf_reply *r = cf_next(t);
		int i = 0;
		while (r && i < N && (seen[i] || c[i]->xid != r->h.xid))
			i++;
		if (!r)
			return;
		if (i == N) {
			cf_fail(t, "one answer for each call", "xid %08x", r->h.xid);
			return;
		}
		seen[i] = true;
		if (!cf_answers(t, c[i], r) || !cf_expect_success(t, r) ||
		    !cf3_status(t, r, CF3_OK))
			return;
	}
	cf3_file_is(t, &fh, data, N * LEN);
}

#define SEGMENTS(n)                                                                                \
	{                                                                                          \
		"read-segments-" #n, "RFC 8166 3.4.4", "a Read chunk of " #n " segment(s)",        \
			read_chunk_segments, n, 0                                                  \
	}
#define ODD(n)                                                                                     \
	{ "read-odd-" #n, "RFC 8166 3.4.5.2", #n " bytes without pad", read_chunk_no_pad, n, 0 },  \
		{ "read-pad-" #n,                                                                  \
		  "RFC 8166 3.4.5.2",                                                              \
		  #n " bytes with pad in the last segment",                                        \
		  pad_in_segment,                                                                  \
		  n,                                                                               \
		  0 },                                                                             \
	{                                                                                          \
		"read-pad-own-" #n, "RFC 8166 3.4.5.2",                                            \
			#n " bytes with pad in a segment of its own", pad_of_its_own, n, 0         \
	}

static const struct cf_case cases[] = {
	SEGMENTS(1),
	SEGMENTS(2),
	SEGMENTS(3),
	SEGMENTS(4),
	SEGMENTS(5),
	SEGMENTS(6),
	SEGMENTS(7),
	SEGMENTS(8),
	SEGMENTS(9),
	SEGMENTS(10),
	SEGMENTS(11),
	SEGMENTS(12),
	SEGMENTS(13),
	SEGMENTS(14),
	SEGMENTS(15),
	SEGMENTS(16),
	ODD(1),
	ODD(2),
	ODD(3),
	ODD(4097),
	ODD(4098),
	ODD(4099),
	{ "read-odd-segments", "RFC 8166 3.4.4", "16 segments of odd lengths",
	  read_chunk_odd_segments, 0, 0 },
	{ "read-one-byte-segments", "RFC 8166 3.4.4", "16 segments of one byte", one_byte_segments,
	  0, 0 },
	{ "read-empty-first", "RFC 8166 3.4.3", "an empty segment first", empty_segment, 0, 0 },
	{ "read-empty-middle", "RFC 8166 3.4.3", "an empty segment in the middle", empty_segment, 1,
	  0 },
	{ "read-empty-last", "RFC 8166 3.4.3", "an empty segment last", empty_segment, 2, 0 },
	{ "read-empty-several", "RFC 8166 3.4.3", "several empty segments", empty_segment, 3, 0 },
	{ "read-empty-chunk", "RFC 8166 3.4.3", "a chunk of no bytes for a WRITE of no bytes",
	  read_chunk_empty, 0, 0 },
	{ "read-largest-1", "RFC 8166 3.4.4", "the largest WRITE, one segment", read_chunk_largest,
	  1, 0 },
	{ "read-largest-16", "RFC 8166 3.4.4", "the largest WRITE, 16 segments", read_chunk_largest,
	  16, 0 },
	{ "read-same-handle", "RFC 8166 3.4.4", "segments of one memory region", same_handle, 0,
	  0 },
	{ "read-list-order", "RFC 8166 3.4.5", "segments are put together in list order",
	  list_order, 0, 0 },
	{ "read-symlink", "RFC 8267 4", "SYMLINK's path by a Read chunk", symlink_path, 100, 0 },
	{ "read-symlink-odd", "RFC 8267 4", "SYMLINK's path of odd length, without pad",
	  symlink_path, 123, 0 },
	{ "read-at-once", "RFC 8166 3.4.5.1", "eight calls with Read chunks in flight",
	  read_chunks_at_once, 0, 0 },
};

const struct cf_group cf_group_read = { "read", 301, cases, rn_array_size(cases) };

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Write chunks that work (RFC 8166 sections 3.4.6 and 4.3.2): READ of NFSv3 with Write lists of
 * every shape. Each row of the table is one case: the range to read, the chunks offered and the
 * bytes expected.
 */
#include "lib/util.h"
#include "tools/conform/conform_check.h"
#include "tools/conform/nfs3.h"

#define CHUNKS 3
#define SEGS 18
#define KIB(n) ((n)*1024u)

struct row {
	uint32_t size, off, count;
	uint32_t data; /* bytes expected; a server with a smaller largest READ may send fewer */
	unsigned nchunks;
	uint32_t seg[CHUNKS][SEGS];
	uint32_t skew;
	bool in_line; /* true: the data are in the stream */
};

#define S16(n) n, n, n, n, n, n, n, n, n, n, n, n, n, n, n, n

enum {
	ONE,
	EXACT_TWO,
	FOUR,
	SIXTEEN,
	ODD_SEGS,
	UNALIGNED,
	ZERO_FIRST,
	ZERO_MIDDLE,
	ZERO_LAST,
	BOUNDARY,
	LONGER,
	ONE_BYTE,
	TWO_BYTES,
	THREE_BYTES,
	FIVE_BYTES,
	ODD_SPLIT,
	TINY_SEGS,
	FROM_MIDDLE,
	AT_EOF,
	COUNT_ZERO,
	EMPTY_LIST,
	EMPTY_CHUNK,
	TWO_CHUNKS,
	THREE_CHUNKS,
	EMPTY_THEN_ONE,
	EXTRA_EMPTY,
	BIG_ONE,
	BIG_SIXTEEN,
	BIGGEST,
	ROWS
};

static const struct row rows[ROWS] = {
	[ONE] = { 4096, 0, 4096, 4096, 1, { { 4096, CF_END } }, .skew = 0 },
	[EXACT_TWO] = { 4096, 0, 4096, 4096, 1, { { 3000, 1096, CF_END } }, .skew = 0 },
	[FOUR] = { 4096, 0, 4096, 4096, 1, { { 1024, 1024, 1024, 1024, CF_END } }, .skew = 0 },
	[SIXTEEN] = { 4096, 0, 4096, 4096, 1, { { S16(256), CF_END } }, .skew = 0 },
	[ODD_SEGS] = { 1000, 0, 1000, 1000, 1, { { 1, 7, 13, 979, CF_END } }, .skew = 0 },
	[UNALIGNED] = { 4096, 0, 4096, 4096, 1, { { 2001, 2095, CF_END } }, .skew = 3 },
	[ZERO_FIRST] = { 4096, 0, 4096, 4096, 1, { { 0, 4096, CF_END } }, .skew = 0 },
	[ZERO_MIDDLE] = { 4096, 0, 4096, 4096, 1, { { 2048, 0, 0, 2048, CF_END } }, .skew = 0 },
	[ZERO_LAST] = { 4096, 0, 4096, 4096, 1, { { 4096, 0, CF_END } }, .skew = 0 },
	[BOUNDARY] = { 1000, 0, 4096, 1000, 1, { { 500, 500, 500, 2596, CF_END } }, .skew = 0 },
	[LONGER] = { 1000, 0, 4096, 1000, 1, { { 4096, CF_END } }, .skew = 0 },
	[ONE_BYTE] = { 1, 0, 8, 1, 1, { { 8, CF_END } }, .skew = 0 },
	[TWO_BYTES] = { 2, 0, 8, 2, 1, { { 8, CF_END } }, .skew = 0 },
	[THREE_BYTES] = { 3, 0, 8, 3, 1, { { 8, CF_END } }, .skew = 0 },
	[FIVE_BYTES] = { 5, 0, 5, 5, 1, { { 5, CF_END } }, .skew = 0 },
	[ODD_SPLIT] = { 1001, 0, 1004, 1001, 1, { { 500, 502, 2, CF_END } }, .skew = 0 },
	[TINY_SEGS] = { 15, 0, 16, 15, 1, { { S16(1), CF_END } }, .skew = 0 },
	[FROM_MIDDLE] = { 9000, 4321, 3333, 3333, 1, { { 1111, 2222, CF_END } }, .skew = 0 },
	[AT_EOF] = { 4096, 4096, 100, 0, 1, { { 60, 40, CF_END } }, .skew = 0 },
	[COUNT_ZERO] = { 4096, 0, 0, 0, 1, { { 64, CF_END } }, .skew = 0 },
	[EMPTY_LIST] = { 501, 0, 501, 501, 0, { { CF_END } }, .in_line = true },
	[EMPTY_CHUNK] = { 501, 0, 501, 501, 1, { { CF_END } }, .in_line = true },
	[TWO_CHUNKS] = { 4096,
			 0,
			 4096,
			 4096,
			 2,
			 { { 4096, CF_END }, { 4096, CF_END } },
			 .skew = 0 },
	[THREE_CHUNKS] = { 1000,
			   0,
			   1000,
			   1000,
			   3,
			   { { 600, 400, CF_END }, { 100, CF_END }, { 64, 64, 64, CF_END } },
			   .skew = 0 },
	[EMPTY_THEN_ONE] = { 500,
			     0,
			     500,
			     500,
			     2,
			     { { CF_END }, { 1024, CF_END } },
			     .in_line = true },
	[EXTRA_EMPTY] = { 500, 0, 500, 500, 2, { { 500, CF_END }, { CF_END } }, .skew = 0 },
	[BIG_ONE] = { KIB(64), 0, KIB(64), KIB(64), 1, { { KIB(64), CF_END } }, .skew = 0 },
	[BIG_SIXTEEN] = { KIB(256),
			  0,
			  KIB(256),
			  KIB(256),
			  1,
			  { { S16(KIB(16)), CF_END } },
			  .skew = 0 },
	[BIGGEST] = { KIB(1024) + 1,
		      0,
		      KIB(1024),
		      KIB(1024),
		      1,
		      { { KIB(256), KIB(256), KIB(256), KIB(256), CF_END } },
		      .skew = 0 },
};

/* A longer READ may return less, as a server has a largest READ. */
#define ALWAYS_WHOLE KIB(8)

static bool count_is_right(struct cf_test *t, const struct row *row,
			   const struct cf3_read_result *got)
{
	if (got->count == got->data_len &&
	    (got->count == row->data ||
	     (got->count && got->count < row->data && row->data > ALWAYS_WHOLE)))
		return true;
	return cf_fail(t, "the bytes that are in the file, and their count",
		       "count %u, length %u instead of %u", got->count, got->data_len, row->data);
}

static void check_inline(struct cf_test *t, const struct row *row,
			 const struct cf3_read_result *got)
{
	for (uint32_t i = 0; i < got->count; i++)
		if (got->data[i] != cf_pattern(row->off + i)) {
			cf_fail(t, "the file's bytes in the stream", "byte %u is %02x", i,
				got->data[i]);
			return;
		}
}

static void run_row(struct cf_test *t)
{
	const struct row *row = &rows[t->arg];
	struct cf3_read_result got;
	struct cf_fh fh;

	if (!cf3_make_file(t, "write-chunk", row->size, &fh))
		return;
	struct cf_call *c = cf3_read(t, &fh, row->off, row->count);
	for (unsigned i = 0; i < row->nchunks; i++)
		if (!cf_add_segs(t, cf_add_write(&c->lists), row->seg[i], row->skew))
			return;
	struct cf_reply *r = cf_ask(t, c);
	if (!r || !cf3_read_result(t, r, !row->in_line, &got) || !count_is_right(t, row, &got))
		return;
	if (row->in_line)
		check_inline(t, row, &got);
	else if (!cf_chunk_has_pattern(t, &c->lists.write[0], &r->h.lists.write[0], row->off,
				       got.count))
		return;
	cf_writes_unused(t, r, row->in_line ? 0 : 1);
}

static const struct cf_case cases[] = {
	{ "write-one-segment", "RFC 8166 3.4.6", "READ into a Write chunk of one segment", run_row,
	  ONE, 0 },
	{ "write-two-segments", "RFC 8166 3.4.6", "READ into two segments that it fills exactly",
	  run_row, EXACT_TWO, 0 },
	{ "write-four-segments", "RFC 8166 3.4.6", "READ into four segments", run_row, FOUR, 0 },
	{ "write-sixteen-segments", "RFC 8166 3.4.6", "READ into sixteen segments", run_row,
	  SIXTEEN, 0 },
	{ "write-odd-segments", "RFC 8166 3.4.6", "segments of odd lengths are filled without gaps",
	  run_row, ODD_SEGS, 0 },
	{ "write-unaligned", "RFC 8166 3.4.3", "segments that start at odd addresses", run_row,
	  UNALIGNED, 0 },
	{ "write-zero-first", "RFC 8166 3.4.3", "an empty segment before the one that is used",
	  run_row, ZERO_FIRST, 0 },
	{ "write-zero-middle", "RFC 8166 3.4.3", "two empty segments between others", run_row,
	  ZERO_MIDDLE, 0 },
	{ "write-zero-last", "RFC 8166 3.4.3", "an empty segment at the end", run_row, ZERO_LAST,
	  0 },
	{ "write-boundary", "RFC 8166 3.4.6",
	  "data that end where a segment ends: the rest is empty", run_row, BOUNDARY, 0 },
	{ "write-longer", "RFC 8166 3.4.6",
	  "a chunk longer than the data: the length is the data's", run_row, LONGER, 0 },
	{ "write-pad-3", "RFC 8166 3.4.6.2", "no pad is written behind one byte of data", run_row,
	  ONE_BYTE, 0 },
	{ "write-pad-2", "RFC 8166 3.4.6.2", "no pad is written behind two bytes of data", run_row,
	  TWO_BYTES, 0 },
	{ "write-pad-1", "RFC 8166 3.4.6.2", "no pad is written behind three bytes of data",
	  run_row, THREE_BYTES, 0 },
	{ "write-odd-exact", "RFC 8166 3.4.6.2", "a chunk of five bytes takes five, with no pad",
	  run_row, FIVE_BYTES, 0 },
	{ "write-pad-in-next", "RFC 8166 3.4.6.2", "the pad does not go into the next segment",
	  run_row, ODD_SPLIT, 0 },
	{ "write-tiny-segments", "RFC 8166 3.4.6", "sixteen segments of one byte", run_row,
	  TINY_SEGS, 0 },
	{ "write-from-middle", "RFC 8166 3.4.6", "READ from the middle of a file", run_row,
	  FROM_MIDDLE, 0 },
	{ "write-at-eof", "RFC 8166 3.4.6", "READ at the end of the file: no data, lengths of zero",
	  run_row, AT_EOF, 0 },
	{ "write-count-zero", "RFC 8166 3.4.6", "READ of no bytes: lengths of zero", run_row,
	  COUNT_ZERO, 0 },
	{ "write-empty-list", "RFC 8166 4.3.2.3", "no Write list: the data come in the stream",
	  run_row, EMPTY_LIST, 0 },
	{ "write-empty-chunk", "RFC 8166 4.3.2.3",
	  "an empty Write chunk: the data come in the stream, the chunk comes back empty", run_row,
	  EMPTY_CHUNK, 0 },
	{ "write-two-chunks", "RFC 8166 4.3.2.2", "more chunks than results: the second is unused",
	  run_row, TWO_CHUNKS, 0 },
	{ "write-three-chunks", "RFC 8166 4.3.2.2", "three chunks for one result", run_row,
	  THREE_CHUNKS, 0 },
	{ "write-empty-then-one", "RFC 8166 4.3.2.3",
	  "an empty chunk before another: inline, and both come back unused", run_row,
	  EMPTY_THEN_ONE, 0 },
	{ "write-extra-empty", "RFC 8166 4.3.2.1", "an empty chunk behind the one that is used",
	  run_row, EXTRA_EMPTY, 0 },
	{ "write-64k", "RFC 8166 3.4.6", "64 KiB in one segment", run_row, BIG_ONE, 0 },
	{ "write-256k", "RFC 8166 3.4.6", "256 KiB in sixteen segments", run_row, BIG_SIXTEEN, 0 },
	{ "write-1m", "RFC 8166 3.4.6", "a READ of 1 MiB, or what the server gives at once",
	  run_row, BIGGEST, 0 },
};

const struct cf_group cf_group_write = { "write", 1001, cases, rn_array_size(cases) };

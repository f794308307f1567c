/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Write chunks and NFSv4 COMPOUNDs (RFC 8267 section 6.4): which chunk belongs to which result. A
 * shape says what is offered for the three results of the RFC's own example,
 *	PUTFH LOOKUP READ PUTFH LOOKUP READLINK PUTFH LOOKUP READ,
 * and what becomes of each. t->arg is a shape, and the minor version times 16.
 */
#include <string.h>

#include "lib/util.h"
#include "tools/conform/conform_check.h"
#include "tools/conform/nfs3.h"
#include "tools/conform/nfs4.h"

#define FIRST "v4-first"
#define LINK "v4-link"
#define SECOND "v4-second"
#define FIRST_LEN 1001u
#define SECOND_LEN 502u
#define TEXT "to/somewhere/else"
#define ROOM 1024u

#define MINOR(t) ((uint32_t)(t)->arg >> 4)
#define SHAPE(t) ((t)->arg & 15)

struct three {
	struct cf4_session *s;
	struct cf_fh dir;
};

/* Creates the files and the link, and gets the directory's handle. */
static bool v4_write_set_up(struct cf_test *t, struct three *w)
{
	struct cf_fh fh;

	w->s = cf4_begin(t, MINOR(t));
	return w->s && cf3_make_file(t, FIRST, FIRST_LEN, &fh) &&
	       cf3_make_symlink(t, LINK, TEXT, &fh) && cf3_make_file(t, SECOND, SECOND_LEN, &fh) &&
	       cf4_handle(t, w->s, NULL, &w->dir);
}

static void v4_write_put_lookup(struct three *w, struct cf_call *c, const char *name)
{
	cf4_putfh(c, &w->dir);
	cf4_lookup(c, name);
}

static bool v4_write_found(struct cf_test *t, struct cf_reply *r)
{
	return cf4_op_done(t, r, CF4_PUTFH, CF4_OK) && cf4_op_done(t, r, CF4_LOOKUP, CF4_OK);
}

/* Checks READ's result: in the chunk, or in the stream if chunk is negative. */
static bool read_is(struct cf_test *t, struct cf_call *c, struct cf_reply *r, int chunk,
		    uint32_t len)
{
	struct cf4_read_result got;

	if (!cf4_op_done(t, r, CF4_READ, CF4_OK) || !cf4_read_result(t, r, chunk >= 0, &got))
		return false;
	if (got.len != len)
		return cf_fail(t, "the file's length", "%u bytes instead of %u", got.len, len);
	if (chunk >= 0)
		return cf_chunk_has_pattern(t, &c->lists.write[chunk], &r->h.lists.write[chunk], 0,
					    len);
	for (uint32_t i = 0; i < len; i++)
		if (got.data[i] != cf_pattern(i))
			return cf_fail(t, "the file's bytes in the stream", "byte %u is %02x", i,
				       got.data[i]);
	return true;
}

static bool link_is(struct cf_test *t, struct cf_call *c, struct cf_reply *r, int chunk)
{
	uint32_t len;

	if (!cf4_op_done(t, r, CF4_READLINK, CF4_OK))
		return false;
	if (chunk >= 0) {
		len = xdr_get_u32(&r->x);
		if (r->x.err || len != strlen(TEXT))
			return cf_fail(t, "the text's length", "%u", len);
		return cf_chunk_has(t, &c->lists.write[chunk], &r->h.lists.write[chunk], TEXT, len);
	}
	const uint8_t *p = xdr_get_opaque(&r->x, 4096, &len);
	if (!p || len != strlen(TEXT) || memcmp(p, TEXT, len) != 0)
		return cf_fail(t, "the text in the stream", "something else of %u bytes", len);
	return true;
}

static bool at_end(struct cf_test *t, const struct cf_reply *r)
{
	if (!r->x.err && !r->x.left)
		return true;
	return cf_fail(t, "a COMPOUND reply that decodes to its end", "%zu bytes are left",
		       r->x.left);
}

/* ---- the example ------------------------------------------------------------------------------
 */

/* offered: f a chunk, e an empty chunk. where: chunk of each of the three results, or -1 for
 * inline. */
static const struct shape {
	const char *offered;
	int where[3];
} shapes[] = {
	{ "fff", { 0, 1, 2 } },	   { "fef", { 0, -1, 2 } },  { "f", { 0, -1, -1 } },
	{ "ff", { 0, 1, -1 } },	   { "fffff", { 0, 1, 2 } }, { "", { -1, -1, -1 } },
	{ "eee", { -1, -1, -1 } }, { "eff", { -1, 1, 2 } },  { "ffe", { 0, 1, -1 } },
};

static bool offer_shape(struct cf_test *t, struct cf_call *c, const char *offered)
{
	static const uint32_t lens[][4] = { { ROOM, CF_END }, { 3, 700, ROOM, CF_END } };

	for (unsigned i = 0; offered[i]; i++) {
		struct cf_chunk *chunk = cf_add_write(&c->lists);
		if (offered[i] == 'f' && !cf_add_segs(t, chunk, lens[i % 2], 0))
			return false;
	}
	return true;
}

static void put_three(struct three *w, struct cf_call *c)
{
	v4_write_put_lookup(w, c, FIRST);
	cf4_read(c, 0, ROOM);
	v4_write_put_lookup(w, c, LINK);
	cf4_readlink(c);
	v4_write_put_lookup(w, c, SECOND);
	cf4_read(c, 0, ROOM);
}

static void example(struct cf_test *t)
{
	const struct shape *shape = &shapes[SHAPE(t)];
	struct three w;

	if (!v4_write_set_up(t, &w))
		return;
	struct cf_call *c = cf4_new(t, w.s, "A, B, C");
	put_three(&w, c);
	if (!offer_shape(t, c, shape->offered) || !cf_offer_reply(t, c, 4096, 1))
		return;
	struct cf_reply *r = cf4_ask(t, w.s, c);
	if (r && v4_write_found(t, r) && read_is(t, c, r, shape->where[0], FIRST_LEN) &&
	    v4_write_found(t, r) && link_is(t, c, r, shape->where[1]) && v4_write_found(t, r) &&
	    read_is(t, c, r, shape->where[2], SECOND_LEN) && at_end(t, r))
		cf_writes_unused(t, r, rn_min(strlen(shape->offered), 3));
}

/* The example as a Long Call, and without the Reply chunk. */
static void example_long(struct cf_test *t)
{
	struct three w;

	if (!v4_write_set_up(t, &w))
		return;
	struct cf_call *c = cf4_new(t, w.s, "A, B, C");
	put_three(&w, c);
	if (!offer_shape(t, c, "fff") || !cf_make_long(t, c, 3))
		return;
	struct cf_reply *r = cf4_ask(t, w.s, c);
	if (r && v4_write_found(t, r) && read_is(t, c, r, 0, FIRST_LEN) && v4_write_found(t, r) &&
	    link_is(t, c, r, 1) && v4_write_found(t, r) && read_is(t, c, r, 2, SECOND_LEN))
		at_end(t, r);
}

/* ---- failures ---------------------------------------------------------------------------------
 */

/* The COMPOUND ends with the operation that fails; chunks from it on are returned unused, or as
 * RFC 8267 section 6.4.1 has it, empty: no bytes either way. */
static void fails(struct cf_test *t)
{
	bool later = SHAPE(t);
	struct three w;

	if (!v4_write_set_up(t, &w))
		return;
	struct cf_call *c = cf4_new(t, w.s, NULL);
	if (later) {
		v4_write_put_lookup(&w, c, FIRST);
		cf4_read(c, 0, ROOM);
	}
	cf4_putfh(c, &w.dir);
	cf4_read(c, 0, ROOM); /* fails, as it is a directory */
	v4_write_put_lookup(&w, c, SECOND);
	cf4_read(c, 0, ROOM);
	if (!offer_shape(t, c, "fff"))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (!r || !cf4_results(t, w.s, r, CF4ERR_ISDIR))
		return;
	if (later && !(v4_write_found(t, r) && read_is(t, c, r, 0, FIRST_LEN)))
		return;
	if (cf4_op_done(t, r, CF4_PUTFH, CF4_OK) && cf4_op_done(t, r, CF4_READ, CF4ERR_ISDIR) &&
	    at_end(t, r))
		cf_writes_unused(t, r, later);
}

/* A READ of no bytes takes the first chunk, and the next READ the next one. */
static void reads_nothing(struct cf_test *t)
{
	struct three w;

	if (!v4_write_set_up(t, &w))
		return;
	struct cf_call *c = cf4_new(t, w.s, NULL);
	v4_write_put_lookup(&w, c, FIRST);
	cf4_read(c, FIRST_LEN, ROOM);
	v4_write_put_lookup(&w, c, SECOND);
	cf4_read(c, 0, ROOM);
	if (!offer_shape(t, c, "ff"))
		return;
	struct cf_reply *r = cf4_ask(t, w.s, c);
	if (r && v4_write_found(t, r) && read_is(t, c, r, 0, 0) && v4_write_found(t, r) &&
	    read_is(t, c, r, 1, SECOND_LEN))
		at_end(t, r);
}

static void one_byte_short(struct cf_test *t)
{
	static const uint32_t lens[] = { 500, 500, CF_END };
	struct cf4_read_result got;
	struct three w;

	if (!v4_write_set_up(t, &w))
		return;
	struct cf_call *c = cf4_new(t, w.s, NULL);
	v4_write_put_lookup(&w, c, FIRST);
	cf4_read(c, 0, FIRST_LEN);
	if (!cf_add_segs(t, cf_add_write(&c->lists), lens, 0))
		return;
	struct cf_reply *r = cf_ask_any(t, c);
	if (!r)
		return;
	if (!cf_is_refusal(r) && cf_peek_status(r) == CF4_OK &&
	    (!cf4_results(t, w.s, r, CF4_OK) || !v4_write_found(t, r) ||
	     !cf4_op_done(t, r, CF4_READ, CF4_OK) || !cf4_read_result(t, r, true, &got) ||
	     !cf_chunk_has_pattern(t, &c->lists.write[0], &r->h.lists.write[0], 0, got.len)))
		return;
	cf_alive(t);
}

/* ---- with arguments ---------------------------------------------------------------------------
 */

/* WRITE by a Read chunk and READ into a Write chunk in one COMPOUND. */
static void v4_write_both_ways(struct cf_test *t)
{
	uint8_t data[FIRST_LEN];
	struct three w;

	if (!v4_write_set_up(t, &w))
		return;
	cf_fill_pattern(data, 0, FIRST_LEN);
	struct cf_call *c = cf4_new(t, w.s, NULL);
	v4_write_put_lookup(&w, c, SECOND);
	cf4_write(c, 0, FIRST_LEN, NULL);
	if (!cf_reduce(t, c, data, FIRST_LEN, 3) || !offer_shape(t, c, "f"))
		return;
	cf4_read(c, 0, ROOM);
	cf4_getattr(c);
	struct cf_reply *r = cf4_ask(t, w.s, c);
	if (!r || !v4_write_found(t, r) || !cf4_op_done(t, r, CF4_WRITE, CF4_OK))
		return;
	xdr_skip(&r->x, 4 + 4 + 8);
	if (!read_is(t, c, r, 0, FIRST_LEN) || !cf4_op_done(t, r, CF4_GETATTR, CF4_OK))
		return;
	cf4_skip_getattr(&r->x);
	at_end(t, r);
}

/* One chunk of sixteen segments must be taken (RFC 8267 section 6.4.2). */
static void sixteen(struct cf_test *t)
{
	struct three w;

	if (!v4_write_set_up(t, &w))
		return;
	struct cf_call *c = cf4_new(t, w.s, NULL);
	v4_write_put_lookup(&w, c, FIRST);
	cf4_read(c, 0, FIRST_LEN);
	if (!cf_offer_write(t, c, FIRST_LEN, 16))
		return;
	struct cf_reply *r = cf4_ask(t, w.s, c);
	if (r && v4_write_found(t, r) && read_is(t, c, r, 0, FIRST_LEN))
		at_end(t, r);
}

/* READ with one empty chunk: all of the result comes inline, and the chunk comes back. */
static void one_empty(struct cf_test *t)
{
	struct three w;

	if (!v4_write_set_up(t, &w))
		return;
	struct cf_call *c = cf4_new(t, w.s, NULL);
	v4_write_put_lookup(&w, c, FIRST);
	cf4_read(c, 0, FIRST_LEN);
	cf_add_write(&c->lists);
	struct cf_reply *r = cf4_ask(t, w.s, c);
	if (r && v4_write_found(t, r) && read_is(t, c, r, -1, FIRST_LEN) && at_end(t, r))
		cf_writes_unused(t, r, 0);
}

#define V(minor, shape) ((minor)*16 + (shape))
#define EXAMPLE(minor, shape, name, title)                                                         \
	{                                                                                          \
		"v4" #minor "-chunks-" name, "RFC 8267 6.4.3", "NFSv4." #minor ": " title,         \
			example, V(minor, shape), CF_NFS4                                          \
	}

static const struct cf_case cases[] = {
	EXAMPLE(0, 0, "abc", "the example, chunks A, B and C"),
	EXAMPLE(1, 0, "abc", "the example, chunks A, B and C"),
	EXAMPLE(2, 0, "abc", "the example, chunks A, B and C"),
	EXAMPLE(0, 1, "b-empty", "B is empty: READLINK's text comes inline"),
	EXAMPLE(1, 1, "b-empty", "B is empty: READLINK's text comes inline"),
	{ "v40-chunks-one", "RFC 8267 6.4.1", "more READs than chunks: the others come inline",
	  example, V(0, 2), CF_NFS4 },
	{ "v40-chunks-two", "RFC 8267 6.4.1", "two chunks for three results", example, V(0, 3),
	  CF_NFS4 },
	{ "v40-chunks-five", "RFC 8166 4.3.2.2", "more chunks than READs: the others are unused",
	  example, V(0, 4), CF_NFS4 },
	{ "v40-chunks-none", "RFC 8267 6.4.1", "no Write list: everything inline", example, V(0, 5),
	  CF_NFS4 },
	{ "v40-chunks-empty", "RFC 8267 6.4.1", "three empty chunks: everything inline", example,
	  V(0, 6), CF_NFS4 },
	{ "v40-chunks-a-empty", "RFC 8267 6.4.1", "A is empty: the first READ comes inline",
	  example, V(0, 7), CF_NFS4 },
	{ "v40-chunks-c-empty", "RFC 8267 6.4.1", "C is empty: the last READ comes inline", example,
	  V(0, 8), CF_NFS4 },
	{ "v40-chunks-long-call", "RFC 8166 3.5.3", "the example as a Long Call", example_long,
	  V(0, 0), CF_NFS4 },
	{ "v40-chunks-fails", "RFC 8267 6.4.1", "the first READ fails: no chunk is used", fails,
	  V(0, 0), CF_NFS4 },
	{ "v40-chunks-fails-later", "RFC 8267 6.4.1", "the second READ fails: its chunk is unused",
	  fails, V(0, 1), CF_NFS4 },
	{ "v40-chunks-nothing", "RFC 8267 6.4.1", "a READ of no bytes takes its chunk all the same",
	  reads_nothing, V(0, 0), CF_NFS4 },
	{ "v40-chunks-short", "RFC 8267 3.1", "a READ's chunk is one byte too short",
	  one_byte_short, V(0, 0), CF_NFS4 },
	{ "v40-chunks-both-ways", "RFC 8267 6.4.1",
	  "WRITE from a Read chunk and READ into a Write chunk", v4_write_both_ways, V(0, 0),
	  CF_NFS4 },
	{ "v41-chunks-both-ways", "RFC 8267 6.4.1",
	  "NFSv4.1: WRITE from a Read chunk and READ into a Write chunk", v4_write_both_ways,
	  V(1, 0), CF_NFS4 },
	{ "v40-chunks-sixteen", "RFC 8267 6.4.2", "a Write chunk of sixteen segments", sixteen,
	  V(0, 0), CF_NFS4 },
	{ "v41-chunks-sixteen", "RFC 8267 6.4.2", "NFSv4.1: a Write chunk of sixteen segments",
	  sixteen, V(1, 0), CF_NFS4 },
	{ "v40-chunks-one-empty", "RFC 8267 6.4.1", "one READ and one empty chunk: inline",
	  one_empty, V(0, 0), CF_NFS4 },
	{ "v41-chunks-one-empty", "RFC 8267 6.4.1", "NFSv4.1: one READ and one empty chunk: inline",
	  one_empty, V(1, 0), CF_NFS4 },
};

const struct cf_group cf_group_v4_write = { "v4-write", 1801, cases, rn_array_size(cases) };

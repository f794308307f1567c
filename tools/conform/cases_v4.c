/* SPDX-License-Identifier: BSD-2-Clause */
/* Read chunks in NFSv4 COMPOUNDs: RFC 8267 section 6. t->arg is the minor version, or a size. */
#include <string.h>

#include "lib/util.h"
#include "tools/conform/nfs3.h"
#include "tools/conform/nfs4.h"

#define NAME "compound"
#define LEN_MAX 70000u

struct file4 {
	struct cf4_session *s;
	struct cf_fh fh3, fh;
	uint8_t *data;
};

/* Prepares a session of this minor version, a file, and data to write to it. */
static bool v4_file_begin(struct cf_test *t, uint32_t minor, struct file4 *f)
{
	f->s = cf4_begin(t, minor);
	f->data = cf_alloc(t, LEN_MAX);
	cf_fill_pattern(f->data, 99, LEN_MAX);
	return f->s && cf3_make_file(t, NAME, 10, &f->fh3) && cf4_handle(t, f->s, NAME, &f->fh);
}

static bool put_write(struct cf_test *t, struct cf_call *c, const uint8_t *from, uint32_t off,
		      uint32_t len, unsigned nsegs)
{
	cf4_write(c, off, len, nsegs ? NULL : from);
	return nsegs == 0 || cf_reduce(t, c, from, len, nsegs);
}

static bool wrote(struct cf_test *t, struct cf_reply *r, uint32_t len)
{
	if (!cf4_op_done(t, r, CF4_WRITE, CF4_OK))
		return false;
	uint32_t count = xdr_get_u32(&r->x);
	xdr_skip(&r->x, 4 + 8); /* committed, verifier */
	return count == len || cf_fail(t, "WRITE of all bytes", "%u of %u", count, len);
}

static bool attributes(struct cf_test *t, struct cf_reply *r)
{
	if (!cf4_op_done(t, r, CF4_GETATTR, CF4_OK))
		return false;
	cf4_skip_getattr(&r->x);
	return true;
}

static bool ends(struct cf_test *t, const struct cf_reply *r)
{
	if (r->x.err || r->x.left)
		return cf_fail(t, "results up to the end of the reply", "%zu bytes are left",
			       r->x.left);
	return true;
}

/* PUTFH, WRITE by a chunk, GETATTR. */
static void middle(struct cf_test *t, uint32_t minor, uint32_t len, unsigned nsegs, bool is_long)
{
	struct file4 f;

	if (!v4_file_begin(t, minor, &f))
		return;
	struct cf_call *c = cf4_new(t, f.s, "middle");
	cf4_putfh(c, &f.fh);
	if (!put_write(t, c, f.data, 0, len, nsegs))
		return;
	cf4_getattr(c);
	if (is_long && !cf_make_long(t, c, 2))
		return;
	struct cf_reply *r = cf4_ask(t, f.s, c);
	if (r && cf4_op_done(t, r, CF4_PUTFH, CF4_OK) && wrote(t, r, len) && attributes(t, r) &&
	    ends(t, r))
		cf3_file_is(t, &f.fh3, f.data, rn_min(len, 8192));
}

static void middle_minor(struct cf_test *t)
{
	middle(t, t->arg, 5000, 3, false);
}

static void middle_len(struct cf_test *t)
{
	middle(t, 0, t->arg, t->arg > 1 ? 2 : 1, false);
}

static void middle_segments(struct cf_test *t)
{
	middle(t, 1, 16 * 512 - 1, t->arg, false);
}

static void middle_long(struct cf_test *t)
{
	middle(t, t->arg, 5001, 2, true);
}

/* The pad is in the chunk, and operations follow it. */
static void with_pad(struct cf_test *t)
{
	struct file4 f;
	uint32_t len = t->arg;

	if (!v4_file_begin(t, 0, &f))
		return;
	struct cf_call *c = cf4_new(t, f.s, NULL);
	cf4_putfh(c, &f.fh);
	cf4_write(c, 0, len, NULL);
	if (!cf_reduce(t, c, f.data, len + rn_xdr_pad(len), 1))
		return;
	cf4_getattr(c);
	struct cf_reply *r = cf4_ask(t, f.s, c);
	if (r && cf4_op_done(t, r, CF4_PUTFH, CF4_OK) && wrote(t, r, len) && attributes(t, r) &&
	    ends(t, r))
		cf3_file_is(t, &f.fh3, f.data, len);
}

/* The chunk belongs to the last operation and ends the message. */
static void at_the_end(struct cf_test *t)
{
	struct file4 f;

	if (!v4_file_begin(t, 0, &f))
		return;
	struct cf_call *c = cf4_new(t, f.s, NULL);
	cf4_putfh(c, &f.fh);
	if (!put_write(t, c, f.data, 0, 3001, 1))
		return;
	struct cf_reply *r = cf4_ask(t, f.s, c);
	if (r && cf4_op_done(t, r, CF4_PUTFH, CF4_OK) && wrote(t, r, 3001) && ends(t, r))
		cf3_file_is(t, &f.fh3, f.data, 3001);
}

/* Several WRITEs, each by a chunk. RFC 8267 section 6.4.2 obliges no server to take more than one
 * Read chunk: ERR_CHUNK and GARBAGE_ARGS are answers, too, if nothing is written. */
static bool several(struct cf_test *t, struct file4 *f, const uint32_t *len, const unsigned *nsegs,
		    unsigned n)
{
	struct cf_call *c = cf4_new(t, f->s, NULL);
	uint32_t at = 0;
	uint64_t size;

	cf4_putfh(c, &f->fh);
	for (unsigned i = 0; i < n; i++) {
		if (!put_write(t, c, f->data + at, at, len[i], nsegs[i]))
			return false;
		cf4_getattr(c);
		at += len[i];
	}
	struct cf_reply *r = cf_ask_any(t, c);
	if (!r)
		return false;
	if (r->h.proc == CF_ERROR || r->accept == CF_GARBAGE_ARGS) {
		if (!cf_expect_violation(t, r) || !cf3_file_size(t, &f->fh3, &size))
			return false;
		if (size != 10)
			return cf_fail(t, "a refused COMPOUND does nothing", "it wrote");
		return cf_skip(t, "this server takes one Read chunk, which RFC 8267 6.4.2 allows");
	}
	if (!cf_expect_success(t, r) || !cf4_results(t, f->s, r, CF4_OK) ||
	    !cf4_op_done(t, r, CF4_PUTFH, CF4_OK))
		return false;
	for (unsigned i = 0; i < n; i++)
		if (!wrote(t, r, len[i]) || !attributes(t, r))
			return false;
	return ends(t, r) && cf3_file_is(t, &f->fh3, f->data, at);
}

static void two_chunks(struct cf_test *t)
{
	static const uint32_t len[] = { 3000, 2000 };
	static const unsigned nsegs[] = { 1, 2 };
	struct file4 f;

	if (v4_file_begin(t, t->arg, &f))
		several(t, &f, len, nsegs, 2);
}

static void odd_chunks(struct cf_test *t)
{
	static const uint32_t len[] = { 1001, 2002, 3003, 1 };
	static const unsigned nsegs[] = { 1, 3, 2, 1 };
	struct file4 f;

	if (v4_file_begin(t, 0, &f))
		several(t, &f, len, nsegs, 4);
}

static void chunk_and_inline(struct cf_test *t)
{
	static const uint32_t len[] = { 101, 2002, 103 };
	static const unsigned nsegs[] = { 0, 2, 0 };
	struct file4 f;

	if (v4_file_begin(t, 0, &f))
		several(t, &f, len, nsegs, 3);
}

/* WRITE of no bytes between others: it has no chunk. */
static void nothing_between(struct cf_test *t)
{
	static const uint32_t len[] = { 1001, 0, 77 };
	static const unsigned nsegs[] = { 1, 0, 0 };
	struct file4 f;

	if (v4_file_begin(t, 0, &f))
		several(t, &f, len, nsegs, 3);
}

/* CREATE of a symbolic link: linkdata by a chunk, the name and more behind it. */
static void linkdata(struct cf_test *t)
{
	struct cf4_session *s = cf4_begin(t, t->arg);
	uint32_t len;
	char text[301];
	struct cf_fh dir, fh;

	memset(text, 'l', sizeof(text));
	if (!s || !cf_ask(t, cf3_remove(t, &t->run->scratch, "link4")) ||
	    !cf4_handle(t, s, NULL, &dir))
		return;
	struct cf_call *c = cf4_new(t, s, NULL);
	cf4_putfh(c, &dir);
	cf4_create_link(c, sizeof(text));
	if (!cf_reduce(t, c, text, sizeof(text), 2))
		return;
	cf4_create_link_end(c, "link4");
	cf4_getattr(c);
	struct cf_reply *r = cf4_ask(t, s, c);
	if (!r || !cf4_op_done(t, r, CF4_PUTFH, CF4_OK) || !cf4_op_done(t, r, CF4_CREATE, CF4_OK))
		return;
	r = cf_ask(t, cf3_lookup(t, &t->run->scratch, "link4"));
	if (!r || !cf3_status(t, r, CF3_OK))
		return;
	cf_get_fh(&r->x, &fh);
	r = cf_ask(t, cf3_readlink(t, &fh));
	if (!r || !cf3_status(t, r, CF3_OK))
		return;
	cf3_skip_post_attr(&r->x);
	const uint8_t *p = xdr_get_opaque(&r->x, 1024, &len);
	if (!p || len != sizeof(text) || memcmp(p, text, len) != 0)
		cf_fail(t, "the link's text as it was in the chunk", "%u bytes", len);
}

/* WRITE by a Read chunk and READ by a Write chunk in one COMPOUND. */
static void v4_write_and_read(struct cf_test *t)
{
	struct file4 f;
	struct cf4_read_result got;

	if (!v4_file_begin(t, t->arg, &f))
		return;
	struct cf_call *c = cf4_new(t, f.s, NULL);
	cf4_putfh(c, &f.fh);
	if (!put_write(t, c, f.data, 0, 3001, 1))
		return;
	cf4_read(c, 0, 3001);
	struct cf_window *w = cf_offer_write(t, c, 3001, 2);
	if (!w)
		return;
	struct cf_reply *r = cf4_ask(t, f.s, c);
	if (!r || !cf4_op_done(t, r, CF4_PUTFH, CF4_OK) || !wrote(t, r, 3001) ||
	    !cf4_op_done(t, r, CF4_READ, CF4_OK) || !cf4_read_result(t, r, true, &got) ||
	    !ends(t, r))
		return;
	if (got.len != 3001 || memcmp(w->data, f.data, 3001) != 0)
		cf_fail(t, "READ returns what WRITE wrote", "%u bytes, or others", got.len);
}

#define LEN(n)                                                                                     \
	{                                                                                          \
		"v4-write-" #n, "RFC 8267 6.4.1", "a chunk of " #n " bytes, operations behind it", \
			middle_len, n, CF_NFS4                                                     \
	}

static const struct cf_case cases[] = {
	{ "v40-write", "RFC 8267 6.4.1", "NFSv4.0: a Read chunk in the middle of a COMPOUND",
	  middle_minor, 0, CF_NFS4 },
	{ "v41-write", "RFC 8267 6.4.1", "NFSv4.1: a Read chunk in the middle of a COMPOUND",
	  middle_minor, 1, CF_NFS4 },
	{ "v42-write", "RFC 8267 6.4.1", "NFSv4.2: a Read chunk in the middle of a COMPOUND",
	  middle_minor, 2, CF_NFS4 },
	LEN(1),
	LEN(4097),
	LEN(4098),
	LEN(4099),
	LEN(65536),
	{ "v4-write-16", "RFC 8267 6.4.2", "a chunk of 16 segments must be taken", middle_segments,
	  16, CF_NFS4 },
	{ "v4-pad-1", "RFC 8166 3.4.5.2", "an odd chunk with its pad, operations behind it",
	  with_pad, 1021, CF_NFS4 },
	{ "v4-pad-3", "RFC 8166 3.4.5.2", "the same with one byte of pad", with_pad, 1023,
	  CF_NFS4 },
	{ "v4-at-end", "RFC 8267 6.4.1", "a chunk at the end of a COMPOUND", at_the_end, 0,
	  CF_NFS4 },
	{ "v40-long", "RFC 8267 6.4.2", "position zero and a chunk in the middle must be taken",
	  middle_long, 0, CF_NFS4 },
	{ "v41-long", "RFC 8267 6.4.2", "the same in NFSv4.1", middle_long, 1, CF_NFS4 },
	{ "v40-two-chunks", "RFC 8267 6.4.1", "two WRITEs by a chunk each", two_chunks, 0,
	  CF_NFS4 },
	{ "v41-two-chunks", "RFC 8267 6.4.1", "the same in NFSv4.1", two_chunks, 1, CF_NFS4 },
	{ "v4-odd-chunks", "RFC 8166 3.4.5", "four WRITEs by chunks of odd lengths", odd_chunks, 0,
	  CF_NFS4 },
	{ "v4-chunk-and-inline", "RFC 8166 3.5.2", "a WRITE by a chunk between inline ones",
	  chunk_and_inline, 0, CF_NFS4 },
	{ "v4-nothing-between", "RFC 8166 3.4.5", "a WRITE of nothing behind one by a chunk",
	  nothing_between, 0, CF_NFS4 },
	{ "v40-linkdata", "RFC 8267 6.1", "CREATE's linkdata by a chunk", linkdata, 0, CF_NFS4 },
	{ "v41-linkdata", "RFC 8267 6.1", "the same in NFSv4.1", linkdata, 1, CF_NFS4 },
	{ "v40-write-and-read", "RFC 8166 4.3", "a Read list and a Write list in one COMPOUND",
	  v4_write_and_read, 0, CF_NFS4 },
	{ "v42-write-and-read", "RFC 8166 4.3", "the same in NFSv4.2", v4_write_and_read, 2,
	  CF_NFS4 },
};

const struct cf_group cf_group_v4 = { "v4", 801, cases, rn_array_size(cases) };

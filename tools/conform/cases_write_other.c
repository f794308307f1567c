/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Write chunks that cannot be used as intended: results that are not DDP-eligible, failed calls,
 * memory that is too short or missing (RFC 8166 sections 4.3.2.2 and 4.5.3, RFC 8267 section 3.1
 * and 4).
 */
#include <string.h>

#include "lib/util.h"
#include "tools/conform/conform_check.h"
#include "tools/conform/nfs3.h"

static const uint32_t usual[] = { 1000, 3096, CF_END };

/* ---- READLINK ---------------------------------------------------------------------------------
 */

static struct cf_call *readlink_of(struct cf_test *t, const char *text)
{
	struct cf_fh fh;

	if (!cf3_make_symlink(t, "write-link", text, &fh))
		return NULL;
	return cf3_readlink(t, &fh);
}

static void readlink_into(struct cf_test *t, const char *text, const uint32_t *lens)
{
	struct cf_call *c = readlink_of(t, text);

	if (!c || !cf_add_segs(t, cf_add_write(&c->lists), lens, 0))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (!r || !cf3_status(t, r, CF3_OK))
		return;
	cf3_skip_post_attr(&r->x);
	uint32_t len = xdr_get_u32(&r->x);
	if (r->x.err || len != strlen(text) || r->x.left)
		cf_fail(t, "the length of the text, and no more", "length %u, %zu bytes behind it",
			len, r->x.left);
	else
		cf_chunk_has(t, &c->lists.write[0], &r->h.lists.write[0], text, len);
}

static void readlink_one(struct cf_test *t)
{
	static const uint32_t lens[] = { 1024, CF_END };
	readlink_into(t, "target/of/odd/length", lens);
}

static void readlink_odd(struct cf_test *t)
{
	static const uint32_t lens[] = { 3, 4, 100, CF_END };
	readlink_into(t, "thirteen/char", lens);
}

static void readlink_exact(struct cf_test *t)
{
	static const uint32_t lens[] = { 7, CF_END };
	readlink_into(t, "seven/7", lens);
}

static void readlink_short(struct cf_test *t)
{
	static const uint32_t lens[] = { 6, CF_END };
	struct cf_call *c = readlink_of(t, "seven/7");

	if (!c || !cf_add_segs(t, cf_add_write(&c->lists), lens, 0))
		return;
	struct cf_reply *r = cf_ask_any(t, c);
	if (!r)
		return;
	if (!cf_is_refusal(r) && cf_peek_status(r) == CF3_OK) {
		cf_fail(t, "ERR_CHUNK, or an error of RPC or NFS", "a successful READLINK");
		return;
	}
	cf_alive(t);
}

/* ---- failed calls -----------------------------------------------------------------------------
 */

/* Expects an NFS error, and both chunks returned unused. */
static void fails_unused(struct cf_test *t, struct cf_call *c)
{
	static const uint32_t one[] = { 512, CF_END };

	if (!cf_add_segs(t, cf_add_write(&c->lists), usual, 0) ||
	    !cf_add_segs(t, cf_add_write(&c->lists), one, 0))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (!r)
		return;
	if (xdr_get_u32(&r->x) == CF3_OK)
		cf_fail(t, "an NFS error", "success");
	else
		cf_writes_unused(t, r, 0);
}

static void write_chunk_read_fails(struct cf_test *t)
{
	fails_unused(t, cf3_read(t, &t->run->scratch, 0, 4096));
}

static void readlink_fails(struct cf_test *t)
{
	struct cf_fh fh;

	if (cf3_make_file(t, "write-nolink", 10, &fh))
		fails_unused(t, cf3_readlink(t, &fh));
}

static void lookup_fails(struct cf_test *t)
{
	fails_unused(t, cf3_lookup(t, &t->run->scratch, "no-such-name"));
}

/* ---- results that may not be reduced ----------------------------------------------------------
 */

enum { OTHER_NULL, OTHER_GETATTR, OTHER_LOOKUP, OTHER_READDIR, OTHER_READDIRPLUS, OTHER_FSINFO };

static struct cf_call *write_chunk_other_call(struct cf_test *t)
{
	const struct cf_fh *dir = &t->run->scratch;
	struct cf_fh fh;

	if (!cf3_make_file(t, "write-other", 10, &fh))
		return NULL;
	switch (t->arg) {
	case OTHER_NULL:
		return cf3_null(t);
	case OTHER_GETATTR:
		return cf3_getattr(t, &fh);
	case OTHER_LOOKUP:
		return cf3_lookup(t, dir, "write-other");
	case OTHER_READDIR:
		return cf3_readdir(t, dir, 512);
	case OTHER_READDIRPLUS:
		return cf3_readdirplus(t, dir, 256, 600);
	default:
		return cf3_fsinfo(t, dir);
	}
}

static void not_eligible(struct cf_test *t)
{
	struct cf_call *c = write_chunk_other_call(t);

	if (!c || !cf_add_segs(t, cf_add_write(&c->lists), usual, 0))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (r && (t->arg == OTHER_NULL || cf3_status(t, r, CF3_OK)))
		cf_writes_unused(t, r, 0);
}

/* ---- calls that RPC refuses -------------------------------------------------------------------
 */

static void write_chunk_rpc_refuses(struct cf_test *t)
{
	struct cf_call *c = cf_call_new(t, CF_PROG_NFS, 3, 99);

	if (!cf_add_segs(t, cf_add_write(&c->lists), usual, 0) || !cf_offer_reply(t, c, 2048, 2))
		return;
	struct cf_reply *r = cf_ask_any(t, c);
	if (r && cf_expect_accept(t, r, CF_PROC_UNAVAIL))
		cf_writes_unused(t, r, 0);
}

/* ---- memory that is too short -----------------------------------------------------------------
 */

/* Accepts a refusal, or fewer bytes that fit: a READ may always return less than asked. */
static void read_too_short(struct cf_test *t)
{
	static const uint32_t lens[][4] = {
		{ 999, CF_END },
		{ 500, 400, 99, CF_END },
		{ 1, CF_END },
		{ 0, 0, CF_END },
	};
	struct cf3_read_result got;
	struct cf_fh fh;

	if (!cf3_make_file(t, "write-short", 1000, &fh))
		return;
	struct cf_call *c = cf3_read(t, &fh, 0, 1000);
	if (!cf_add_segs(t, cf_add_write(&c->lists), lens[t->arg], 0))
		return;
	struct cf_reply *r = cf_ask_any(t, c);
	if (!r)
		return;
	if (!cf_is_refusal(r) && cf_peek_status(r) == CF3_OK) {
		/* A chunk of length zero may be taken for an empty chunk. */
		bool in_line = !cf_chunk_len(&c->lists.write[0]);
		if (!cf3_read_result(t, r, !in_line, &got))
			return;
		if (!in_line && !cf_chunk_has_pattern(t, &c->lists.write[0], &r->h.lists.write[0],
						      0, got.count))
			return;
	}
	cf_alive(t);
}

/* ---- memory that is not there -----------------------------------------------------------------
 */

enum { BAD_HANDLE, BAD_END, BAD_RIGHTS };

/* Region that the server may read but not write. */
static bool read_only_seg(struct cf_test *t, struct cf_window *w, struct ibv_mr **mr,
			  struct cf_seg *seg)
{
	*mr = ibv_reg_mr(t->conn->pd, w->data, w->len, IBV_ACCESS_REMOTE_READ);
	if (!*mr)
		return cf_skip(t, "this device registers no more memory");
	*seg = (struct cf_seg){ (*mr)->rkey, w->len, (uintptr_t)w->data };
	return true;
}

static void write_chunk_bad_memory(struct cf_test *t)
{
	struct ibv_mr *mr = NULL;
	struct cf_window *w = cf_window_new(t->conn, 1024);
	struct cf_fh fh;

	if (!w || !cf3_make_file(t, "write-bad", 1000, &fh))
		return;
	struct cf_seg seg = cf_window_seg(w, 0, 1024);
	struct cf_call *c = cf3_read(t, &fh, 0, 1000);
	if (t->arg == BAD_HANDLE)
		seg.handle ^= 0x5a5a00;
	else if (t->arg == BAD_END)
		seg.offset += 1 << 30;
	else if (t->arg == BAD_RIGHTS && !read_only_seg(t, w, &mr, &seg))
		return;
	cf_add_seg(cf_add_write(&c->lists), seg);
	bool good = cf_refused_or_closed(t, c);
	if (good && !cf_window_untouched(w, 0, 1024))
		good = cf_fail(t, "memory that the server has no right to is untouched",
			       "it was written");
	if (mr)
		ibv_dereg_mr(mr);
	if (good)
		cf_server_alive(t);
}

static const struct cf_case cases[] = {
	{ "write-readlink", "RFC 8267 4", "READLINK's text goes into the Write chunk", readlink_one,
	  0, 0 },
	{ "write-readlink-odd", "RFC 8166 3.4.6.2", "READLINK into three segments, with no pad",
	  readlink_odd, 0, 0 },
	{ "write-readlink-exact", "RFC 8166 3.4.6", "READLINK into a chunk of exactly its length",
	  readlink_exact, 0, 0 },
	{ "write-readlink-short", "RFC 8267 3.1", "READLINK into a chunk one byte too short",
	  readlink_short, 0, 0 },
	{ "write-read-fails", "RFC 8166 4.3.2.2", "a failed READ returns its chunks unused",
	  write_chunk_read_fails, 0, 0 },
	{ "write-readlink-fails", "RFC 8166 4.3.2.2", "a failed READLINK returns its chunks unused",
	  readlink_fails, 0, 0 },
	{ "write-lookup-fails", "RFC 8166 4.3.2.2", "a failed LOOKUP returns chunks unused",
	  lookup_fails, 0, 0 },
	{ "write-with-null", "RFC 8166 4.3.2.2", "NULL returns a Write chunk unused", not_eligible,
	  OTHER_NULL, 0 },
	{ "write-with-getattr", "RFC 8267 4", "GETATTR has nothing to reduce", not_eligible,
	  OTHER_GETATTR, 0 },
	{ "write-with-lookup", "RFC 8267 4", "LOOKUP has nothing to reduce", not_eligible,
	  OTHER_LOOKUP, 0 },
	{ "write-with-readdir", "RFC 8267 4", "READDIR has nothing to reduce", not_eligible,
	  OTHER_READDIR, 0 },
	{ "write-with-readdirplus", "RFC 8267 4", "READDIRPLUS has nothing to reduce", not_eligible,
	  OTHER_READDIRPLUS, 0 },
	{ "write-with-fsinfo", "RFC 8267 4", "FSINFO has nothing to reduce", not_eligible,
	  OTHER_FSINFO, 0 },
	{ "write-rpc-refusal", "RFC 8166 4.3.3",
	  "PROC_UNAVAIL returns the Write chunk unused and the Reply chunk",
	  write_chunk_rpc_refuses, 0, 0 },
	{ "write-short-1", "RFC 8267 3.1", "READ into a chunk one byte too short", read_too_short,
	  0, 0 },
	{ "write-short-segments", "RFC 8267 3.1", "READ into three segments, one byte too short",
	  read_too_short, 1, 0 },
	{ "write-short-999", "RFC 8267 3.1", "READ of 1000 bytes into a chunk of one byte",
	  read_too_short, 2, 0 },
	{ "write-short-0", "RFC 8166 3.4.6", "READ into segments that are all empty",
	  read_too_short, 3, 0 },
	{ "write-bad-handle", "RFC 8166 4.5.3",
	  "a Write chunk with a handle that is not registered", write_chunk_bad_memory, BAD_HANDLE,
	  0 },
	{ "write-bad-end", "RFC 8166 4.5.3", "a Write chunk outside of its region",
	  write_chunk_bad_memory, BAD_END, 0 },
	{ "write-bad-rights", "RFC 8166 8.1.1", "a Write chunk that may only be read",
	  write_chunk_bad_memory, BAD_RIGHTS, 0 },
};

const struct cf_group cf_group_write_other = { "write-other", 1101, cases, rn_array_size(cases) };

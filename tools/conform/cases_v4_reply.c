/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Long replies of NFSv4 COMPOUNDs, and READ_PLUS, whose data are not DDP-eligible (RFC 8267 section
 * 6.1 names what is, for all minor versions).
 */
#include <string.h>

#include "lib/util.h"
#include "tools/conform/conform_check.h"
#include "tools/conform/nfs3.h"
#include "tools/conform/nfs4.h"

#define NAME "v4-reply"
#define LEN 1501u
#define GETATTRS 30u

/* ---- many GETATTRs ----------------------------------------------------------------------------
 */

static struct cf_call *getattrs(struct cf_test *t, struct cf4_session *s)
{
	struct cf_call *c = cf4_new(t, s, NULL);

	cf4_put_scratch(t, c);
	for (unsigned i = 0; i < GETATTRS; i++)
		cf4_getattr(c);
	return c;
}

static bool getattrs_done(struct cf_test *t, struct cf4_session *s, struct cf_reply *r)
{
	if (!cf4_results(t, s, r, CF4_OK) || !cf4_scratch_done(t, r))
		return false;
	for (unsigned i = 0; i < GETATTRS; i++) {
		if (!cf4_op_done(t, r, CF4_GETATTR, CF4_OK))
			return false;
		cf4_skip_getattr(&r->x);
	}
	return (!r->x.err && !r->x.left) ||
	       cf_fail(t, "a reply that decodes to its end", "%zu bytes are left", r->x.left);
}

/*
 * Returns the length of the reply's stream, measured with a large Reply chunk; 0 after a verdict.
 */
static uint32_t v4_reply_by_chunk(struct cf_test *t, struct cf4_session *s, uint32_t room,
				  unsigned nsegs)
{
	struct cf_call *c = getattrs(t, s);

	/* The call itself is longer than 1024 bytes. */
	if (!cf_make_long(t, c, 1) || !cf_offer_reply(t, c, room, nsegs))
		return 0;
	struct cf_reply *r = cf_ask(t, c);
	if (!r || !getattrs_done(t, s, r))
		return 0;
	if (r->h.proc == CF_NOMSG)
		return r->stream_len;
	cf_fail(t, "RDMA_NOMSG: the reply is longer than the threshold", "RDMA_MSG");
	return 0;
}

static struct cf4_session *small_session(struct cf_test *t)
{
	return cf_open_small(t) ? cf4_begin(t, t->arg) : NULL;
}

static void v4_reply_long_getattr(struct cf_test *t)
{
	struct cf4_session *s = small_session(t);

	if (s)
		v4_reply_by_chunk(t, s, 16384, 1);
}

static void long_getattr_segments(struct cf_test *t)
{
	struct cf4_session *s = small_session(t);

	if (s)
		v4_reply_by_chunk(t, s, 16384, 16);
}

static void long_getattr_exact(struct cf_test *t)
{
	struct cf4_session *s = small_session(t);
	uint32_t len = s ? v4_reply_by_chunk(t, s, 16384, 1) : 0;

	if (len)
		v4_reply_by_chunk(t, s, len, 3);
}

/* Offers one byte less than the reply needs, or no Reply chunk. */
static void v4_reply_no_room(struct cf_test *t, bool chunk)
{
	struct cf4_session *s = small_session(t);
	uint32_t len = s ? v4_reply_by_chunk(t, s, 16384, 1) : 0;

	if (!len)
		return;
	struct cf_call *c = getattrs(t, s);
	if (!cf_make_long(t, c, 1) || (chunk && !cf_offer_reply(t, c, len - 1, 1)))
		return;
	struct cf_reply *r = cf_ask_any(t, c);
	if (!r)
		return;
	/* The server may also end the COMPOUND with an error, but not with one about the session's
	 * limits. */
	if (!cf_is_refusal(r) &&
	    (cf_peek_status(r) == CF4_OK || cf_peek_status(r) == CF4ERR_REP_TOO_BIG))
		cf_fail(t, "ERR_CHUNK, or an error of RPC or NFS", "a COMPOUND of status %u",
			cf_peek_status(r));
	else
		cf_alive(t);
}

static void long_getattr_short(struct cf_test *t)
{
	v4_reply_no_room(t, true);
}

static void long_getattr_none(struct cf_test *t)
{
	v4_reply_no_room(t, false);
}

/* ---- READ with a long rest --------------------------------------------------------------------
 */

/* The data go to the Write chunk, and the rest of the reply, still too long, to the Reply chunk. */
static void read_and_rest(struct cf_test *t)
{
	struct cf4_session *s = small_session(t);
	struct cf4_read_result got;
	struct cf_fh fh;

	if (!s || !cf3_make_file(t, NAME, LEN, &fh) || !cf4_handle(t, s, NAME, &fh))
		return;
	struct cf_call *c = cf4_new(t, s, NULL);
	cf4_putfh(c, &fh);
	cf4_read(c, 0, LEN);
	for (unsigned i = 0; i < GETATTRS; i++)
		cf4_getattr(c);
	if (!cf_make_long(t, c, 2) || !cf_offer_write(t, c, LEN, 3) ||
	    !cf_offer_reply(t, c, 16384, 3))
		return;
	struct cf_reply *r = cf4_ask(t, s, c);
	if (!r || !cf4_op_done(t, r, CF4_PUTFH, CF4_OK) || !cf4_op_done(t, r, CF4_READ, CF4_OK) ||
	    !cf4_read_result(t, r, true, &got) ||
	    !cf_chunk_has_pattern(t, &c->lists.write[0], &r->h.lists.write[0], 0, LEN))
		return;
	for (unsigned i = 0; i < GETATTRS; i++) {
		if (!cf4_op_done(t, r, CF4_GETATTR, CF4_OK))
			return;
		cf4_skip_getattr(&r->x);
	}
	if (r->h.proc != CF_NOMSG || r->x.err || r->x.left)
		cf_fail(t, "the rest, without the data, in the Reply chunk", "%zu bytes are left",
			r->x.left);
}

/* ---- READ_PLUS --------------------------------------------------------------------------------
 */

/* Checks the result of READ_PLUS, whose data must be in the stream. */
static bool read_plus_done(struct cf_test *t, struct cf_reply *r)
{
	uint32_t op = xdr_get_u32(&r->x), status = xdr_get_u32(&r->x), len = 0;

	if (op != CF4_READ_PLUS || status == CF4ERR_NOTSUPP)
		return cf_skip(t, "READ_PLUS is not served");
	if (status != CF4_OK)
		return cf_fail(t, "READ_PLUS with status 0", "status %u", status);
	xdr_get_bool(&r->x); /* end of file */
	for (uint32_t n = xdr_get_u32(&r->x); n && !r->x.err; n--) {
		uint32_t hole = xdr_get_u32(&r->x), bytes = 0;
		uint64_t at = xdr_get_u64(&r->x);
		if (hole) {
			xdr_get_u64(&r->x);
			continue;
		}
		const uint8_t *p = xdr_get_opaque(&r->x, LEN, &bytes);
		for (uint32_t i = 0; p && i < bytes; i++)
			if (p[i] != cf_pattern(at + i))
				return cf_fail(t, "the file's bytes in the stream",
					       "byte %u is %02x", i, p[i]);
		len += bytes;
	}
	if (r->x.err || !len)
		return cf_fail(t, "READ_PLUS's data in the stream: they are not DDP-eligible",
			       r->x.err ? "a result without them" : "no data");
	return true;
}

enum { PLUS_ALONE, PLUS_CHUNK, PLUS_AND_READ };

static void read_plus(struct cf_test *t)
{
	struct cf4_session *s = cf4_begin(t, 2);
	struct cf4_read_result got;
	struct cf_fh fh;

	if (!s || !cf3_make_file(t, NAME, LEN, &fh) || !cf4_handle(t, s, NAME, &fh))
		return;
	struct cf_call *c = cf4_new(t, s, NULL);
	cf4_putfh(c, &fh);
	cf4_read_plus(c, 0, LEN);
	if (t->arg == PLUS_AND_READ)
		cf4_read(c, 0, LEN);
	if ((t->arg == PLUS_CHUNK || t->arg == PLUS_AND_READ) && !cf_offer_write(t, c, LEN, 2))
		return;
	if (!cf_offer_reply(t, c, 8192, 1))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (!r)
		return;
	if (cf_peek_status(r) == CF4ERR_NOTSUPP) {
		cf_skip(t, "READ_PLUS is not served");
		return;
	}
	if (!cf4_results(t, s, r, CF4_OK) || !cf4_op_done(t, r, CF4_PUTFH, CF4_OK) ||
	    !read_plus_done(t, r))
		return;
	if (t->arg != PLUS_AND_READ)
		cf_writes_unused(t, r, 0);
	else if (cf4_op_done(t, r, CF4_READ, CF4_OK) && cf4_read_result(t, r, true, &got))
		cf_chunk_has_pattern(t, &c->lists.write[0], &r->h.lists.write[0], 0, LEN);
}

#define OWN (CF_NFS4 | CF_OWN_CONN)

static const struct cf_case cases[] = {
	{ "v40-long-getattr", "RFC 8267 6.2.1", "a long reply of GETATTRs in the Reply chunk",
	  v4_reply_long_getattr, 0, OWN },
	{ "v41-long-getattr", "RFC 8267 6.2.2", "NFSv4.1: a long reply in the Reply chunk",
	  v4_reply_long_getattr, 1, OWN },
	{ "v40-long-getattr-segments", "RFC 8267 6.4.2", "a Reply chunk of sixteen segments",
	  long_getattr_segments, 0, OWN },
	{ "v40-long-getattr-exact", "RFC 8166 4.3.3", "a Reply chunk that is exactly long enough",
	  long_getattr_exact, 0, OWN },
	{ "v40-long-getattr-short", "RFC 8267 3.1", "a Reply chunk that is one byte too short",
	  long_getattr_short, 0, OWN },
	{ "v40-long-getattr-none", "RFC 8267 3", "a reply too long, and no Reply chunk",
	  long_getattr_none, 0, OWN },
	{ "v40-read-and-rest", "RFC 8166 3.5.3", "READ's data and a long rest, each in its chunk",
	  read_and_rest, 0, OWN },
	{ "v41-read-and-rest", "RFC 8166 3.5.3", "NFSv4.1: READ's data and a long rest",
	  read_and_rest, 1, OWN },
	{ "v42-read-plus", "RFC 8267 6.1", "READ_PLUS without a Write list", read_plus, PLUS_ALONE,
	  CF_NFS4 },
	{ "v42-read-plus-chunk", "RFC 8267 6.1",
	  "READ_PLUS has nothing to reduce: a Write chunk is unused", read_plus, PLUS_CHUNK,
	  CF_NFS4 },
	{ "v42-read-plus-and-read", "RFC 8267 6.4.1",
	  "READ_PLUS and READ: the first Write chunk is READ's", read_plus, PLUS_AND_READ,
	  CF_NFS4 },
	{ "v41-long-getattr-short", "RFC 8267 6.6",
	  "NFSv4.1: a Reply chunk that is one byte too short", long_getattr_short, 1, OWN },
};

const struct cf_group cf_group_v4_reply = { "v4-reply", 1901, cases, rn_array_size(cases) };

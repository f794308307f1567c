/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chunks of several kinds in one call: Write list with Reply chunk, Long Call with either or both,
 * Read list with what the reply may need (RFC 8166 sections 3.5.2, 3.5.3 and 4.3).
 */
#include "lib/util.h"
#include "tools/conform/conform_check.h"
#include "tools/conform/long_reply.h"
#include "tools/conform/nfs3.h"

#define ROOM 16384u

enum {
	WRITE_CHUNK = 1,
	REPLY_CHUNK = 2,
	LONG_CALL = 4,
	SEGMENTED = 8, /* several segments in each chunk */
};

/* Adds to c the chunks that t->arg asks for, for a READ of at most len bytes. */
static bool give_chunks(struct cf_test *t, struct cf_call *c, uint32_t len)
{
	unsigned n = t->arg & SEGMENTED ? 5 : 1;

	if (t->arg & WRITE_CHUNK && !cf_offer_write(t, c, len, n))
		return false;
	if (t->arg & REPLY_CHUNK && !cf_offer_reply(t, c, ROOM, n))
		return false;
	return !(t->arg & LONG_CALL) || cf_make_long(t, c, n);
}

static void both_read_file(struct cf_test *t)
{
	struct cf3_read_result got;
	struct cf_fh fh;

	if (!cf_open_small(t) || !cf3_make_file(t, "both-file", 4001, &fh))
		return;
	struct cf_call *c = cf3_read(t, &fh, 0, 4001);
	if (!give_chunks(t, c, 4001))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (!r || !cf3_read_result(t, r, true, &got))
		return;
	if (got.count != 4001)
		cf_fail(t, "all of the file", "%u bytes", got.count);
	else
		cf_chunk_has_pattern(t, &c->lists.write[0], &r->h.lists.write[0], 0, 4001);
}

static void both_read_fails(struct cf_test *t)
{
	if (!cf_open_small(t))
		return;
	struct cf_call *c = cf3_read(t, &t->run->scratch, 0, 4096);
	if (!give_chunks(t, c, 4096))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (!r)
		return;
	if (cf_peek_status(r) == CF3_OK)
		cf_fail(t, "an error: a directory is not read", "success");
	else
		cf_writes_unused(t, r, 0);
}

static void getattr(struct cf_test *t)
{
	if (!cf_open_small(t))
		return;
	struct cf_call *c = cf3_getattr(t, &t->run->scratch);
	if (!give_chunks(t, c, 512))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (r && cf3_status(t, r, CF3_OK))
		cf_writes_unused(t, r, 0);
}

static void read_directory(struct cf_test *t)
{
	if (!cf_open_small(t))
		return;
	struct cf_call *c = cf_long_call(t, CF_LONG_READDIRPLUS);
	if (!c || !give_chunks(t, c, 2048))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (!r || !cf_long_check(t, CF_LONG_READDIRPLUS, r))
		return;
	if (r->h.proc != CF_NOMSG)
		cf_fail(t, "RDMA_NOMSG: the reply is longer than the threshold", "RDMA_MSG");
	else
		cf_writes_unused(t, r, 0);
}

static void both_read_link(struct cf_test *t)
{
	if (!cf_open_small(t))
		return;
	struct cf_call *c = cf_long_call(t, CF_LONG_READLINK);
	if (!c || !give_chunks(t, c, 1100))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (!r || !cf3_status(t, r, CF3_OK))
		return;
	cf3_skip_post_attr(&r->x);
	uint32_t len = xdr_get_u32(&r->x);
	if (r->x.err || r->x.left)
		cf_fail(t, "a reply whose text was taken out",
			"%zu bytes behind the length, %ju in the Write chunk", r->x.left,
			(uintmax_t)cf_chunk_len(&r->h.lists.write[0]));
	else
		cf_chunk_filled(t, &c->lists.write[0], &r->h.lists.write[0], len);
}

/* WRITE whose data come by a Read chunk, or within a Long Call, with chunks for the reply. */
static void both_write_file(struct cf_test *t)
{
	uint8_t data[3001];
	struct cf_fh fh;

	cf_fill_pattern(data, 77, sizeof(data));
	if (!cf_open_small(t) || !cf3_make_file(t, "both-write", 0, &fh))
		return;
	struct cf_call *c = cf3_write(t, &fh, 0, sizeof(data), t->arg & LONG_CALL ? data : NULL);
	if (!(t->arg & LONG_CALL) &&
	    !cf_reduce(t, c, data, sizeof(data), t->arg & SEGMENTED ? 5 : 1))
		return;
	if (!give_chunks(t, c, 1000))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (r && cf3_status(t, r, CF3_OK) && cf_writes_unused(t, r, 0))
		cf3_file_is(t, &fh, data, sizeof(data));
}

/* Long Call that also has a Read chunk. */
static void with_read_chunk(struct cf_test *t, uint32_t len)
{
	uint8_t *data = cf_alloc(t, len);
	struct cf_fh fh;

	cf_fill_pattern(data, 5, len);
	if (!cf_open_small(t) || !cf3_make_file(t, "both-write", 0, &fh))
		return;
	struct cf_call *c = cf3_write(t, &fh, 0, len, NULL);
	if (!cf_reduce(t, c, data, len, 3) || !give_chunks(t, c, 1000))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (r && cf3_status(t, r, CF3_OK) && cf_writes_unused(t, r, 0))
		cf3_file_is(t, &fh, data, len);
}

static void even_read_chunk(struct cf_test *t)
{
	with_read_chunk(t, 2000);
}

static void odd_read_chunk(struct cf_test *t)
{
	with_read_chunk(t, 2002);
}

#define CASE(id, title, run, arg)                                                                  \
	{                                                                                          \
		id, "RFC 8166 3.5.3", title, run, arg, CF_OWN_CONN                                 \
	}

static const struct cf_case cases[] = {
	CASE("both-read", "READ with a Write chunk and a Reply chunk: the data go into the first",
	     both_read_file, WRITE_CHUNK | REPLY_CHUNK),
	CASE("both-read-segments", "the same with five segments in each", both_read_file,
	     WRITE_CHUNK | REPLY_CHUNK | SEGMENTED),
	CASE("both-read-fails", "a failed READ with a Write chunk and a Reply chunk",
	     both_read_fails, WRITE_CHUNK | REPLY_CHUNK),
	CASE("both-getattr", "GETATTR with a Write chunk and a Reply chunk", getattr,
	     WRITE_CHUNK | REPLY_CHUNK),
	CASE("both-readdirplus", "READDIRPLUS in the Reply chunk, the Write chunk unused",
	     read_directory, WRITE_CHUNK | REPLY_CHUNK),
	CASE("both-readlink", "READLINK with a Write chunk and a Reply chunk", both_read_link,
	     WRITE_CHUNK | REPLY_CHUNK),
	CASE("both-write", "WRITE with a Read chunk and a Reply chunk", both_write_file,
	     REPLY_CHUNK),
	CASE("both-write-all", "WRITE with a Read chunk, a Write chunk and a Reply chunk",
	     both_write_file, WRITE_CHUNK | REPLY_CHUNK | SEGMENTED),
	CASE("both-long-call-getattr", "a Long Call with a Reply chunk that is not needed", getattr,
	     LONG_CALL | REPLY_CHUNK),
	CASE("both-long-call-readdirplus", "Long Call and Long Reply", read_directory,
	     LONG_CALL | REPLY_CHUNK),
	CASE("both-long-call-segments", "Long Call and Long Reply, five segments each",
	     read_directory, LONG_CALL | REPLY_CHUNK | SEGMENTED),
	CASE("both-long-call-read", "a Long Call with a Write chunk", both_read_file,
	     LONG_CALL | WRITE_CHUNK),
	CASE("both-long-call-read-all", "a Long Call with a Write chunk and a Reply chunk",
	     both_read_file, LONG_CALL | WRITE_CHUNK | REPLY_CHUNK | SEGMENTED),
	CASE("both-long-call-readlink", "READLINK by a Long Call into a Write chunk",
	     both_read_link, LONG_CALL | WRITE_CHUNK),
	CASE("both-long-call-write", "WRITE within a Long Call, with a Reply chunk",
	     both_write_file, LONG_CALL | REPLY_CHUNK),
	CASE("both-long-call-read-chunk", "a Long Call with a Read chunk and a Reply chunk",
	     even_read_chunk, LONG_CALL | REPLY_CHUNK),
	CASE("both-long-call-odd-chunk", "a Long Call with a Read chunk of odd length, without pad",
	     odd_read_chunk, LONG_CALL | REPLY_CHUNK),
	CASE("both-everything", "position zero, Read, Write and Reply chunk in one call",
	     even_read_chunk, LONG_CALL | WRITE_CHUNK | REPLY_CHUNK | SEGMENTED),
};

const struct cf_group cf_group_both = { "both", 1301, cases, rn_array_size(cases) };

/* SPDX-License-Identifier: BSD-2-Clause */
/* Invalid chunk lists: marks, counts, positions, memory. RFC 8166 sections 3.4.5, 4.3, 4.5. */
#include <string.h>
#include <time.h>

#include "lib/util.h"
#include "tools/conform/conform_call.h"
#include "tools/conform/conform_check.h"
#include "tools/conform/nfs3.h"

/* Starts a message with the fixed words. Returns its xid. */
static uint32_t lists_msg_begin(struct cf_test *t, struct xdr_out *x)
{
	uint32_t xid = cf_xid(t);

	xdr_out_init(x, cf_alloc(t, CF_INLINE_MAX), CF_INLINE_MAX);
	cf_put_fixed(x, xid, CF_VERSION, 32, CF_MSG);
	return xid;
}

static void lists_put_call(struct cf_test *t, struct xdr_out *x, uint32_t xid)
{
	struct cf_call *c = cf3_null(t);

	xdr_patch_u32(&c->rpc, 0, xid);
	xdr_put_fixed(x, c->rpc.base, xdr_out_pos(&c->rpc));
}

/* Expects ERR_CHUNK, and that the connection goes on. */
static void lists_msg_refused(struct cf_test *t, const struct xdr_out *x, uint32_t xid)
{
	if (cf_refused_bytes(t, x->base, xdr_out_pos(x), xid))
		cf_alive(t);
}

static struct cf_seg some_memory(struct cf_test *t, uint32_t len)
{
	struct cf_window *w = cf_window_new(t->conn, len);

	if (!w) {
		cf_skip(t, "this machine's device registers no more memory");
		return (struct cf_seg){ 0 };
	}
	return cf_window_seg(w, 0, len);
}

/* ---- marks and counts -------------------------------------------------------------------------
 */

/* Selects which of the three optional items has the wrong mark; the rest would parse if the mark
 * were 1. */
static void lists_bad_mark(struct cf_test *t)
{
	struct cf_seg s = some_memory(t, 4096);
	struct xdr_out x;
	uint32_t xid = lists_msg_begin(t, &x), bad = t->arg >> 4;

	for (int i = 0; i < 3; i++) {
		if (i != (t->arg & 3)) {
			xdr_put_u32(&x, 0);
			continue;
		}
		xdr_put_u32(&x, bad);
		xdr_put_u32(&x, i == 0 ? 40 : 1); /* position, or count */
		cf_put_seg(&x, &s);
		if (i < 2)
			xdr_put_u32(&x, 0);
	}
	lists_put_call(t, &x, xid);
	lists_msg_refused(t, &x, xid);
}

static void huge_write_count(struct cf_test *t)
{
	struct xdr_out x;
	uint32_t xid = lists_msg_begin(t, &x);

	xdr_put_u32(&x, 0);
	xdr_put_u32(&x, 1);
	xdr_put_u32(&x, t->arg);
	lists_put_call(t, &x, xid);
	lists_msg_refused(t, &x, xid);
}

static void huge_reply_count(struct cf_test *t)
{
	struct xdr_out x;
	uint32_t xid = lists_msg_begin(t, &x);

	xdr_put_u32(&x, 0);
	xdr_put_u32(&x, 0);
	xdr_put_u32(&x, 1);
	xdr_put_u32(&x, t->arg);
	lists_put_call(t, &x, xid);
	lists_msg_refused(t, &x, xid);
}

/* Read list that fills the message and never ends. */
static void endless_reads(struct cf_test *t)
{
	struct cf_seg s = some_memory(t, 4);
	struct xdr_out x;
	uint32_t xid = lists_msg_begin(t, &x);

	while (xdr_out_pos(&x) + 24 <= t->conn->call_inline) {
		xdr_put_u32(&x, 1);
		xdr_put_u32(&x, 40);
		cf_put_seg(&x, &s);
	}
	lists_msg_refused(t, &x, xid);
}

/* Empty Write chunks up to the end of the message, without an end mark. */
static void endless_writes(struct cf_test *t)
{
	struct xdr_out x;
	uint32_t xid = lists_msg_begin(t, &x);

	xdr_put_u32(&x, 0);
	while (xdr_out_pos(&x) + 8 <= t->conn->call_inline) {
		xdr_put_u32(&x, 1);
		xdr_put_u32(&x, 0);
	}
	lists_msg_refused(t, &x, xid);
}

/* ---- positions --------------------------------------------------------------------------------
 */

/* Expects a refusal by the transport or by XDR, a working connection and no effect of the WRITE. */
static void not_written(struct cf_test *t, struct cf_call *c, const struct cf_fh *fh)
{
	uint64_t size;
	struct cf_reply *r = cf_ask_any(t, c);

	if (!r || !cf_expect_violation(t, r) || !cf3_file_size(t, fh, &size))
		return;
	if (size)
		cf_fail(t, "a refused WRITE does nothing", "%llu bytes were written",
			(unsigned long long)size);
}

/* Puts WRITE's chunk t->arg bytes away from its right position. */
static void misplaced(struct cf_test *t)
{
	struct cf_fh fh;
	uint8_t data[1000] = { 1 };

	if (!cf3_make_file(t, "lists", 0, &fh))
		return;
	struct cf_call *c = cf3_write(t, &fh, 0, sizeof(data), NULL);
	if (!cf_reduce(t, c, data, sizeof(data), 1))
		return;
	c->lists.read[0].position += t->arg;
	not_written(t, c, &fh);
}

static void beyond(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);
	struct cf_seg s = some_memory(t, 100);

	cf_add_read(&c->lists, t->arg, s);
	struct cf_reply *r = cf_ask_any(t, c);
	if (r && cf_expect_violation(t, r))
		cf_alive(t);
}

/* The second chunk starts within the first. */
static void overlapping(struct cf_test *t)
{
	struct cf_fh fh;
	uint8_t data[1000] = { 1 };

	if (!cf3_make_file(t, "lists", 0, &fh))
		return;
	struct cf_call *c = cf3_write(t, &fh, 0, sizeof(data), NULL);
	uint32_t position = cf_position(c);
	if (!cf_reduce(t, c, data, sizeof(data), 1))
		return;
	cf_add_read(&c->lists, position + t->arg, some_memory(t, 100));
	not_written(t, c, &fh);
}

/* Segment lengths whose sum exceeds 2^32. */
static void sum_overflows(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);
	struct cf_seg s = some_memory(t, 100);

	s.length = 0x80000000;
	for (int i = 0; i < 3; i++)
		cf_add_read(&c->lists, t->arg, s);
	c->proc = t->arg ? CF_MSG : CF_NOMSG;
	if (cf_refused_or_closed(t, c))
		cf_server_alive(t);
}

/* ---- memory -----------------------------------------------------------------------------------
 */

enum what { BAD_HANDLE, BAD_OFFSET, TOO_LONG };

static struct cf_seg lists_bad_memory(struct cf_test *t, enum what what, uint32_t len)
{
	struct cf_seg s = some_memory(t, len);

	switch (what) {
	case BAD_HANDLE:
		s.handle ^= 0x5a5a5a00;
		break;
	case BAD_OFFSET:
		s.offset += 1ull << 40;
		break;
	case TOO_LONG:
		s.length += 1u << 20;
		break;
	}
	return s;
}

/*
 * The server learns of the error from its device, which usually ends the connection: section 4.5.3.
 */
static void bad_read_memory(struct cf_test *t)
{
	struct cf_fh fh;

	if (!cf3_make_file(t, "lists", 0, &fh))
		return;
	struct cf_seg s = lists_bad_memory(t, t->arg, 1000);
	if (t->arg == TOO_LONG)
		s.length = 65536;
	struct cf_call *c = cf3_write(t, &fh, 0, s.length, NULL);
	cf_add_read(&c->lists, cf_position(c), s);
	if (cf_refused_or_closed(t, c))
		cf_server_alive(t);
}

static void bad_zero_memory(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);
	struct cf_seg s = lists_bad_memory(t, t->arg, 40);

	c->proc = CF_NOMSG;
	cf_add_read(&c->lists, 0, s);
	if (cf_refused_or_closed(t, c))
		cf_server_alive(t);
}

static void bad_write_memory(struct cf_test *t)
{
	struct cf_fh fh;

	if (!cf3_make_file(t, "lists", 2000, &fh))
		return;
	struct cf_call *c = cf3_read(t, &fh, 0, 2000);
	cf_add_seg(cf_add_write(&c->lists), lists_bad_memory(t, t->arg, 2000));
	if (cf_refused_or_closed(t, c))
		cf_server_alive(t);
}

/* Chunk larger than the RPC program can take; section 3.4.4 lets the server refuse it unread. */
static void unreasonable(struct cf_test *t)
{
	struct cf_call *c = cf3_null(t);
	struct cf_seg s = some_memory(t, 4096);

	s.length = t->arg;
	c->proc = CF_NOMSG;
	cf_add_read(&c->lists, 0, s);
	if (cf_refused_or_closed(t, c))
		cf_server_alive(t);
}

/* After the client's memory error a new connection gets an answer for a new call, many times. */
static void bad_memory_again(struct cf_test *t)
{
	for (int i = 0; i < 10 && t->verdict == CF_PASS; i++)
		bad_zero_memory(t);
}

enum again { READ_AGAIN, ZERO_AGAIN, WRITE_AGAIN, REPLY_AGAIN };

/* Makes a call whose chunk names memory that does not exist. */
static struct cf_call *hopeless(struct cf_test *t, enum again kind, const struct cf_fh *fh)
{
	struct cf_seg s = lists_bad_memory(t, BAD_HANDLE, 4096);
	struct cf_call *c;

	switch (kind) {
	case READ_AGAIN:
		s.length = 1000;
		c = cf3_write(t, fh, 0, s.length, NULL);
		cf_add_read(&c->lists, cf_position(c), s);
		return c;
	case ZERO_AGAIN:
		s.length = 40;
		c = cf3_null(t);
		c->proc = CF_NOMSG;
		cf_add_read(&c->lists, 0, s);
		return c;
	case WRITE_AGAIN:
		c = cf3_read(t, fh, 0, 2000);
		cf_add_seg(cf_add_write(&c->lists), s);
		return c;
	default:
		s.length = 16384;
		c = cf3_read(t, fh, 0, 8192);
		cf_add_seg(cf_add_reply(&c->lists), s);
		return c;
	}
}

/* Connections that the call may break before the case gives up. */
#define AGAIN_TRIES 6
#define AGAIN_PAUSE_NS 50000000L

/*
 * The call breaks its connection and is sent again on the next one, as clients do. An iWARP device
 * does not tell the server why the peer ended the stream. The server may thus need one more try to
 * recognize a bad Read, and never recognizes a bad Write. The server may also hear of the end of a
 * connection later than the client, so each further try waits for longer.
 */
static void chunk_again(struct cf_test *t)
{
	struct timespec pause = { 0, AGAIN_PAUSE_NS };
	struct cf_fh fh;

	if (t->conn->is_siw && (t->arg == WRITE_AGAIN || t->arg == REPLY_AGAIN)) {
		cf_skip(t, "siw's server does not hear why a Write was refused");
		return;
	}
	if (t->arg == REPLY_AGAIN && t->conn->reply_inline > 8192) {
		cf_skip(t, "the server may send so much inline");
		return;
	}
	if (!cf3_make_file(t, "lists", 8192, &fh))
		return;
	struct cf_call *c = hopeless(t, t->arg, &fh);
	bool closed = true;
	for (unsigned i = 0; closed && i < AGAIN_TRIES; i++) {
		if (!cf_refused_or_closed(t, c))
			return;
		closed = t->conn->closed;
		if (i > 0)
			nanosleep(&pause, NULL);
		pause.tv_nsec += (long)i * AGAIN_PAUSE_NS;
		if (!cf_reopen(t))
			return;
	}
	struct cf_reply *r = cf_refused(t, c) ? cf_ask(t, cf3_null(t)) : NULL;
	if (r)
		cf_alive(t);
}

#define MARK(which, value) ((which) | (long)(value) << 4)
#define MISPLACED(id, by)                                                                          \
	{                                                                                          \
		"position-" id, "RFC 8166 3.4.5", "WRITE's chunk " id " bytes off is refused",     \
			misplaced, by, 0                                                           \
	}

static const struct cf_case cases[] = {
	{ "mark-read-2", "RFC 4506 4.19", "a Read list's mark of 2: ERR_CHUNK", lists_bad_mark,
	  MARK(0, 2), 0 },
	{ "mark-write-2", "RFC 4506 4.19", "a Write list's mark of 2: ERR_CHUNK", lists_bad_mark,
	  MARK(1, 2), 0 },
	{ "mark-reply-2", "RFC 4506 4.19", "a Reply chunk's mark of 2: ERR_CHUNK", lists_bad_mark,
	  MARK(2, 2), 0 },
	{ "mark-read-max", "RFC 4506 4.19", "a Read list's mark of 2^32-1: ERR_CHUNK",
	  lists_bad_mark, MARK(0, 0xffffffff), 0 },
	{ "count-write-max", "RFC 8166 4.5.2", "a Write chunk of 2^32-1 segments: ERR_CHUNK",
	  huge_write_count, 0xffffffff, 0 },
	{ "count-write-wrap", "RFC 8166 4.5.2", "a Write chunk of 2^28 segments: ERR_CHUNK",
	  huge_write_count, 0x10000000, 0 },
	{ "count-write-20", "RFC 8166 4.5.2",
	  "a Write chunk of more segments than follow: ERR_CHUNK", huge_write_count, 20, 0 },
	{ "count-reply-max", "RFC 8166 4.5.2", "a Reply chunk of 2^32-1 segments: ERR_CHUNK",
	  huge_reply_count, 0xffffffff, 0 },
	{ "count-reply-wrap", "RFC 8166 4.5.2", "a Reply chunk of 2^28 segments: ERR_CHUNK",
	  huge_reply_count, 0x10000000, 0 },
	{ "endless-reads", "RFC 8166 4.5.2", "a Read list without end: ERR_CHUNK", endless_reads, 0,
	  0 },
	{ "endless-writes", "RFC 8166 4.5.2", "a Write list without end: ERR_CHUNK", endless_writes,
	  0, 0 },
	MISPLACED("1", 1),
	MISPLACED("2", 2),
	MISPLACED("4", 4),
	MISPLACED("-4", -4),
	MISPLACED("-8", -8),
	MISPLACED("1000", 1000),
	{ "position-beyond", "RFC 8166 3.4.5", "a chunk behind the end of the message is refused",
	  beyond, 400, 0 },
	{ "position-max", "RFC 8166 3.4.5", "a chunk at position 2^32-4 is refused", beyond,
	  0xfffffffc, 0 },
	{ "position-unaligned-max", "RFC 8166 3.4.5", "a chunk at position 2^32-1 is refused",
	  beyond, 0xffffffff, 0 },
	{ "overlap-4", "RFC 8166 3.4.5", "a chunk that starts within another is refused",
	  overlapping, 4, 0 },
	{ "overlap-500", "RFC 8166 3.4.5", "the same, in the middle", overlapping, 500, 0 },
	{ "overlap-behind", "RFC 8166 3.4.5",
	  "a second chunk where WRITE has no argument is refused", overlapping, 1000, 0 },
	{ "sum-overflows", "RFC 8166 8.1.4", "a Read chunk beyond 2^32 bytes is refused",
	  sum_overflows, 40, 0 },
	{ "sum-overflows-zero", "RFC 8166 8.1.4",
	  "a position-zero chunk beyond 2^32 bytes is refused", sum_overflows, 0, 0 },
	{ "zero-2gib", "RFC 8166 8.1.4", "a position-zero chunk of 2 GiB is refused", unreasonable,
	  0x7fffffff, 0 },
	{ "zero-4gib", "RFC 8166 8.1.4", "a position-zero chunk of 2^32-1 bytes is refused",
	  unreasonable, 0xffffffff, 0 },
	{ "read-bad-handle", "RFC 8166 4.5.3",
	  "a Read chunk of an unknown handle: the server goes on", bad_read_memory, BAD_HANDLE, 0 },
	{ "read-bad-offset", "RFC 8166 4.5.3",
	  "a Read chunk outside of its region: the server goes on", bad_read_memory, BAD_OFFSET,
	  0 },
	{ "read-too-long", "RFC 8166 4.5.3", "a Read chunk beyond its region: the server goes on",
	  bad_read_memory, TOO_LONG, 0 },
	{ "zero-bad-handle", "RFC 8166 4.5.3",
	  "a Long Call of an unknown handle: the server goes on", bad_zero_memory, BAD_HANDLE, 0 },
	{ "zero-bad-offset", "RFC 8166 4.5.3",
	  "a Long Call outside of its region: the server goes on", bad_zero_memory, BAD_OFFSET, 0 },
	{ "write-list-bad-handle", "RFC 8166 4.5.3",
	  "a Write chunk of an unknown handle: the server goes on", bad_write_memory, BAD_HANDLE,
	  0 },
	{ "write-list-bad-offset", "RFC 8166 4.5.3",
	  "a Write chunk outside of its region: the server goes on", bad_write_memory, BAD_OFFSET,
	  0 },
	{ "zero-bad-again", "RFC 8166 4.5.3", "ten connections that end so", bad_memory_again,
	  BAD_HANDLE, CF_LONG },
	{ "read-bad-retry", "RFC 8166 4.5.3",
	  "a call whose Read chunk broke the connection comes again: ERR_CHUNK", chunk_again,
	  READ_AGAIN, CF_SHOULD },
	{ "zero-bad-retry", "RFC 8166 4.5.3", "the same of a Long Call", chunk_again, ZERO_AGAIN,
	  CF_SHOULD },
	{ "write-bad-retry", "RFC 8166 4.5.3", "the same of a Write chunk", chunk_again,
	  WRITE_AGAIN, CF_SHOULD },
	{ "reply-bad-retry", "RFC 8166 4.5.3", "the same of a Reply chunk", chunk_again,
	  REPLY_AGAIN, CF_SHOULD },
};

const struct cf_group cf_group_lists = { "lists", 601, cases, rn_array_size(cases) };

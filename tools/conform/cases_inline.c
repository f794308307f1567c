/* SPDX-License-Identifier: BSD-2-Clause */
/* Inline thresholds: RFC 8166 section 3.3.2, RFC 8797 section 4.2. t->arg is the size announced. */
#include <string.h>

#include "lib/util.h"
#include "tools/conform/conform_call.h"
#include "tools/conform/nfs3.h"

#define NAME "inline"

static bool open_size(struct cf_test *t, uint32_t size)
{
	struct cf_conn_options o = { .inline_size = size, .recvs = 8, .sends = 16 };

	return cf_open(t, &o) != NULL;
}

static size_t call_size(struct cf_test *t, const struct cf_call *c)
{
	return cf_call_encode(c, cf_alloc_raw(t, CF_INLINE_MAX));
}

/* Measures the bytes of a READ's reply beside its data, which vary as attributes are optional. */
static bool read_overhead(struct cf_test *t, const struct cf_fh *fh, uint32_t *overhead)
{
	struct cf3_read_result got;
	struct cf_reply *r = cf_ask(t, cf3_read(t, fh, 0, 4));

	if (!r || !cf3_read_result(t, r, false, &got))
		return false;
	*overhead = r->len - 4;
	return true;
}

static bool inline_check_read(struct cf_test *t, struct cf_reply *r, uint32_t want)
{
	struct cf3_read_result got;

	if (!cf3_read_result(t, r, false, &got))
		return false;
	if (got.count != want)
		return cf_fail(t, "a whole READ", "%u bytes of %u", got.count, want);
	for (uint32_t i = 0; i < want; i++)
		if (got.data[i] != cf_pattern(i))
			return cf_fail(t, "the file's bytes", "byte %u differs", i);
	return true;
}

/* A WRITE whose message is exactly as long as the threshold. */
static bool write_at(struct cf_test *t)
{
	struct cf_fh fh;

	if (!cf3_make_file(t, NAME, 4, &fh))
		return false;
	uint32_t len = t->conn->call_inline - call_size(t, cf3_write(t, &fh, 0, 0, NULL));
	uint8_t *data = cf_alloc(t, len);
	cf_fill_pattern(data, 5, len);
	struct cf_call *c = cf3_write(t, &fh, 0, len, data);
	if (call_size(t, c) != t->conn->call_inline)
		return cf_skip(t, "no message of just this length");
	struct cf_reply *r = cf_ask(t, c);
	return r && cf3_status(t, r, CF3_OK) && cf3_file_is(t, &fh, data, rn_min(len, 8192));
}

static void call_at(struct cf_test *t)
{
	if (open_size(t, t->arg))
		write_at(t);
}

static bool inline_read_at(struct cf_test *t, uint32_t more)
{
	struct cf_fh fh;
	uint32_t overhead;

	if (!cf3_make_file(t, NAME, t->conn->reply_inline + 1000, &fh) ||
	    !read_overhead(t, &fh, &overhead))
		return false;
	uint32_t count = t->conn->reply_inline - overhead + more;
	struct cf_call *c = cf3_read(t, &fh, 0, count);
	if (more && !cf_offer_reply(t, c, count + 1024, 1))
		return false;
	/* Offers a Reply chunk only with `more`, since it makes the header longer. */
	struct cf_reply *r = cf_ask(t, c);
	if (!r || !inline_check_read(t, r, count))
		return false;
	if (more && r->h.proc != CF_NOMSG)
		return cf_fail(t, "RDMA_NOMSG", "RDMA_MSG of %zu bytes", r->len);
	if (!more && (r->h.proc != CF_MSG || r->len != t->conn->reply_inline))
		return cf_fail(t, "an RDMA_MSG that fills the threshold", "%zu bytes", r->len);
	return true;
}

static void reply_at(struct cf_test *t)
{
	if (open_size(t, t->arg))
		inline_read_at(t, 0);
}

/* Asks for one byte more than fits, which is four with its padding. */
static void reply_over(struct cf_test *t)
{
	if (open_size(t, t->arg))
		inline_read_at(t, 1);
}

static void reply_over_no_chunk(struct cf_test *t)
{
	struct cf_fh fh;
	uint32_t overhead;

	/* The Receives could take a longer message, so only the server's restraint is tested. */
	struct cf_conn_options o = { .inline_size = t->arg, .recv_size = 2 * t->arg };
	if (!cf_open(t, &o) || !cf3_make_file(t, NAME, 2 * t->arg, &fh) ||
	    !read_overhead(t, &fh, &overhead))
		return;
	struct cf_call *c = cf3_read(t, &fh, 0, t->conn->reply_inline - overhead + 1);
	if (cf_refused(t, c))
		cf_alive(t);
}

/* Lists in the reply count, too: a call with a big Write list leaves less room. */
static void lists_count(struct cf_test *t)
{
	struct cf_fh fh;
	uint32_t overhead;

	if (!open_size(t, CF_INLINE_MIN) || !cf3_make_file(t, NAME, 3000, &fh) ||
	    !read_overhead(t, &fh, &overhead))
		return;
	/* Size of the header of an unused Reply chunk of 8 segments: 4 + 8 * 16 bytes. */
	uint32_t count = CF_INLINE_MIN - overhead - (4 + 8 * 16);
	struct cf_call *c = cf3_read(t, &fh, 0, count);
	if (!cf_offer_reply(t, c, 4096, 8))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (!r || !inline_check_read(t, r, count))
		return;
	if (r->h.proc == CF_NOMSG)
		return; /* section 4.3.3 permits the Reply chunk even if inline would do */
	c = cf3_read(t, &fh, 0, count + 1);
	if (!cf_offer_reply(t, c, 4096, 8))
		return;
	r = cf_ask(t, c);
	if (r && inline_check_read(t, r, count + 1) && r->h.proc != CF_NOMSG)
		cf_fail(t, "RDMA_NOMSG: header and payload exceed the threshold", "RDMA_MSG");
}

/* Tests every size that can be announced: 1024 to 262144 in steps of 1024. */
static void every_size(struct cf_test *t)
{
	struct cf_fh fh;
	uint32_t overhead;

	if (!cf_open(t, NULL) || !cf3_make_file(t, NAME, 8192, &fh) ||
	    !read_overhead(t, &fh, &overhead))
		return;
	for (uint32_t size = CF_INLINE_MIN; size <= CF_INLINE_MAX; size += 1024) {
		struct cf_conn_options o = { .inline_size = size, .recvs = 2, .sends = 2 };
		struct cf_memory *mark = cf_mark(t);

		cf_close(t, t->conn, true);
		if (!cf_open(t, &o))
			return;
		uint32_t count = rn_min(t->conn->reply_inline - overhead, 8192);
		struct cf_reply *r = cf_ask(t, cf3_read(t, &fh, 0, count));
		if (!r || !inline_check_read(t, r, count))
			return;
		cf_release(t, mark);
	}
}

/*
 * Sends a message that is too long. The device may end the connection, but the server must go on.
 */
static void call_over(struct cf_test *t)
{
	struct cf_received in;

	uint32_t len = t->conn->server.recv_size + t->arg;
	struct cf_call *c = cf_call_new(t, CF_PROG_NFS, 3, 0);
	uint8_t *msg = cf_alloc(t, CF_INLINE_MAX + 8192);
	cf_call_encode(c, msg);
	if (!cf_send_bytes(t, msg, len))
		return;
	enum cf_got got = cf_conn_receive(t->conn, &in, cf_now_ms() + 1000);
	/* The server may answer, as its Receives may be longer than it announced. */
	if (got == CF_GOT_MESSAGE || got == CF_GOT_TIMEOUT) {
		cf_alive(t);
		return;
	}
	if (cf_reopen(t))
		cf_alive(t);
}

#define AT(size)                                                                                   \
	{ "call-at-" #size,                                                                        \
	  "RFC 8166 3.3.2",                                                                        \
	  "a call that fills the threshold, with " #size,                                          \
	  call_at,                                                                                 \
	  size,                                                                                    \
	  CF_OWN_CONN },                                                                           \
		{ "reply-at-" #size,                                                               \
		  "RFC 8166 3.3.2",                                                                \
		  "a reply that fills the threshold, with " #size,                                 \
		  reply_at,                                                                        \
		  size,                                                                            \
		  CF_OWN_CONN },                                                                   \
	{                                                                                          \
		"reply-over-" #size, "RFC 8166 3.5.3",                                             \
			"a reply one byte over the threshold goes to the Reply chunk, "            \
			"with " #size,                                                             \
			reply_over, size, CF_OWN_CONN                                              \
	}

static const struct cf_case cases[] = {
	AT(1024),
	AT(2048),
	AT(3072),
	AT(4096),
	AT(8192),
	AT(16384),
	AT(65536),
	AT(262144),
	{ "inline-every-size", "RFC 8797 4.2", "every size that can be announced", every_size, 0,
	  CF_OWN_CONN | CF_LONG },
	{ "reply-over-no-chunk-1024", "RFC 8166 4.5.3",
	  "a reply over 1024 bytes without a Reply chunk: ERR_CHUNK", reply_over_no_chunk, 1024,
	  CF_OWN_CONN },
	{ "reply-over-no-chunk-4096", "RFC 8166 4.5.3",
	  "a reply over 4096 bytes without a Reply chunk: ERR_CHUNK", reply_over_no_chunk, 4096,
	  CF_OWN_CONN },
	{ "reply-lists-count", "RFC 8166 4.3.3",
	  "the lists that go back count against the threshold", lists_count, 0, CF_OWN_CONN },
	{ "call-over-1", "RFC 8166 3.3", "a call one byte longer than the server's Receives",
	  call_over, 1, 0 },
	{ "call-over-4096", "RFC 8166 3.3", "a call 4096 bytes longer than the server's Receives",
	  call_over, 4096, 0 },
};

const struct cf_group cf_group_inline = { "inline", 201, cases, rn_array_size(cases) };

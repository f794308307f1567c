/* SPDX-License-Identifier: BSD-2-Clause */
/* The private message of connection establishment: RFC 8797. */
#include <string.h>

#include "lib/util.h"
#include "tools/conform/conform_call.h"
#include "tools/conform/nfs3.h"

#define NAME "private"
#define BIG 4096u
#define CAPACITY 56u /* private data that a connection request has on InfiniBand */

/* Opens a connection with this private data, and with Receives that could take a reply that is too
 * long. */
static bool open_with(struct cf_test *t, const uint8_t *data, size_t len)
{
	struct cf_conn_options o = { .private_data = data, .private_len = len, .recv_size = BIG };

	return cf_open(t, &o) != NULL;
}

/* Checks that READ returns all data inline. */
static bool private_read_inline(struct cf_test *t, const struct cf_fh *fh, uint32_t count)
{
	struct cf3_read_result got;
	struct cf_reply *r = cf_ask(t, cf3_read(t, fh, 0, count));

	if (!r || !cf3_read_result(t, r, false, &got))
		return false;
	return got.count == count || cf_fail(t, "a whole READ", "%u bytes", got.count);
}

/* Checks that the server sends at most 1024 bytes at once. A reply of 1300 bytes does not fit, and
 * the call offers no chunk, so the server must refuse it. */
static void only_default(struct cf_test *t)
{
	struct cf_fh fh;

	t->conn->reply_inline = CF_INLINE_MIN;
	if (cf3_make_file(t, NAME, 2000, &fh) && cf_refused(t, cf3_read(t, &fh, 0, 1300)))
		cf_alive(t);
}

/* Checks that the server obeys the sizes of this client's private message. */
static void in_force(struct cf_test *t)
{
	struct cf_fh fh;

	if (t->conn->server.send_size < BIG) {
		cf_skip(t, "the server itself does not go above %u bytes",
			t->conn->server.send_size);
		return;
	}
	t->conn->reply_inline = BIG;
	if (cf3_make_file(t, NAME, 2000, &fh) && private_read_inline(t, &fh, 1300))
		cf_alive(t);
}

static void absent(struct cf_test *t)
{
	struct cf_conn_options o = { .no_private = true };

	if (cf_open(t, &o))
		cf_alive(t);
}

static void absent_limits(struct cf_test *t)
{
	struct cf_conn_options o = { .no_private = true, .recv_size = BIG };

	if (cf_open(t, &o))
		only_default(t);
}

static void private_answered(struct cf_test *t)
{
	const struct cf_private *p = &t->conn->server;

	if (!p->found && !p->version)
		cf_skip(t, "the server sends no private message: it need not");
	else if (p->version != 1 || (p->flags & 0xfe))
		cf_fail(t, "version 1, reserved bits zero", "version %u, flags %02x", p->version,
			p->flags);
	else
		cf_alive(t);
}

/* Puts t->arg other bytes before the private message. */
static void at_offset(struct cf_test *t)
{
	uint8_t data[CAPACITY];

	memset(data, 0x11, sizeof(data));
	cf_private_encode(data + t->arg, false, BIG, BIG);
	if (open_with(t, data, t->arg + CF_PRIVATE_SIZE))
		in_force(t);
}

static void with_trailer(struct cf_test *t)
{
	uint8_t data[CAPACITY];

	memset(data, 0xee, sizeof(data));
	cf_private_encode(data, false, BIG, BIG);
	if (open_with(t, data, sizeof(data)))
		in_force(t);
}

/* Puts the first bytes of the format identifier before the whole message. */
static void false_start(struct cf_test *t)
{
	uint8_t data[CAPACITY] = { 0xf6, 0xab, 0x0e, 0xf6, 0xab };

	cf_private_encode(data + 5, false, BIG, BIG);
	if (open_with(t, data, 5 + CF_PRIVATE_SIZE))
		in_force(t);
}

static void other_version(struct cf_test *t)
{
	uint8_t data[CF_PRIVATE_SIZE];

	cf_private_encode(data, false, BIG, BIG);
	data[4] = t->arg;
	if (open_with(t, data, sizeof(data)))
		only_default(t);
}

static void other_format(struct cf_test *t)
{
	uint8_t data[CF_PRIVATE_SIZE];

	cf_private_encode(data, false, BIG, BIG);
	data[t->arg] ^= 1;
	if (open_with(t, data, sizeof(data)))
		only_default(t);
}

/* Sends only the first t->arg bytes of the message. InfiniBand pads with zeros, which encode the
 * same sizes. */
static void private_cut(struct cf_test *t)
{
	uint8_t data[CF_PRIVATE_SIZE];

	cf_private_encode(data, false, BIG, BIG);
	if (open_with(t, data, t->arg))
		only_default(t);
}

/* The message starts so late that the private data end within it. */
static void cut_by_the_end(struct cf_test *t)
{
	uint8_t data[CAPACITY + CF_PRIVATE_SIZE];

	memset(data, 0x11, sizeof(data));
	cf_private_encode(data + CAPACITY - t->arg, false, BIG, BIG);
	if (open_with(t, data, CAPACITY))
		only_default(t);
}

static void reserved_bits(struct cf_test *t)
{
	uint8_t data[CF_PRIVATE_SIZE];

	cf_private_encode(data, false, BIG, BIG);
	data[5] = 0xfe; /* all but R */
	if (open_with(t, data, sizeof(data)))
		in_force(t);
}

/* Reserved bits do not mean R: the reply to a call with a chunk must not invalidate, which
 * cf_answers checks. */
static void reserved_is_not_r(struct cf_test *t)
{
	uint8_t data[CF_PRIVATE_SIZE];
	struct cf_fh fh;

	cf_private_encode(data, false, BIG, BIG);
	data[5] = 0xfe;
	if (!open_with(t, data, sizeof(data)) || !cf3_make_file(t, NAME, 2000, &fh))
		return;
	struct cf_call *c = cf3_read(t, &fh, 0, 1300);
	if (cf_offer_write(t, c, 1300, 1))
		cf_ask(t, c);
}

static void sizes_differ(struct cf_test *t)
{
	uint8_t data[CF_PRIVATE_SIZE];

	if (t->arg) { /* long calls, short replies */
		cf_private_encode(data, false, BIG, CF_INLINE_MIN);
		if (open_with(t, data, sizeof(data)))
			only_default(t);
	} else {
		cf_private_encode(data, false, CF_INLINE_MIN, BIG);
		if (open_with(t, data, sizeof(data)))
			in_force(t);
	}
}

/* A server must keep to its own announced size, even if the client could take more. */
static void huge(struct cf_test *t)
{
	struct cf_conn_options o = { .inline_size = CF_INLINE_MAX, .recvs = 8 };
	struct cf_fh fh;
	struct cf3_read_result got;

	if (!cf_open(t, &o) || !cf3_make_file(t, NAME, 300000, &fh))
		return;
	uint32_t room = t->conn->reply_inline;
	if (room < 2048 || !private_read_inline(t, &fh, room - 512))
		return;
	/* The reply by a Reply chunk must keep to the size, too. */
	struct cf_call *c = cf3_read(t, &fh, 0, room);
	if (!cf_offer_reply(t, c, room + 1024, 1))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (r)
		cf3_read_result(t, r, false, &got);
}

/* The sizes of one connection do not apply to the next. */
static void private_change(struct cf_test *t)
{
	struct cf_conn_options big = { .inline_size = BIG };
	struct cf_conn_options none = { .no_private = true, .recv_size = BIG };
	struct cf_fh fh;

	if (!cf_open(t, &big) || !cf3_make_file(t, NAME, 2000, &fh))
		return;
	if (t->conn->reply_inline >= 2048 && !private_read_inline(t, &fh, 1300))
		return;
	cf_close(t, t->conn, true);
	if (cf_open(t, &none))
		only_default(t);
}

#define OWN(id, paragraph, title, run, arg)                                                        \
	{                                                                                          \
		id, "RFC 8797 " paragraph, title, run, arg, CF_OWN_CONN                            \
	}
static const struct cf_case cases[] = {
	OWN("private-absent", "5.1", "a connection without private data works", absent, 0),
	OWN("private-absent-limits", "5.1", "without a message no reply exceeds 1024 bytes",
	    absent_limits, 0),
	{ "private-answered", "RFC 8797 4", "the server's own message: version 1, reserved bits 0",
	  private_answered, 0, 0 },
	OWN("private-offset-0", "5.2", "the message is found at the start", at_offset, 0),
	OWN("private-offset-1", "5.2", "the message is found at offset 1", at_offset, 1),
	OWN("private-offset-2", "5.2", "the message is found at offset 2", at_offset, 2),
	OWN("private-offset-3", "5.2", "the message is found at offset 3", at_offset, 3),
	OWN("private-offset-4", "5.2", "the message is found at offset 4", at_offset, 4),
	OWN("private-offset-21", "5.2", "the message is found at offset 21", at_offset, 21),
	OWN("private-offset-48", "5.2", "the message is found where it just fits", at_offset, 48),
	OWN("private-trailer", "5.2", "what follows the message is ignored", with_trailer, 0),
	OWN("private-false-start", "5.2", "the search goes on after part of the identifier",
	    false_start, 0),
	OWN("private-version-0", "5.2", "version 0 counts as no message", other_version, 0),
	OWN("private-version-2", "5.2", "version 2 counts as no message", other_version, 2),
	OWN("private-version-255", "5.2", "version 255 counts as no message", other_version, 255),
	OWN("private-format-first", "5.2", "another identifier counts as no message", other_format,
	    0),
	OWN("private-format-last", "5.2", "an identifier wrong in its last bit is another",
	    other_format, 3),
	OWN("private-cut-4", "5.2", "the identifier alone counts as no message", private_cut, 4),
	OWN("private-cut-5", "5.2", "a message cut after its version counts as none", private_cut,
	    5),
	OWN("private-cut-7", "5.2", "a message without its last byte counts as none", private_cut,
	    7),
	OWN("private-cut-by-end", "5.2", "a message that the private data cuts counts as none",
	    cut_by_the_end, 4),
	OWN("private-cut-by-end-1", "5.2", "also if one byte is missing", cut_by_the_end, 7),
	OWN("private-reserved", "4", "reserved bits are ignored: the sizes hold", reserved_bits, 0),
	OWN("private-reserved-r", "4.1", "reserved bits are not the R bit: no invalidation",
	    reserved_is_not_r, 0),
	OWN("private-short-replies", "4.2", "replies keep to the client's Receive Size",
	    sizes_differ, 1),
	OWN("private-short-calls", "4.2", "replies are not bound by the client's Send Size",
	    sizes_differ, 0),
	OWN("private-huge", "4.2", "replies keep to the server's own Send Size", huge, 0),
	OWN("private-change", "4", "a new connection starts from its own message", private_change,
	    0),
};

const struct cf_group cf_group_private = { "private", 101, cases, rn_array_size(cases) };

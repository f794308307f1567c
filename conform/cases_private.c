/* SPDX-License-Identifier: BSD-2-Clause */
/* The private message of connection establishment: RFC 8797. */
#include <string.h>

#include "conform/call.h"
#include "conform/nfs3.h"
#include "lib/checked.h"

/* A private message with these bytes in front of it and behind. */
struct shape {
	unsigned before, after;
};

static bool open_with(struct cf_test *t, const uint8_t *data, size_t len)
{
	struct cf_conn_options o = cf_default_options(t->run);

	o.private_data = data;
	o.private_len = len;
	return cf_open(t, &o) != NULL;
}

/* The server may not send more than 1024 bytes at once, nor expect to get more. */
static bool behaves_as_default(struct cf_test *t)
{
	struct cf_fh fh;

	t->conn->reply_inline = CF_INLINE_MIN;
	if (!cf3_make_file(t, "private", 2000, &fh))
		return false;
	/* 1300 bytes do not fit 1024, and the call offers no chunk. */
	return cf_refused(t, cf3_read(t, &fh, 0, 1300)) && cf_alive(t);
}

static void absent(struct cf_test *t)
{
	struct cf_conn_options o = { .no_private = true };

	if (cf_open(t, &o))
		cf_alive(t);
}

static void absent_limits(struct cf_test *t)
{
	struct cf_conn_options o = { .no_private = true, .recv_size = 4096 };

	if (cf_open(t, &o))
		behaves_as_default(t);
}

static void answered(struct cf_test *t)
{
	const struct cf_private *p = &t->conn->server;

	if (!p->found)
		cf_skip(t, "the server sends no private message: it need not");
	else if (p->version != 1 || (p->flags & 0xfe))
		cf_fail(t, "version 1, reserved bits zero", "version %u, flags %02x", p->version,
			p->flags);
	else
		cf_alive(t);
}

static void odd_offset(struct cf_test *t)
{
	uint8_t data[56];
	struct cf_fh fh;
	struct cf3_read_result got;

	memset(data, 0x11, sizeof(data));
	cf_private_encode(data + t->arg, false, 4096, 4096);
	if (!open_with(t, data, t->arg + CF_PRIVATE_SIZE))
		return;
	if (t->conn->reply_inline < 4096) {
		cf_skip(t, "the server does not go above the default inline size");
		return;
	}
	if (!cf3_make_file(t, "private", 2000, &fh))
		return;
	struct cf_reply *r = cf_ask(t, cf3_read(t, &fh, 0, 1300));
	if (r)
		cf3_read_result(t, r, false, &got);
}

static const struct cf_case cases[] = {
	{ "private-absent", "RFC 8797 5.1", "a connection without private data works", absent, 0,
	  CF_OWN_CONN },
	{ "private-absent-limits", "RFC 8797 5.1",
	  "without a private message no reply exceeds 1024 bytes", absent_limits, 0, CF_OWN_CONN },
	{ "private-answered", "RFC 8797 4", "the server's own message: version 1, reserved bits 0",
	  answered, 0, 0 },
	{ "private-offset-0", "RFC 8797 5.2", "the message is found at offset 0", odd_offset, 0,
	  CF_OWN_CONN },
	{ "private-offset-1", "RFC 8797 5.2", "the message is found at offset 1", odd_offset, 1,
	  CF_OWN_CONN },
};

const struct cf_group cf_group_private = { "private", 101, cases, rn_array_size(cases) };

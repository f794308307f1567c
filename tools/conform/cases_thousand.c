/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thousand connections at once. No RFC says how many a server must have. A server that refuses
 * some, or closes old ones for new ones, is reported as a skip. A server that does not answer on an
 * open connection fails.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "lib/util.h"
#include "tools/conform/conform_check.h"

#define MANY 1000u

struct crowd {
	struct cf_conn *conn; /* array of MANY; connections that are not open are closed */
	unsigned tried, open;
	unsigned refused;
	int why_not; /* -errno of a limit of the client's machine */
};

/* Makes one NULL call. Returns CF_GOT_TIMEOUT also for a wrong answer. */
static enum cf_got ask_null(struct cf_test *t, struct cf_conn *conn)
{
	struct cf_call *c = cf_call_new_none(t, CF_PROG_NFS, 3, 0);
	uint8_t msg[128];
	struct cf_received in;
	size_t len = cf_call_encode(c, msg);

	if (cf_conn_send(conn, msg, len, t->deadline) < 0)
		return CF_GOT_CLOSED;
	enum cf_got got = cf_conn_receive(conn, &in, t->deadline);
	if (got == CF_GOT_MESSAGE && (in.len < 28 || cf_word(in.data) != c->xid))
		return CF_GOT_TIMEOUT;
	return got;
}

/* Opens connections until there are enough, the server refuses, this machine has no more, or half
 * of the time is over. */
static void open_crowd(struct cf_test *t, struct crowd *many)
{
	struct cf_conn_options o = { .inline_size = CF_INLINE_MIN, .recvs = 2, .sends = 2 };
	int64_t until = cf_now_ms() + (t->deadline - cf_now_ms()) / 2;

	while (many->tried < MANY && many->refused < 10 && cf_now_ms() < until) {
		struct cf_conn *c = &many->conn[many->open];
		int rc = cf_conn_open(c, t->run->host, t->run->port, &o, t->deadline);

		many->tried++;
		if (!rc) {
			many->open++;
		} else if (rc == -ECONNREFUSED) {
			many->refused++;
		} else {
			many->why_not = rc;
			return;
		}
	}
}

static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Makes a call on each connection. Returns how many the server has closed; *silent: one got no
 * answer. */
static unsigned ask_crowd(struct cf_test *t, struct crowd *many, bool *silent)
{
	unsigned closed = 0;

	for (unsigned i = 0; i < many->open; i++)
		switch (ask_null(t, &many->conn[i])) {
		case CF_GOT_CLOSED:
			closed++;
			break;
		case CF_GOT_TIMEOUT:
			*silent = true;
			return closed;
		case CF_GOT_MESSAGE:
			break;
		}
	return closed;
}

static void thousand(struct cf_test *t)
{
	struct crowd many = { .conn = cf_alloc(t, MANY * sizeof(*many.conn)) };
	bool silent = false;

	raise_file_limit();
	open_crowd(t, &many);
	unsigned closed = ask_crowd(t, &many, &silent);
	for (unsigned i = 0; i < many.open; i++)
		cf_conn_close(&many.conn[i], false);
	if (silent)
		cf_fail(t, "an answer on every connection that is open",
			"none on one of %u connections", many.open);
	else if (many.why_not)
		cf_skip(t, "this machine could not make more than %u connections: %s", many.open,
			strerror(-many.why_not));
	else if (many.refused || closed)
		cf_skip(t, "the server kept %u of %u connections: it refused %u and closed %u",
			many.open - closed, many.tried, many.refused, closed);
	else if (many.open < MANY)
		cf_skip(t, "%u connections, all answered, in half of the case's time", many.open);
	if (!silent && cf_open(t, NULL))
		cf_alive(t);
}

static const struct cf_case cases[] = {
	{ "thousand", "RFC 8166 3.3", "a thousand connections, each of which is answered", thousand,
	  0, CF_OWN_CONN },
};

const struct cf_group cf_group_thousand = { "thousand", 2101, cases, rn_array_size(cases) };

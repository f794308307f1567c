/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Retransmission on a new connection (RFC 8166 section 4.5.5): a call that must not run twice, sent
 * again with its xid, gets the answer of its first run, whether or not that one arrived.
 */
#include <stdio.h>
#include <string.h>

#include "lib/util.h"
#include "tools/conform/conform_check.h"
#include "tools/conform/nfs3.h"

enum kind { CREATE, MKDIR, REMOVE, RMDIR, RENAME, SYMLINK };
/* Flags: whether the call is a Long Call the first and the second time, and has a Reply chunk. */
enum { LONG_FIRST = 16, LONG_AGAIN = 32, REPLY_CHUNK = 64 };
#define KIND(arg) ((enum kind)((arg)&15))

#define TEXT "where/it/points"

static bool retransmit_clear(struct cf_test *t, const char *name)
{
	return cf_ask(t, cf3_remove(t, &t->run->scratch, name)) &&
	       cf_ask(t, cf3_rmdir(t, &t->run->scratch, name));
}

/* Creates the objects that the call needs. */
static bool retransmit_prepare(struct cf_test *t, enum kind kind, const char *name)
{
	struct cf_fh fh;

	if (!retransmit_clear(t, name) || !retransmit_clear(t, "again-to"))
		return false;
	switch (kind) {
	case REMOVE:
	case RENAME:
		return cf3_make_file(t, name, 5, &fh);
	case RMDIR:
		return cf3_make_dir(t, name, &fh);
	default:
		return true;
	}
}

static struct cf_call *retransmit_make_call(struct cf_test *t, enum kind kind, const char *name,
					    uint32_t xid)
{
	const struct cf_fh *dir = &t->run->scratch;
	struct cf_call *c;

	switch (kind) {
	case CREATE:
		c = cf3_create(t, dir, name, CF3_GUARDED);
		break;
	case MKDIR:
		c = cf3_mkdir(t, dir, name);
		break;
	case REMOVE:
		c = cf3_remove(t, dir, name);
		break;
	case RMDIR:
		c = cf3_rmdir(t, dir, name);
		break;
	case RENAME:
		c = cf3_rename(t, dir, name, "again-to");
		break;
	default: /* the text is in a Read chunk, whose handle differs each time */
		c = cf3_symlink(t, dir, name, NULL, strlen(TEXT));
		if (!cf_reduce(t, c, TEXT, strlen(TEXT), 2))
			return NULL;
		break;
	}
	c->xid = xid;
	xdr_patch_u32(&c->rpc, 0, xid);
	return c;
}

static bool give_form(struct cf_test *t, struct cf_call *c, bool is_long)
{
	if (t->arg & REPLY_CHUNK && !cf_offer_reply(t, c, 1024, 1))
		return false;
	return !is_long || cf_make_long(t, c, 2);
}

/* Returns the next message if one comes soon. NULL is a verdict only after a bad message. */
static struct cf_reply *next_soon(struct cf_test *t)
{
	int64_t end = t->deadline, until = cf_until(t, t->run->timeout_ms / 6);

	t->deadline = until;
	struct cf_reply *r = cf_next(t);
	t->deadline = end;
	if (!r && t->verdict == CF_FAIL && cf_now_ms() < end &&
	    (t->conn->closed || cf_now_ms() >= until))
		t->verdict = CF_PASS;
	return r;
}

/*
 * Sends unanswered calls again on new connections until all are answered. Once may not be enough: a
 * server may drop a call that still runs for the lost connection, and the client must send it
 * again.
 */
static void until_answered(struct cf_test *t, struct cf_call **calls, unsigned n)
{
	unsigned left = n;

	while (left) {
		cf_close(t, t->conn, false);
		if (!cf_open(t, NULL) || cf_credits(t, n) < n)
			return;
		for (unsigned i = 0; i < n; i++)
			if (calls[i] && !cf_send(t, calls[i]))
				return;
		struct cf_reply *r;
		while (left && (r = next_soon(t))) {
			unsigned i = 0;
			while (i < n && !(calls[i] && calls[i]->xid == r->h.xid))
				i++;
			if (i == n) {
				cf_fail(t, "an answer to each call", "one to xid %08x", r->h.xid);
				return;
			}
			if (!cf_answers(t, calls[i], r) || !cf_expect_success(t, r) ||
			    !cf3_status(t, r, CF3_OK))
				return;
			calls[i] = NULL;
			left--;
		}
		if (t->verdict != CF_PASS)
			return;
		if (left && cf_now_ms() >= t->deadline) {
			cf_fail(t, "an answer to each call", "%u of %u have none", left, n);
			return;
		}
	}
}

static void again(struct cf_test *t)
{
	enum kind kind = KIND(t->arg);
	uint32_t xid = cf_xid(t);

	if (!retransmit_prepare(t, kind, "again"))
		return;
	struct cf_call *c = retransmit_make_call(t, kind, "again", xid);
	if (!c || !give_form(t, c, t->arg & LONG_FIRST) || !cf_send(t, c))
		return;
	struct cf_reply *r = cf_wait(t, c);
	if (!r || !cf_expect_success(t, r) || !cf3_status(t, r, CF3_OK) || !cf_reopen(t))
		return;
	c = retransmit_make_call(t, kind, "again", xid);
	if (!c || !give_form(t, c, t->arg & LONG_AGAIN))
		return;
	r = cf_ask(t, c);
	if (r && cf_peek_status(r) != CF3_OK)
		cf_fail(t, "the answer of the first run: NFS3_OK", "NFS status %u",
			cf_peek_status(r));
}

/* Breaks a connection before its call is answered. */
static void lost(struct cf_test *t)
{
	if (!retransmit_prepare(t, t->arg, "again"))
		return;
	struct cf_call *c = retransmit_make_call(t, t->arg, "again", cf_xid(t));
	if (cf_send(t, c))
		until_answered(t, &c, 1);
}

/* Loses many calls in flight with their connection and sends all of them again. */
static void many_lost(struct cf_test *t)
{
	struct cf_call *calls[12];
	char name[16];

	for (unsigned i = 0; i < rn_array_size(calls); i++) {
		snprintf(name, sizeof(name), "again-%u", i);
		if (!retransmit_clear(t, name))
			return;
		calls[i] = retransmit_make_call(t, i % 2 ? MKDIR : CREATE, name, cf_xid(t));
	}
	unsigned n = cf_credits(t, rn_array_size(calls));
	for (unsigned i = 0; i < n; i++)
		if (!cf_send(t, calls[i]))
			return;
	if (n)
		until_answered(t, calls, n);
}

#define AGAIN(kind, name, how, title)                                                              \
	{                                                                                          \
		"again-" name, "RFC 8166 4.5.5", title, again, (kind) | (how), 0                   \
	}

#define LOST(kind, name, title)                                                                    \
	{                                                                                          \
		"again-" name "-lost", "RFC 8166 4.5.5", title, lost, kind, 0                      \
	}

static const struct cf_case cases[] = {
	AGAIN(CREATE, "create", 0, "CREATE (guarded) sent again on a new connection"),
	AGAIN(MKDIR, "mkdir", 0, "MKDIR sent again"),
	AGAIN(REMOVE, "remove", 0, "REMOVE sent again"),
	AGAIN(RMDIR, "rmdir", 0, "RMDIR sent again"),
	AGAIN(RENAME, "rename", 0, "RENAME sent again"),
	AGAIN(SYMLINK, "symlink", 0, "SYMLINK with a Read chunk sent again, with another handle"),
	AGAIN(MKDIR, "long-inline", LONG_FIRST, "a Long Call sent again inline"),
	AGAIN(REMOVE, "inline-long", LONG_AGAIN, "a short call sent again as a Long Call"),
	AGAIN(RENAME, "reply-chunk", REPLY_CHUNK, "RENAME with a Reply chunk sent again"),
	LOST(CREATE, "create", "CREATE whose answer was lost sent again"),
	LOST(MKDIR, "mkdir", "MKDIR whose answer was lost sent again"),
	LOST(REMOVE, "remove", "REMOVE whose answer was lost sent again"),
	LOST(RENAME, "rename", "RENAME whose answer was lost sent again"),
	{ "again-many", "RFC 8166 4.5.5", "many calls lost with their connection and sent again",
	  many_lost, 0, 0 },
};

const struct cf_group cf_group_again = { "again", 1701, cases, rn_array_size(cases) };

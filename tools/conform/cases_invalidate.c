/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remote invalidation (RFC 8797 section 4.1). In every case cf_answers() checks that a Send with
 * Invalidate comes only if both sides have offered it, and only with a handle of its call. The
 * cases here make calls that may provoke one. Where the device has memory windows, the handles
 * belong to them: some devices cannot invalidate plain regions of a user.
 */
#include <string.h>

#include "lib/util.h"
#include "tools/conform/conform_check.h"
#include "tools/conform/memory_window.h"
#include "tools/conform/nfs3.h"

enum { NO_CHUNK, WITH_READ, WITH_WRITE, WITH_REPLY, WITH_ALL, WITH_ERROR };

#define LEN 2000u

/* Memory whose handles the chunks of a call name. */
struct handles {
	struct cf_test *t;
	bool apart; /* true: one window for each chunk; false: one window for all */
	struct cf_window *w;
	uint32_t used;
};

static bool next_seg(struct handles *h, uint32_t len, struct cf_seg *seg)
{
	if (!h->w || h->apart || h->used + len > h->w->len) {
		h->w = cf_window_invalidatable(h->t, h->apart ? len : 4 * LEN);
		h->used = 0;
	}
	if (!h->w)
		return false;
	*seg = cf_window_seg(h->w, h->used, len);
	h->used += len;
	return true;
}

static bool put_write_data(struct handles *h, struct cf_call *c, uint32_t len)
{
	struct cf_seg seg;

	if (!next_seg(h, len, &seg))
		return false;
	cf_fill_pattern(h->w->data + (seg.offset - (uintptr_t)h->w->data), 0, len);
	cf_add_read(&c->lists, cf_position(c), seg);
	c->reduced += len + rn_xdr_pad(len);
	return true;
}

static bool invalidate_put_chunks(struct handles *h, struct cf_call *c, long kind)
{
	struct cf_seg seg;

	if (kind == WITH_WRITE || kind == WITH_ALL) {
		if (!next_seg(h, LEN, &seg))
			return false;
		cf_add_seg(cf_add_write(&c->lists), seg);
	}
	if (kind == WITH_REPLY || kind == WITH_ALL || kind == WITH_ERROR) {
		if (!next_seg(h, LEN, &seg))
			return false;
		cf_add_seg(cf_add_reply(&c->lists), seg);
	}
	return true;
}

static struct cf_call *call_with(struct handles *h, const struct cf_fh *fh, long kind)
{
	struct cf_test *t = h->t;
	struct cf_call *c;

	if (kind == WITH_READ || kind == WITH_ALL) {
		c = cf3_write(t, fh, 0, LEN, NULL);
		if (!put_write_data(h, c, LEN))
			return NULL;
	} else if (kind == WITH_WRITE) {
		c = cf3_read(t, fh, 0, LEN);
	} else {
		c = cf3_getattr(t, fh);
	}
	if (kind == WITH_ERROR)
		c->proc = 99;
	return invalidate_put_chunks(h, c, kind) ? c : NULL;
}

static void one_call(struct cf_test *t, bool apart, long kind)
{
	struct handles h = { .t = t, .apart = apart };
	struct cf_fh fh;

	if (!cf3_make_file(t, "inval-file", LEN, &fh))
		return;
	struct cf_call *c = call_with(&h, &fh, kind);
	struct cf_reply *r = c ? cf_ask_any(t, c) : NULL;
	if (!r)
		return;
	if (kind == WITH_ERROR) {
		cf_expect_err_chunk(t, r);
		return;
	}
	if (!cf_expect_success(t, r) || cf_peek_status(r) != CF3_OK) {
		cf_fail(t, "a successful reply", "an error");
		return;
	}
	if (kind == WITH_WRITE)
		cf_chunk_has_pattern(t, &c->lists.write[0], &r->h.lists.write[0], 0, LEN);
}

/* The client does not mention invalidation, or declares that it does not support it. */
static void not_offered(struct cf_test *t)
{
	struct cf_conn_options o = cf_default_options(t->run);

	o.invalidate = false;
	if (cf_open(t, &o))
		one_call(t, true, t->arg);
}

static void no_message(struct cf_test *t)
{
	struct cf_conn_options o = { .no_private = true };

	if (cf_open(t, &o))
		one_call(t, true, t->arg);
}

static bool open_offering(struct cf_test *t)
{
	struct cf_conn_options o = cf_default_options(t->run);

	o.invalidate = true;
	return cf_open(t, &o) != NULL;
}

static void offered_one(struct cf_test *t)
{
	if (open_offering(t))
		one_call(t, false, t->arg);
}

static void offered_several(struct cf_test *t)
{
	if (open_offering(t))
		one_call(t, true, t->arg);
}

/* Many calls in flight, each with a handle of its own: none is invalidated by another's reply. */
static void offered_many(struct cf_test *t)
{
	struct handles h = { .t = t, .apart = true };
	struct cf_call *calls[32];
	struct cf_fh fh;

	if (!open_offering(t) || !cf3_make_file(t, "inval-file", LEN, &fh))
		return;
	unsigned n = cf_credits(t, rn_array_size(calls));
	for (unsigned i = 0; i < n; i++)
		if (!(calls[i] = call_with(&h, &fh, i % 2 ? WITH_WRITE : WITH_REPLY)))
			return;
	if (n)
		cf_many(t, calls, n, n, NULL);
}

/* A server that has not set its R bit must not invalidate, even if the client has set its own. */
static void server_cannot(struct cf_test *t)
{
	if (!open_offering(t))
		return;
	if (t->conn->server.invalidate)
		cf_skip(t, "the server offers remote invalidation on this device");
	else
		one_call(t, false, WITH_REPLY);
}

static const struct cf_case cases[] = {
	{ "inval-not-offered-read", "RFC 8797 4.1", "R bit clear: WRITE with a Read chunk",
	  not_offered, WITH_READ, CF_OWN_CONN },
	{ "inval-not-offered-write", "RFC 8797 4.1", "R bit clear: READ with a Write chunk",
	  not_offered, WITH_WRITE, CF_OWN_CONN },
	{ "inval-not-offered-reply", "RFC 8797 4.1", "R bit clear: GETATTR with a Reply chunk",
	  not_offered, WITH_REPLY, CF_OWN_CONN },
	{ "inval-no-message", "RFC 8797 5.1", "no private message: none is invalidated", no_message,
	  WITH_WRITE, CF_OWN_CONN },
	{ "inval-server-cannot", "RFC 8797 4.1", "the server's R bit is clear: none is invalidated",
	  server_cannot, 0, CF_OWN_CONN },
	{ "inval-none", "RFC 8797 4.1", "offered, and a call without a handle", offered_one,
	  NO_CHUNK, CF_OWN_CONN },
	{ "inval-one-read", "RFC 8797 4.1", "offered, one handle in a Read chunk", offered_one,
	  WITH_READ, CF_OWN_CONN },
	{ "inval-one-write", "RFC 8797 4.1", "offered, one handle in a Write chunk", offered_one,
	  WITH_WRITE, CF_OWN_CONN },
	{ "inval-one-reply", "RFC 8797 4.1", "offered, one handle in a Reply chunk", offered_one,
	  WITH_REPLY, CF_OWN_CONN },
	{ "inval-one-shared", "RFC 8797 4.1", "offered, one handle in all three chunks",
	  offered_one, WITH_ALL, CF_OWN_CONN },
	{ "inval-several", "RFC 8797 4.1", "offered, three handles: at most one of them",
	  offered_several, WITH_ALL, CF_OWN_CONN },
	{ "inval-error", "RFC 8797 4.1", "offered, and the answer is RDMA_ERROR", offered_one,
	  WITH_ERROR, CF_OWN_CONN },
	{ "inval-many", "RFC 8797 4.1", "offered, many calls in flight: each its own handle",
	  offered_many, 0, CF_OWN_CONN },
};

const struct cf_group cf_group_invalidate = { "invalidate", 1501, cases, rn_array_size(cases) };

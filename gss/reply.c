/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From an answer in plain text to one with a verifier, and wrapped results (RFC 2203 section 5.3.3.2). Answers that
 * are kept for a retransmission are plain, so the retransmission's own sequence number is signed.
 */
#include "gss/gss_private.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"

/* Offsets in an accepted reply with an empty verifier. */
enum { STAT_AT = 8, FLAVOR_AT = 12, ACCEPT_AT = 20, RESULTS_AT = 24 };

static uint32_t word_at(const uint8_t *p, size_t at)
{
	uint32_t be;

	memcpy(&be, p + at, sizeof(be));
	return ntohl(be);
}

static void put_word(uint8_t *p, uint32_t v)
{
	const uint32_t be = htonl(v);

	memcpy(p, &be, sizeof(be));
}

struct mic {
	uint8_t bytes[GSS_MECH_MIC_MAX + 3];
	uint32_t len; /* 0: the library failed */
};

static void sign(struct gss_context *x, const uint8_t *msg, size_t len, struct mic *out)
{
	struct gss_mech_ctx *mech;

	memset(out, 0, sizeof(*out));
	mech = gss_copies_take(&x->copies);
	out->len = gss_mech_sign(mech, msg, len, out->bytes);
	gss_copies_give(&x->copies, mech);
}

static size_t padded(size_t len)
{
	return len + rn_xdr_pad((uint32_t)len);
}

/* Bytes of an accepted reply up to its results. */
static size_t head_size(const struct mic *m)
{
	return RESULTS_AT + padded(m->len);
}

/* Puts the verifier and the accept_stat behind the first words, which are there. */
static void put_head(uint8_t *reply, const struct mic *m, uint32_t accept_stat)
{
	uint8_t *p = reply + FLAVOR_AT;

	put_word(p, RPC_RPCSEC_GSS);
	put_word(p + 4, m->len);
	memcpy(p + 8, m->bytes, padded(m->len));
	put_word(p + 8 + padded(m->len), accept_stat);
}

/* Moves what is behind the verifier, bulk items' places too. The buffer has room: rpc_reply_head_size(). */
static void put_verifier(struct rpc_request *req, const struct mic *m)
{
	struct xdr_out *out = &req->out;
	const size_t by = padded(m->len);
	const uint32_t stat = word_at(out->base, ACCEPT_AT);

	memmove(out->base + RESULTS_AT + by, out->base + RESULTS_AT, out->used - RESULTS_AT);
	put_head(out->base, m, stat);
	out->used += by;
	out->size += by;
	for (unsigned i = 0; i < out->nbulks; i++)
		out->bulk[i].at += by;
}

/*
 * A reply that is being wrapped, as one piece: in the head's own buffer, if that holds all of it, or in a
 * temporary one, whose content then goes back to where the plain text was. So wrapping waits for no memory
 * that other replies hold.
 */
struct wrapping {
	uint8_t *reply;
	bool temporary;
	uint8_t *body; /* the sequence number, and the results behind it */
	size_t body_len;
	size_t end; /* bytes of the reply */
};

static void wrapping_free(struct wrapping *w)
{
	if (w->temporary)
		free(w->reply);
}

/* Lays out the reply: head, length word, a gap of `before` bytes, body, room for `behind`. The head's buffer has
 * that room beside its own content: rpc_reply_head_size(). */
static bool lay_out(struct rpc_request *req, const struct mic *m, size_t before, size_t behind,
		    struct wrapping *w)
{
	struct xdr_out *out = &req->out;
	const size_t results = xdr_out_total(out) - RESULTS_AT;
	const size_t body_at = head_size(m) + 4 + before;
	uint8_t first[FLAVOR_AT];

	w->temporary = out->nbulks > 0;
	w->reply = w->temporary ? malloc(body_at + 4 + results + behind) : out->base;
	if (!w->reply)
		return false;
	w->body = w->reply + body_at;
	w->body_len = 4 + results;
	memcpy(first, out->base, sizeof(first));
	/* The copy's own head lies before the results, and is overwritten: body_at is larger than it. */
	if (w->temporary)
		xdr_out_copy(out, w->body + 4 - RESULTS_AT);
	else
		memmove(w->body + 4, out->base + RESULTS_AT, results);
	memcpy(w->reply, first, sizeof(first));
	put_head(w->reply, m, RPC_SUCCESS);
	put_word(w->body, ((const struct gss_call *)(const void *)req->secured)->seq);
	return true;
}

/* Bulk items get as many octets as they had, so that each fills its buffer, in whole words; the head gets the rest. */
static void scatter(struct xdr_out *out, const struct wrapping *w)
{
	size_t at = 0, head = 0, n;

	for (unsigned i = 0; i < out->nbulks; i++) {
		struct xdr_out_bulk *bulk = &out->bulk[i];

		n = bulk->at - head;
		memcpy(out->base + head, w->reply + at, n);
		head += n;
		at += n;
		bulk->len &= ~3u;
		if (bulk->len > 0)
			memcpy(bulk->payload->data + bulk->off, w->reply + at, bulk->len);
		at += bulk->len;
	}
	memcpy(out->base + head, w->reply + at, w->end - at);
	out->used = head + w->end - at;
}

/* False: a bulk item's buffer is somebody else's too, or in a pipe. */
static bool may_scatter(const struct xdr_out *out)
{
	for (unsigned i = 0; i < out->nbulks; i++) {
		const struct rn_payload *p = out->bulk[i].payload;

		if (out->bulk[i].pipe ||
		    (p && atomic_load_explicit(&p->refs, memory_order_acquire) > 1))
			return false;
	}
	return true;
}

/* Makes a copy of the reply the reply, where its parts may not be overwritten. */
static bool replace(struct rpc_request *req, const struct wrapping *w)
{
	struct xdr_out *out = &req->out;
	struct rn_payload *p =
		w->end > RN_PAYLOAD_MAX ? NULL : rn_payload_get(req->server->pool, w->end);

	if (!p)
		return false;
	memcpy(p->data, w->reply, w->end);
	xdr_out_release(out);
	rn_payload_put(req->long_head);
	req->long_head = p;
	xdr_out_init(out, p->data, p->size);
	out->used = w->end;
	return true;
}

static bool put_back(struct rpc_request *req, struct wrapping *w)
{
	bool ok = true;

	if (!w->temporary)
		req->out.used = w->end;
	else if (may_scatter(&req->out))
		scatter(&req->out, w);
	else
		ok = replace(req, w);
	wrapping_free(w);
	return ok;
}

static bool wrap_integrity(struct rpc_request *req, const struct gss_call *c, const struct mic *m)
{
	const size_t behind = 4 + padded(c->context->mic_len);
	struct wrapping w;
	struct mic mine;
	uint8_t *p;

	if (!lay_out(req, m, 0, behind, &w))
		return false;
	sign(c->context, w.body, w.body_len, &mine);
	if (mine.len == 0 || mine.len > c->context->mic_len) {
		wrapping_free(&w);
		return false;
	}
	put_word(w.body - 4, (uint32_t)w.body_len);
	p = w.body + w.body_len;
	put_word(p, mine.len);
	memcpy(p + 4, mine.bytes, padded(mine.len));
	w.end = (size_t)(p - w.reply) + 4 + padded(mine.len);
	return put_back(req, &w);
}

static bool wrap_privacy(struct rpc_request *req, const struct gss_call *c, const struct mic *m)
{
	struct gss_context *x = c->context;
	const size_t len = 4 + xdr_out_total(&req->out) - RESULTS_AT;
	struct gss_mech_ctx *mech = gss_copies_take(&x->copies);
	size_t before, behind, token;
	struct wrapping w;
	bool ok;

	ok = gss_mech_wrap_sizes(mech, len, &before, &behind);
	if (!ok || before + behind > x->wrap_len || !lay_out(req, m, before, behind + 3, &w)) {
		gss_copies_give(&x->copies, mech);
		return false;
	}
	ok = gss_mech_wrap(mech, w.body, w.body_len, before, behind);
	gss_copies_give(&x->copies, mech);
	if (!ok) {
		wrapping_free(&w);
		return false;
	}
	token = before + w.body_len + behind;
	put_word(w.body - before - 4, (uint32_t)token);
	memset(w.body + w.body_len + behind, 0, rn_xdr_pad((uint32_t)token));
	w.end = (size_t)(w.body - before - w.reply) + padded(token);
	return put_back(req, &w);
}

bool gss_protect_reply(struct rpc_request *req)
{
	const struct gss_call *c = rn_container_of(req->secured, struct gss_call, base);
	struct xdr_out *out = &req->out;
	uint8_t seq[4];
	struct mic m;

	/* A denial has no verifier. */
	if (out->used < RESULTS_AT || word_at(out->base, STAT_AT) != RPC_MSG_ACCEPTED)
		return true;
	put_word(seq, c->seq);
	sign(c->context, seq, sizeof(seq), &m);
	if (m.len == 0 || m.len > c->context->mic_len)
		return false;
	/* Results of a call that failed are not wrapped, as there are none (section 5.3.3.4). */
	if (c->service == GSS_NONE || word_at(out->base, ACCEPT_AT) != RPC_SUCCESS) {
		put_verifier(req, &m);
		return true;
	}
	return c->service == GSS_INTEGRITY ? wrap_integrity(req, c, &m) : wrap_privacy(req, c, &m);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From an answer in plain text to one with a verifier, and wrapped results (RFC 2203 section 5.3.3.2), which stay in the
 * buffers that they are in: the head's has room for what is added. Answers that are kept for a retransmission are
 * plain, so the retransmission's own sequence number is signed.
 */
#include "gss/gss_private.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"

/* Offsets in an accepted reply with an empty verifier. */
enum { STAT_AT = 8, FLAVOR_AT = 12, ACCEPT_AT = 20, RESULTS_AT = 24 };

struct mic {
	uint8_t bytes[GSS_MECH_MIC_MAX + 3];
	uint32_t len; /* 0: the library failed */
};

static void gss_reply_sign(struct gss_context *x, const uint8_t *msg, size_t len, struct mic *out)
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

	rn_put32(p, RPC_RPCSEC_GSS);
	rn_put32(p + 4, m->len);
	memcpy(p + 8, m->bytes, padded(m->len));
	rn_put32(p + 8 + padded(m->len), accept_stat);
}

/* Moves what is behind the verifier, bulk items' places too. The buffer has room: rpc_reply_head_size(). */
static void gss_reply_put_verifier(struct rpc_request *req, const struct mic *m)
{
	struct xdr_out *out = &req->out;
	const size_t by = padded(m->len);
	const uint32_t stat = rn_get32(out->base + ACCEPT_AT);

	memmove(out->base + RESULTS_AT + by, out->base + RESULTS_AT, out->used - RESULTS_AT);
	put_head(out->base, m, stat);
	out->used += by;
	out->size += by;
	for (unsigned i = 0; i < out->nbulks; i++)
		out->bulk[i].at += by;
}

static void lengthen(struct xdr_out *out, size_t by)
{
	out->used += by;
	out->size += by;
}

/*
 * Moves the results on by so many bytes within the head. The last octets of an item that does not end with a word go to
 * the head, with their pad, since the pad is wrapped as well. The buffer has room: rpc_reply_head_size().
 */
static void move_results(struct xdr_out *out, size_t by)
{
	size_t end = out->used, shift = by;

	for (unsigned i = 0; i < out->nbulks; i++)
		shift += out->bulk[i].len % 4 ? 4 : 0;
	lengthen(out, shift);
	for (unsigned i = out->nbulks; i-- > 0;) {
		struct xdr_out_bulk *b = &out->bulk[i];
		const uint32_t rest = b->len % 4;

		memmove(out->base + b->at + shift, out->base + b->at, end - b->at);
		end = b->at;
		shift -= rest ? 4 : 0;
		b->at += shift;
		if (!rest)
			continue;
		b->len -= rest;
		memset(out->base + b->at, 0, 4);
		memcpy(out->base + b->at, b->payload->data + b->off + b->len, rest);
	}
	memmove(out->base + RESULTS_AT + by, out->base + RESULTS_AT, end - RESULTS_AT);
}

enum { PIECES = 2 * XDR_BULKS_MAX + 1 };
_Static_assert(PIECES + 2 <= GSS_MECH_PIECES, "a reply in its pieces can be wrapped");

static void gss_reply_add_piece(struct gss_mech_piece *piece, unsigned *n, uint8_t *base,
				size_t len)
{
	if (len > 0)
		piece[(*n)++] = (struct gss_mech_piece){ base, len };
}

/* The reply from body_at on, in at most PIECES pieces. Returns their number. */
static unsigned gss_reply_pieces_of(const struct xdr_out *out, size_t body_at,
				    struct gss_mech_piece *piece)
{
	size_t done = body_at;
	unsigned n = 0;

	for (unsigned i = 0; i < out->nbulks; i++) {
		const struct xdr_out_bulk *b = &out->bulk[i];

		gss_reply_add_piece(piece, &n, out->base + done, b->at - done);
		done = b->at;
		if (b->len > 0)
			gss_reply_add_piece(piece, &n, b->payload->data + b->off, b->len);
	}
	gss_reply_add_piece(piece, &n, out->base + done, out->used - done);
	return n;
}

/* Begins wrapped results: head, length word, `before` bytes, the number, the results. Returns where the number is. */
static size_t begin_wrapped(struct rpc_request *req, const struct gss_call *c, const struct mic *m,
			    size_t before)
{
	struct xdr_out *out = &req->out;
	const size_t body_at = head_size(m) + 4 + before;

	move_results(out, body_at + 4 - RESULTS_AT);
	put_head(out->base, m, RPC_SUCCESS);
	rn_put32(out->base + body_at, c->seq);
	return body_at;
}

static bool in_memory(const struct xdr_out *out)
{
	for (unsigned i = 0; i < out->nbulks; i++) {
		if (out->bulk[i].pipe)
			return false;
	}
	return true;
}

/* Copies items that somebody else uses too, as they will be overwritten. False: there is no memory. */
static bool own_items(struct rpc_request *req)
{
	for (unsigned i = 0; i < req->out.nbulks; i++) {
		struct xdr_out_bulk *b = &req->out.bulk[i];
		struct rn_payload *p;

		if (!b->payload ||
		    atomic_load_explicit(&b->payload->refs, memory_order_acquire) == 1)
			continue;
		p = rn_payload_get_for(req->server->pool, b->len, rpc_request_account(req));
		if (!p)
			return false;
		memcpy(p->data, b->payload->data + b->off, b->len);
		rn_payload_put(b->payload);
		b->payload = p;
		b->off = 0;
	}
	return true;
}

static bool wrap_integrity(struct rpc_request *req, const struct gss_call *c, const struct mic *m)
{
	struct gss_mech_piece piece[PIECES];
	struct xdr_out *out = &req->out;
	struct gss_mech_ctx *mech;
	struct mic mine = { 0 };
	size_t body_at, len;
	uint8_t *p;

	if (!in_memory(out))
		return false;
	len = 4 + xdr_out_total(out) - RESULTS_AT;
	body_at = begin_wrapped(req, c, m, 0);
	rn_put32(out->base + body_at - 4, (uint32_t)len);
	mech = gss_copies_take(&c->context->copies);
	mine.len = gss_mech_sign_pieces(mech, piece, gss_reply_pieces_of(out, body_at, piece),
					mine.bytes);
	gss_copies_give(&c->context->copies, mech);
	if (mine.len == 0 || mine.len > c->context->mic_len)
		return false;
	p = out->base + out->used;
	rn_put32(p, mine.len);
	memset(p + 4, 0, padded(mine.len));
	memcpy(p + 4, mine.bytes, mine.len);
	lengthen(out, 4 + padded(mine.len));
	return true;
}

static bool wrap_privacy(struct rpc_request *req, const struct gss_call *c, const struct mic *m)
{
	struct gss_context *x = c->context;
	struct gss_mech_piece piece[PIECES + 2];
	struct xdr_out *out = &req->out;
	struct gss_mech_ctx *mech;
	size_t before, behind, body_at, len;
	unsigned n;
	bool ok;

	if (!in_memory(out) || !own_items(req))
		return false;
	len = 4 + xdr_out_total(out) - RESULTS_AT;
	mech = gss_copies_take(&x->copies);
	ok = gss_mech_wrap_sizes(mech, len, &before, &behind) && before + behind <= x->wrap_len;
	if (ok) {
		body_at = begin_wrapped(req, c, m, before);
		rn_put32(out->base + body_at - before - 4, (uint32_t)(before + len + behind));
		piece[0] = (struct gss_mech_piece){ out->base + body_at - before, before };
		n = 1 + gss_reply_pieces_of(out, body_at, piece + 1);
		piece[n++] = (struct gss_mech_piece){ out->base + out->used, behind };
		ok = gss_mech_wrap(mech, piece, n);
	}
	gss_copies_give(&x->copies, mech);
	if (!ok)
		return false;
	lengthen(out, behind);
	len = rn_xdr_pad((uint32_t)(before + len + behind));
	memset(out->base + out->used, 0, len);
	lengthen(out, len);
	return true;
}

bool gss_protect_reply(struct rpc_request *req)
{
	const struct gss_call *c = rn_container_of(req->secured, struct gss_call, base);
	struct xdr_out *out = &req->out;
	uint8_t seq[4];
	struct mic m;

	/* A denial has no verifier. */
	if (out->used < RESULTS_AT || rn_get32(out->base + STAT_AT) != RPC_MSG_ACCEPTED)
		return true;
	rn_put32(seq, c->seq);
	gss_reply_sign(c->context, seq, sizeof(seq), &m);
	if (m.len == 0 || m.len > c->context->mic_len)
		return false;
	/* Results of a call that failed are not wrapped, as there are none (section 5.3.3.4). */
	if (c->service == GSS_NONE || rn_get32(out->base + ACCEPT_AT) != RPC_SUCCESS) {
		gss_reply_put_verifier(req, &m);
		return true;
	}
	return c->service == GSS_INTEGRITY ? wrap_integrity(req, c, &m) : wrap_privacy(req, c, &m);
}

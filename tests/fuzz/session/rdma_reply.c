/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/rdma_reply.h"

#include <string.h>

#include "lib/util.h"
#include "tests/fuzz/session/claims.h"
#include "tests/fuzz/session/reply.h"

#define ERR_VERS 1u
#define ERR_CHUNK 2u

static const char *check_error(const uint8_t *p, size_t len)
{
	if (len >= 20 && ss_word(p + 16) == ERR_CHUNK)
		return len == 20 ? NULL : "ERR_CHUNK with something after it";
	if (len < 20 || ss_word(p + 16) != ERR_VERS)
		return "an RDMA_ERROR of no known kind";
	return len == 28 && ss_word(p + 20) <= ss_word(p + 24) ? NULL
							       : "ERR_VERS without two versions";
}

/* A chunk must come back as it was sent, except that its lengths may be smaller (RFC 8166 section
 * 3.4.6). */
static const char *check_chunk(const struct ss_rdma_header *call, const struct ss_chunk *sent,
			       const struct ss_rdma_header *reply, const struct ss_chunk *got)
{
	if (sent->n != got->n)
		return "a chunk came back with another number of segments";
	for (unsigned i = 0; i < sent->n; i++) {
		const struct cf_seg *s = &call->seg[sent->first + i];
		const struct cf_seg *g = &reply->seg[got->first + i];

		if (s->handle != g->handle || s->offset != g->offset)
			return "a segment came back as another one";
		if (g->length > s->length)
			return "more was written than a segment has room for";
	}
	return NULL;
}

static const char *check_lists(const struct ss_rdma_header *call, const struct ss_rdma_header *h)
{
	const char *bad = NULL;

	if (h->nreads)
		return "a reply with a Read list";
	if (h->nwrites != call->nwrites)
		return "another number of Write chunks came back";
	for (unsigned i = 0; !bad && i < h->nwrites; i++)
		bad = check_chunk(call, &call->write[i], h, &h->write[i]);
	if (!bad && h->has_reply)
		bad = call->has_reply ? check_chunk(call, &call->reply, h, &h->reply)
				      : "a Reply chunk that was not offered";
	return bad;
}

/* Copies a chunk's bytes to out, SS_MESSAGE_MAX of them at most; returns their number. */
static size_t gather(const struct cf_conn *conn, const struct ss_rdma_header *h,
		     const struct ss_chunk *chunk, uint8_t *out)
{
	size_t len = 0;

	for (unsigned i = 0; i < chunk->n; i++) {
		const struct cf_seg *s = &h->seg[chunk->first + i];
		const uint8_t *p = s->length ? cf_conn_segment_data(conn, s) : NULL;

		if (!p || s->length > SS_MESSAGE_MAX - len)
			continue;
		memcpy(out + len, p, s->length);
		len += s->length;
	}
	return len;
}

static void list_bulks(const struct ss_rdma_header *call, const struct ss_rdma_header *h,
		       struct ss_bulks *out)
{
	out->n = (unsigned)rn_min(rn_min(call->nwrites, h->nwrites), SS_BULKS_MAX);
	for (unsigned i = 0; i < out->n; i++) {
		out->offered[i] = (uint32_t)ss_chunk_length(call, &call->write[i]);
		out->written[i] = (uint32_t)ss_chunk_length(h, &h->write[i]);
	}
}

const char *ss_rdma_reply_check(const struct cf_conn *conn, const struct ss_window *w,
				const struct ss_debt *debt, const struct cf_received *r,
				struct ss_values *learn)
{
	static struct ss_rdma_header h;
	static uint8_t gathered[SS_MESSAGE_MAX];
	/* Calls that share memory or an xid may have received each other's reply. */
	bool alone = w->users == 1 && debt->sent == 1 && w->call.xid == debt->call.xid;

	ss_rdma_parse(r->data, r->len, &h);
	if (!h.fixed)
		return "a header cut short";
	/* A reply, or an error, carries the version of the call (RFC 8166 section 4.5). */
	if (h.vers != debt->rdma_vers && debt->sent == 1)
		return "another version";
	if (!h.credits)
		return "no credits";
	if (h.proc == SS_RDMA_ERROR)
		return check_error(r->data, r->len);
	if (!h.whole)
		return "a header that is neither RDMA_MSG, RDMA_NOMSG nor RDMA_ERROR, or is cut";
	const char *bad = alone ? check_lists(&w->call, &h) : NULL;
	if (bad || !alone || debt->call.prog == UINT32_MAX)
		return bad;
	const uint8_t *msg = r->data + h.size;
	size_t len = r->len - h.size;
	if (h.proc == SS_RDMA_NOMSG) {
		if (len || !h.has_reply)
			return "RDMA_NOMSG with a message of its own, or without a Reply chunk";
		msg = gathered;
		len = gather(conn, &h, &h.reply, gathered);
	}
	struct ss_bulks bulks;
	list_bulks(&w->call, &h, &bulks);
	bad = ss_reply_check(&debt->call, msg, len, &bulks, learn);
	for (unsigned i = 0; !bad && i < h.nwrites; i++)
		bad = ss_claims_secret(&debt->call, gathered,
				       gather(conn, &h, &h.write[i], gathered));
	return bad;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replies kept in slots. A reply is kept as its byte stream on the wire, with the positions of bulk
 * items: a retry may come over another connection, and gets these by its own Write chunks (RFC 8881
 * section 2.10.6.2).
 */
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "nfs4/session/make_room.h"
#include "nfs4/client/session.h"
#include "nfs4/compound.h"
#include "nfs4/session/sequence.h"

#define SMALL 512u /* bytes that a slot may keep allocated for a smaller reply */

static size_t marks_size(const struct xdr_out *out)
{
	return out->nbulks * 2 * sizeof(uint32_t);
}

bool nfs4_slot_can_keep(const struct nfs4_session *s, const struct nfs4_slot *slot)
{
	if (slot->reply && slot->reply->size >= s->fore.max_cached)
		return true;
	return nfs4_host_fits(s->client->host, s->fore.max_cached, NFS4_TO_ANSWER);
}

/* Replaces the slot's buffer by one of that size, or none. The slot is busy, so no other call uses
 * it. */
static bool resize(struct nfs4_compound *c, size_t size)
{
	struct nfs4_clients *all = c->server->clients;
	struct nfs4_slot *slot = c->slot;
	const size_t had = slot->reply ? sizeof(*slot->reply) + slot->reply->size : 0;
	struct nfs4_host *host = c->session->client->host;
	const size_t cost = size > 0 ? sizeof(*slot->reply) + size : 0;
	struct nfs4_cached *r = NULL;

	if (cost > 0 && !nfs4_clients_take(all, host, cost, NFS4_TO_ANSWER))
		return false;
	if (cost > 0) {
		r = malloc(cost);
		if (!r) {
			nfs4_host_give(host, cost);
			return false;
		}
		atomic_init(&r->refs, 1);
		r->size = (uint32_t)size;
		atomic_fetch_add(&all->ncached, 1);
	}
	if (slot->reply)
		atomic_fetch_sub(&all->ncached, 1);
	nfs4_cached_put(slot->reply);
	slot->reply = r;
	nfs4_host_give(host, had);
	pthread_mutex_lock(&c->session->lock);
	c->session->cost += cost - had;
	c->session->ncached += (uint32_t)(cost > 0) - (uint32_t)(had > 0);
	pthread_mutex_unlock(&c->session->lock);
	return true;
}

static bool nfs4_reply_cache_make_room(struct nfs4_compound *c, size_t need)
{
	const struct nfs4_cached *r = c->slot->reply;

	/* A retry may still be reading from it. */
	if (r && atomic_load_explicit(&r->refs, memory_order_acquire) == 1 && r->size >= need &&
	    (r->size <= SMALL || r->size <= 2 * need))
		return true;
	return resize(c, (need + 63) & ~(size_t)63);
}

static void copy_stream(struct nfs4_cached *r, const struct xdr_out *out, size_t from)
{
	uint8_t *to = (uint8_t *)r->words;
	size_t at = from;

	for (unsigned i = 0; i < out->nbulks; i++) {
		const struct xdr_out_bulk *b = &out->bulk[i];
		uint32_t mark[2];

		memcpy(to, out->base + at, b->at - at);
		to += b->at - at;
		at = b->at;
		mark[0] = (uint32_t)(to - (uint8_t *)r->words);
		mark[1] = b->len;
		if (b->len > 0)
			memcpy(to, b->payload->data + b->off, b->len);
		memset(to + b->len, 0, rn_xdr_pad(b->len));
		to += b->len + rn_xdr_pad(b->len);
		memcpy((uint8_t *)r->words + r->len + i * sizeof(mark), mark, sizeof(mark));
	}
	memcpy(to, out->base + at, out->used - at);
}

void nfs4_slot_keep(struct nfs4_compound *c)
{
	const struct xdr_out *out = c->out;
	const size_t total = xdr_out_total(out);

	c->slot->cached = false;
	/* Only a COMPOUND too long even for the error status exceeds the limit. */
	if (out->overflow || total > c->cached_limit ||
	    !nfs4_reply_cache_make_room(c, total - c->body_at + marks_size(out)))
		return;
	c->slot->reply->len = (uint32_t)(total - c->body_at);
	c->slot->reply->nbulks = out->nbulks;
	c->slot->reply->audience = nfs4_audience_of(c);
	copy_stream(c->slot->reply, out, c->body_at);
	c->slot->cached = true;
}

/* Allocates buffers for the bulk items and copies their bytes. False: no memory; nothing is
 * allocated. */
static bool get_bulks(struct nfs4_compound *c, const struct nfs4_cached *r,
		      struct xdr_out_bulk bulk[XDR_BULKS_MAX])
{
	const uint8_t *stream = (const uint8_t *)r->words;

	for (uint32_t i = 0; i < r->nbulks; i++) {
		uint32_t mark[2];

		memcpy(mark, stream + r->len + i * sizeof(mark), sizeof(mark));
		bulk[i] = (struct xdr_out_bulk){ .at = mark[0], .len = mark[1] };
		if (mark[1] == 0)
			continue;
		bulk[i].payload = rn_payload_get_for(c->req->server->pool, mark[1],
						     rpc_request_account(c->req));
		if (!bulk[i].payload) {
			while (i > 0)
				rn_payload_put(bulk[--i].payload);
			return false;
		}
		memcpy(bulk[i].payload->data, stream + mark[0], mark[1]);
	}
	return true;
}

int nfs4_slot_replay(struct nfs4_compound *c, const struct nfs4_cached *r)
{
	const uint8_t *stream = (const uint8_t *)r->words;
	struct xdr_out_bulk bulk[XDR_BULKS_MAX];
	size_t at = 0;

	const int status = nfs4_reserve_reply(c, r->len);

	if (status != NFS4_OK || !get_bulks(c, r, bulk))
		return status == NFS4_NO_ROOM ? status : NFS4ERR_DELAY;
	xdr_out_rewind(c->out, c->body_at);
	for (uint32_t i = 0; i < r->nbulks; i++) {
		/* xdr_put_bulk puts the length word. */
		xdr_put_fixed(c->out, stream + at, (uint32_t)(bulk[i].at - 4 - at));
		xdr_put_bulk(c->out, bulk[i].payload, 0, bulk[i].len);
		at = bulk[i].at + bulk[i].len + rn_xdr_pad(bulk[i].len);
	}
	xdr_put_fixed(c->out, stream + at, (uint32_t)(r->len - at));
	return NFS4_REPLAYED;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/client/slot.h"

#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "nfs4/client/client_table.h"
#include "nfs4/client/client_host.h"
#include "nfs4/client/session.h"

/* Size of piece i: 8 slots from 0, 8 from 8, 16 from 16, 32 from 32, ... */
static uint32_t nfs4_slot_piece_size(unsigned i)
{
	return i == 0 ? NFS4_SLOT_PIECE : NFS4_SLOT_PIECE << (i - 1);
}

static uint32_t piece_start(unsigned i)
{
	return i == 0 ? 0 : NFS4_SLOT_PIECE << (i - 1);
}

static unsigned piece_of(uint32_t id)
{
	unsigned i = 0;

	while (id >= piece_start(i) + nfs4_slot_piece_size(i))
		i++;
	return i;
}

/* The slot with that id, which must exist. */
static struct nfs4_slot *slot_at(struct nfs4_session *s, uint32_t id)
{
	const unsigned i = piece_of(id);

	return &s->piece[i][id - piece_start(i)];
}

static bool make_piece(struct nfs4_session *s, unsigned i)
{
	struct nfs4_host *host = s->client->host;
	const size_t cost = nfs4_slot_piece_size(i) * sizeof(struct nfs4_slot);

	if (!nfs4_host_take(host, cost, i == 0 ? NFS4_TO_BEGIN : NFS4_TO_HOLD))
		return false;
	s->piece[i] = calloc(nfs4_slot_piece_size(i), sizeof(struct nfs4_slot));
	if (!s->piece[i]) {
		nfs4_host_give(host, cost);
		return false;
	}
	s->cost += cost;
	s->nmade += nfs4_slot_piece_size(i);
	atomic_fetch_add(&s->client->srv->clients->nslots, nfs4_slot_piece_size(i));
	return true;
}

struct nfs4_slot *nfs4_slot_get(struct nfs4_session *s, uint32_t id)
{
	while (id >= s->nmade) {
		if (!make_piece(s, piece_of(s->nmade)))
			return NULL;
	}
	return slot_at(s, id);
}

static size_t cached_cost(const struct nfs4_cached *r)
{
	return r ? sizeof(*r) + r->size : 0;
}

void nfs4_cached_put(struct nfs4_cached *r)
{
	if (r && atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) == 1)
		free(r);
}

static void drop_reply(struct nfs4_session *s, struct nfs4_slot *slot)
{
	const size_t cost = cached_cost(slot->reply);

	if (!slot->reply)
		return;
	nfs4_cached_put(slot->reply);
	slot->reply = NULL;
	slot->cached = false;
	s->cost -= cost;
	s->ncached--;
	nfs4_host_give(s->client->host, cost);
	atomic_fetch_sub(&s->client->srv->clients->ncached, 1);
}

int nfs4_slot_reply(struct nfs4_session *s, uint32_t id, uint32_t seqid, struct nfs4_cached **kept)
{
	struct nfs4_slot *slot = id < s->nmade ? slot_at(s, id) : NULL;

	if (!slot || !slot->used || slot->seqid != seqid)
		return NFS4ERR_SEQ_MISORDERED;
	if (slot->busy)
		return NFS4ERR_DELAY;
	*kept = slot->cached ? slot->reply : NULL;
	if (*kept)
		atomic_fetch_add_explicit(&(*kept)->refs, 1, memory_order_relaxed);
	return NFS4_REPLAYED;
}

void nfs4_slot_done(struct nfs4_session *s, struct nfs4_slot *slot)
{
	const struct nfs4_retry *retry;

	pthread_mutex_lock(&s->lock);
	slot->busy = false;
	s->busy--;
	retry = slot->retry;
	slot->retry = NULL;
	pthread_mutex_unlock(&s->lock);
	if (retry)
		rpc_wake(s->client->srv->cfg.waits, retry);
}

void nfs4_slots_free(struct nfs4_session *s)
{
	for (uint32_t id = 0; id < s->nmade; id++)
		drop_reply(s, slot_at(s, id));
	for (unsigned i = 0; i < NFS4_SLOT_PIECES; i++)
		free(s->piece[i]);
	atomic_fetch_sub(&s->client->srv->clients->nslots, s->nmade);
}

/* Retires slots above the target. The client has seen the target and keeps to it. */
static void retire(struct nfs4_session *s)
{
	const uint32_t end = (uint32_t)rn_min(s->nslots, s->nmade);

	for (uint32_t id = s->target; id < end; id++) {
		if (slot_at(s, id)->busy)
			return;
	}
	for (uint32_t id = s->target; id < end; id++) {
		struct nfs4_slot *slot = slot_at(s, id);

		drop_reply(s, slot);
		slot->regranted = slot->used;
	}
	s->nslots = s->target;
	s->slots_recalled = false;
}

static void grow_or_shrink(struct nfs4_session *s, uint32_t highest, bool short_of_memory)
{
	if (short_of_memory) {
		if (s->target == s->nslots && s->nslots > NFS4_SLOTS_LEAST) {
			s->target = (uint32_t)(s->nslots / 2 > NFS4_SLOTS_LEAST ? s->nslots / 2
										: NFS4_SLOTS_LEAST);
			s->target_state = NFS4_TARGET_NEW;
		}
		return;
	}
	s->target = s->nslots;
	s->slots_recalled = false;
	if (highest + 1 >= s->nslots && s->nslots < s->asked) {
		s->nslots = (uint32_t)rn_min(2 * (size_t)s->nslots, s->asked);
		s->target = s->nslots;
	}
}

void nfs4_slots_adjust(struct nfs4_session *s, uint32_t id, uint32_t highest, bool short_of_memory)
{
	grow_or_shrink(s, highest, short_of_memory);
	if (s->target >= s->nslots)
		return;
	if (s->target_state == NFS4_TARGET_NEW) {
		s->target_state = NFS4_TARGET_SENT;
		s->sent_slot = id;
		s->sent_seqid = slot_at(s, id)->seqid;
		return;
	}
	if (s->target_state == NFS4_TARGET_SENT && s->sent_slot == id &&
	    slot_at(s, id)->seqid != s->sent_seqid)
		s->target_state = NFS4_TARGET_SEEN;
	if (s->target_state == NFS4_TARGET_SEEN && highest < s->target && id < s->target)
		retire(s);
}

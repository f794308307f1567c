/* SPDX-License-Identifier: BSD-2-Clause */
/* Sessions, their slots, and the sums by which a retry is told from another call. */
#include "nfs4/client/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/secret.h"
#include "lib/util.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/client_host.h"
#include "nfs4/client/client_table.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_private.h"
#include "rpc/principal.h"
#include "rpc/request.h"
#include "rpc/sum.h"

/* Sums up a call, so that a retry is told from another call with the same slot and sequence number (RFC 8881 section 2.10.6.1.3.1). */

/* Enough where no reply is kept: a client that sends another call as a retry is only answered that its reply was not kept,
 * instead of an error for a false retry. */
#define FIRST_BYTES 256u

/* The credential and the call's properties outside its arguments. */
static void add_caller(struct rpc_sum *s, const struct nfs4_compound *c)
{
	const struct rpc_cred *cred = &c->req->call.cred;
	const uint32_t first[] = { c->minor,
				   c->nops,
				   cred->ngids,
				   cred->uid,
				   cred->gid,
				   (uint32_t)cred->sec,
				   (uint32_t)cred->protection,
				   cred->principal ? cred->principal->len : 0 };

	rpc_sum_add(s, first, sizeof(first));
	rpc_sum_add(s, cred->gids, cred->ngids * sizeof(cred->gids[0]));
	if (cred->principal)
		rpc_sum_add(s, cred->principal->name, cred->principal->len);
}

uint64_t nfs4_call_sum(const struct nfs4_compound *c, bool whole)
{
	const struct xdr_in *in = c->in;
	struct rpc_sum s;

	rpc_sum_begin(&s, &c->server->sum_secret);
	add_caller(&s, c);
	rpc_sum_add_segments(&s, in->seg + in->cur, in->nseg - in->cur, in->off,
			     whole ? SIZE_MAX : FIRST_BYTES);
	return rpc_sum_end(&s).low;
}

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

int nfs4_slot_load(struct nfs4_session *s, struct nfs4_slot *slot, const struct image_bytes *words,
		   const struct nfs4_cached *like)
{
	struct nfs4_cached *r = malloc(sizeof(*r) + words->len);

	if (!r)
		return -ENOMEM;
	*r = *like;
	r->size = words->len;
	memcpy(r->words, words->at, words->len);
	if (!nfs4_host_take(s->client->host, cached_cost(r), NFS4_TO_ANSWER)) {
		free(r);
		return -ENOMEM;
	}
	atomic_init(&r->refs, 1);
	slot->reply = r;
	slot->cached = true;
	s->cost += cached_cost(r);
	s->ncached++;
	atomic_fetch_add(&s->client->srv->clients->ncached, 1);
	return 0;
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

static void nfs4_slots_free(struct nfs4_session *s)
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

struct nfs4_session *nfs4_session_make(struct nfs4_client *cl, const struct nfs4_channel *fore,
				       const struct nfs4_channel *back)
{
	struct nfs4_session *s = NULL;

	if (!nfs4_host_take(cl->host, sizeof(*s), NFS4_TO_BEGIN))
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s) {
		nfs4_host_give(cl->host, sizeof(*s));
		return NULL;
	}
	nfs4_client_ref(cl);
	nfs4_host_count(cl->host, NFS4_SESSIONS, 1);
	atomic_fetch_add(&cl->srv->clients->nsessions, 1);
	s->client = cl;
	s->made = nfs4_clients_now(cl->srv);
	s->fore = *fore;
	s->back = *back;
	s->nslots = s->target = fore->max_requests;
	s->cost = sizeof(*s);
	atomic_init(&s->refs, 1);
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

/* Sets the id: a serial number for the lookup amid random bytes. With SP4_NONE a caller that knows
 * the id can use the session, or destroy it. */
void nfs4_session_name(struct nfs4_session *s)
{
	struct nfs4_clients *all = s->client->srv->clients;

	randombytes_buf(s->id, sizeof(s->id));
	rn_put32(s->id + 8, atomic_fetch_add(&all->last_session, 1));
}

static struct id_part *nfs4_session_part_of(struct nfs4_clients *all, const uint8_t *id)
{
	return &all->part[rn_get32(id + 8) % ID_PARTS];
}

static struct nfs4_session_list *nfs4_session_bucket(struct nfs4_clients *all, const uint8_t *id)
{
	return &nfs4_session_part_of(all, id)->sessions[rn_get32(id + 8) / ID_PARTS % ID_BUCKETS];
}

struct nfs4_session *nfs4_session_get(struct nfs4_clients *all,
				      const uint8_t id[NFS4_SESSIONID_SIZE])
{
	struct id_part *part = nfs4_session_part_of(all, id);
	struct nfs4_session *s;

	pthread_mutex_lock(&part->lock);
	LIST_FOREACH (s, nfs4_session_bucket(all, id), by_id) {
		if (rn_same_secret(s->id, id, NFS4_SESSIONID_SIZE / sizeof(uint64_t)))
			break;
	}
	if (s)
		nfs4_session_ref(s);
	pthread_mutex_unlock(&part->lock);
	return s;
}

void nfs4_session_ref(struct nfs4_session *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
}

void nfs4_session_put(struct nfs4_session *s)
{
	struct nfs4_clients *all;
	struct nfs4_client *cl;
	size_t cost;

	if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) > 1)
		return;
	cl = s->client;
	all = cl->srv->clients;
	nfs4_slots_free(s);
	nfs4_cb_path_free(s);
	cost = s->cost;
	pthread_mutex_destroy(&s->lock);
	free(s);
	nfs4_host_give(cl->host, cost);
	nfs4_host_count(cl->host, NFS4_SESSIONS, -1);
	atomic_fetch_sub(&all->nsessions, 1);
	nfs4_client_put(cl);
}

static bool nfs4_session_has_conn(const struct nfs4_session *s, uint64_t conn)
{
	const uint32_t n = rn_min(s->nconns, NFS4_CONNS_PER_SESSION);

	for (uint32_t i = 0; i < n; i++) {
		if (s->conn[i] == conn)
			return true;
	}
	return false;
}

void nfs4_session_bind_locked(struct nfs4_session *s, struct rpc_conn *conn)
{
	if (nfs4_session_has_conn(s, conn->id))
		return;
	atomic_store_explicit(&conn->session_client, s->client->clientid, memory_order_relaxed);
	s->conn[s->nconns % NFS4_CONNS_PER_SESSION] = conn->id;
	/* Wraps to half of the limit and not to 0, so that all entries stay valid. */
	if (++s->nconns == 2 * NFS4_CONNS_PER_SESSION)
		s->nconns = NFS4_CONNS_PER_SESSION;
}

void nfs4_session_bind(struct nfs4_session *s, struct rpc_conn *conn)
{
	pthread_mutex_lock(&s->lock);
	nfs4_session_bind_locked(s, conn);
	pthread_mutex_unlock(&s->lock);
}

bool nfs4_session_binds_locked(const struct nfs4_session *s, const struct rpc_conn *conn)
{
	return nfs4_session_has_conn(s, conn->id);
}

bool nfs4_session_is_bound(struct nfs4_session *s, uint64_t conn)
{
	bool bound;

	pthread_mutex_lock(&s->lock);
	bound = nfs4_session_has_conn(s, conn);
	pthread_mutex_unlock(&s->lock);
	return bound;
}

void nfs4_session_enter(struct nfs4_session *s)
{
	struct nfs4_clients *all = s->client->srv->clients;
	struct id_part *part = nfs4_session_part_of(all, s->id);

	LIST_INSERT_HEAD(&s->client->session_list, s, of_client);
	s->client->nsessions++;
	pthread_mutex_lock(&part->lock);
	LIST_INSERT_HEAD(nfs4_session_bucket(all, s->id), s, by_id);
	pthread_mutex_unlock(&part->lock);
}

bool nfs4_session_leave(struct nfs4_session *s)
{
	struct id_part *part = nfs4_session_part_of(s->client->srv->clients, s->id);
	bool dead;

	pthread_mutex_lock(&s->lock);
	dead = s->dead;
	s->dead = true;
	pthread_mutex_unlock(&s->lock);
	if (dead)
		return false;
	LIST_REMOVE(s, of_client);
	s->client->nsessions--;
	pthread_mutex_lock(&part->lock);
	LIST_REMOVE(s, by_id);
	pthread_mutex_unlock(&part->lock);
	return true;
}

bool nfs4_session_busy(struct nfs4_session *s, const struct nfs4_slot *mine)
{
	uint32_t busy;

	pthread_mutex_lock(&s->lock);
	busy = s->busy;
	pthread_mutex_unlock(&s->lock);
	return busy > (mine ? 1u : 0u);
}

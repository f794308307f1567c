/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SEQUENCE (RFC 8881 section 18.46): a COMPOUND takes its slot, or is answered again. What is wrong
 * is found before the slot changes, because a failed SEQUENCE leaves it as it was.
 */
#include "lib/budget.h"
#include "nfs4/client/ops.h"
#include "nfs4/client/table.h"
#include "nfs4/recovery/grace.h"

/* Of how many requests on slot 0 one looks whether memory is short. */
#define LOOK_EVERY 16u

void nfs4_decode_sequence(struct nfs4_compound *c, void *args)
{
	struct nfs4_sequence_args *a = args;

	xdr_get_fixed(c->in, a->session, sizeof(a->session));
	a->seqid = xdr_get_u32(c->in);
	a->slot = xdr_get_u32(c->in);
	a->highest = xdr_get_u32(c->in);
	a->cache_this = xdr_get_bool(c->in);
}

static uint32_t status_flags(const struct nfs4_client *cl, bool alive)
{
	uint32_t flags = 0;

	if (!alive)
		flags |= SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED;
	if (nfs4_reclaim_is_needed(&cl->record))
		flags |= SEQ4_STATUS_RESTART_RECLAIM_NEEDED;
	return flags;
}

static void put_result(struct nfs4_compound *c, const struct nfs4_sequence_args *a,
		       const struct nfs4_session *s, bool alive)
{
	xdr_put_fixed(c->out, a->session, sizeof(a->session));
	xdr_put_u32(c->out, a->seqid);
	xdr_put_u32(c->out, a->slot);
	xdr_put_u32(c->out, a->highest_now);
	xdr_put_u32(c->out, a->target_now);
	xdr_put_u32(c->out, status_flags(s->client, alive));
}

/* What a retry gets as its second result if its reply was not kept (section 2.10.6.1.3). */
static void put_uncached(struct nfs4_compound *c)
{
	const uint32_t opnum = xdr_get_u32(c->in);
	const struct nfs4_op *op = c->in->err ? NULL : nfs4_op_find(opnum, c->minor);
	int status = NFS4ERR_RETRY_UNCACHED_REP;

	if (!op)
		status = NFS4ERR_OP_ILLEGAL;
	else if (op->run == NULL || (op->gone_minor > 0 && c->minor >= op->gone_minor))
		status = NFS4ERR_NOTSUPP;
	xdr_put_u32(c->out, op ? opnum : (uint32_t)OP_ILLEGAL);
	xdr_put_u32(c->out, (uint32_t)status);
	xdr_patch_u32(c->out, c->body_at, (uint32_t)status);
	xdr_patch_u32(c->out, c->count_at, 2);
}

/* Answers a retry; the slot is busy so that it stays as it is. */
static int replay(struct nfs4_compound *c, const struct nfs4_sequence_args *a,
		  struct nfs4_session *s, struct nfs4_slot *slot)
{
	int status;

	if (slot->cached) {
		status = nfs4_slot_replay(c, slot);
		if (status == NFS4_REPLAYED)
			nfs4_client_renew(s->client);
		return status;
	}
	status = nfs4_reserve_reply(c, NFS4_SESSIONID_SIZE + 20 + 8);
	if (status != NFS4_OK)
		return status;
	put_result(c, a, s, nfs4_client_renew(s->client));
	if (c->nops == 1)
		return NFS4_OK;
	put_uncached(c);
	return NFS4_REPLAYED;
}

/* Is the retry the same call, by the same user? */
static bool same_call(const struct nfs4_compound *c, const struct nfs4_slot *slot)
{
	const struct nfs4_principal who = nfs4_principal_of(c);

	return slot->nops == c->nops && nfs4_principal_is(&slot->who, &who) &&
	       slot->sum == nfs4_call_sum(c);
}

static void let_go(struct nfs4_session *s, struct nfs4_slot *slot)
{
	pthread_mutex_lock(&s->lock);
	slot->busy = false;
	s->busy--;
	pthread_mutex_unlock(&s->lock);
}

static bool short_of_memory(const struct nfs4_session *s)
{
	const struct rn_budget *b = s->client->srv->cfg.budget;

	return atomic_load_explicit(&b->used, memory_order_relaxed) > b->max - b->max / 8;
}

/* The next request of the slot. s->lock is held. */
static int take_slot(struct nfs4_compound *c, struct nfs4_sequence_args *a, struct nfs4_session *s,
		     struct nfs4_slot *slot)
{
	bool look = a->slot == 0 && a->seqid % LOOK_EVERY == 0;

	if (a->cache_this && !nfs4_slot_can_keep(s, slot))
		return NFS4ERR_DELAY;
	slot->seqid = a->seqid;
	slot->busy = true;
	slot->used = true;
	slot->cached = false;
	slot->regranted = false;
	slot->nops = c->nops;
	slot->who = nfs4_principal_of(c);
	slot->sum = nfs4_call_sum(c);
	s->busy++;
	if (look)
		s->short_of_memory = short_of_memory(s);
	nfs4_slots_adjust(s, a->slot, a->highest, s->short_of_memory);
	return NFS4_OK;
}

/* Has the request a place in the session at all? */
static int check(const struct nfs4_compound *c, const struct nfs4_sequence_args *a,
		 const struct nfs4_session *s)
{
	if (s->dead)
		return NFS4ERR_BADSESSION;
	if (a->slot >= s->nslots)
		return NFS4ERR_BADSLOT;
	if (a->highest >= s->nslots)
		return NFS4ERR_BAD_HIGH_SLOT;
	if (xdr_in_pos(c->in) + c->in->left > s->fore.max_request)
		return NFS4ERR_REQ_TOO_BIG;
	if (c->nops > s->fore.max_ops)
		return NFS4ERR_TOO_MANY_OPS;
	return NFS4_OK;
}

/* NFS4_OK: the slot is taken. NFS4_REPLAYED: it is a retry, and the slot is busy for its answer. */
static int find_slot(struct nfs4_compound *c, struct nfs4_sequence_args *a, struct nfs4_session *s,
		     struct nfs4_slot **out)
{
	int status = check(c, a, s);
	struct nfs4_slot *slot;

	if (status != NFS4_OK)
		return status;
	slot = nfs4_slot_get(s, a->slot);
	if (!slot)
		return NFS4ERR_DELAY;
	*out = slot;
	if (!slot->busy && (a->seqid == slot->seqid + 1 || (slot->regranted && a->seqid == 1)))
		return take_slot(c, a, s, slot);
	if (!slot->used || a->seqid != slot->seqid)
		return NFS4ERR_SEQ_MISORDERED;
	if (slot->busy)
		return NFS4ERR_DELAY;
	if (!same_call(c, slot))
		return NFS4ERR_SEQ_FALSE_RETRY;
	slot->busy = true;
	s->busy++;
	return NFS4_REPLAYED;
}

static void begin(struct nfs4_compound *c, const struct nfs4_sequence_args *a,
		  struct nfs4_session *s, struct nfs4_slot *slot)
{
	c->session = s;
	c->slot = slot;
	c->cache_this = a->cache_this;
	c->reply_limit = s->fore.max_reply;
	c->cached_limit = s->fore.max_cached;
	nfs4_client_ref(s->client);
	c->client = s->client;
	put_result(c, a, s, nfs4_client_renew(s->client));
}

/* Memory may be what there is none of; so that there is some when the client asks again. */
static void make_room(struct nfs4_compound *c, const struct nfs4_session *s)
{
	const size_t need = s->fore.max_cached + NFS4_SLOT_PIECE * sizeof(struct nfs4_slot);

	if (nfs4_clients_take(c->server->clients, need))
		rn_budget_give(c->server->cfg.budget, need);
}

int nfs4_sequence(struct nfs4_compound *c, void *args)
{
	struct nfs4_sequence_args *a = args;
	struct nfs4_session *s = nfs4_session_get(c->server->clients, a->session);
	struct nfs4_slot *slot = NULL;
	int status;

	if (!s)
		return NFS4ERR_BADSESSION;
	pthread_mutex_lock(&s->lock);
	status = find_slot(c, a, s, &slot);
	a->highest_now = s->nslots - 1;
	a->target_now = s->target - 1;
	pthread_mutex_unlock(&s->lock);
	if (status == NFS4ERR_DELAY)
		make_room(c, s);
	if (status == NFS4_OK) {
		begin(c, a, s, slot);
		return NFS4_OK;
	}
	if (status == NFS4_REPLAYED) {
		status = replay(c, a, s, slot);
		let_go(s, slot);
	}
	nfs4_session_put(s);
	return status;
}

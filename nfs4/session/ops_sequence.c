/* SPDX-License-Identifier: BSD-2-Clause */
/* SEQUENCE (RFC 8881 section 18.46): a COMPOUND takes its slot, or is a retry. Errors are found
 * before the slot changes, because a failed SEQUENCE leaves it unchanged. */
#include "nfs4/client/cb_path.h"
#include "nfs4/session/make_room.h"
#include "nfs4/client/origin.h"
#include "nfs4/session/sequence.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/callback/cb_probe.h"

/* Requests on slot 0 between two looks at the memory. */
#define LOOK_EVERY 16u

static void decode_sequence(struct nfs4_compound *c, void *args)
{
	struct nfs4_sequence_args *a = args;

	xdr_get_fixed(c->in, a->session, sizeof(a->session));
	a->seqid = xdr_get_u32(c->in);
	a->slot = xdr_get_u32(c->in);
	a->highest = xdr_get_u32(c->in);
	a->cache_this = xdr_get_bool(c->in);
	/* Summed here, once, since run() may run again on another worker. */
	if (!c->in->err)
		a->sum = nfs4_call_sum(c, a->cache_this);
}

/* True if the retry is the same call by the same user. */
static bool same_call(const struct nfs4_sequence_args *a, const struct nfs4_slot *slot)
{
	return slot->whole == a->cache_this && slot->sum == a->sum;
}

/* Accepts the next request of the slot. s->lock is held. */
static int sequence_take_slot(struct nfs4_sequence_args *a, struct nfs4_session *s,
			      struct nfs4_slot *slot)
{
	bool look = a->slot == 0 && a->seqid % LOOK_EVERY == 0;

	if (a->cache_this && !nfs4_slot_can_keep(s, slot))
		return NFS4ERR_DELAY;
	slot->seqid = a->seqid;
	slot->id = a->slot;
	slot->busy = true;
	if (a->slot >= s->nused)
		s->nused = a->slot + 1;
	slot->used = true;
	slot->cached = false;
	slot->regranted = false;
	slot->whole = a->cache_this;
	slot->sum = a->sum;
	s->busy++;
	s->active = true;
	if (look)
		s->short_of_memory = nfs4_session_short_of_memory(s);
	nfs4_slots_adjust(s, a->slot, a->highest, s->short_of_memory);
	return NFS4_OK;
}

/* Checks the request against the session's limits. */
static int sequence_check(const struct nfs4_compound *c, const struct nfs4_sequence_args *a,
			  const struct nfs4_session *s)
{
	if (s->dead)
		return NFS4ERR_BADSESSION;
	/* With state protection only BIND_CONN_TO_SESSION binds (RFC 8881 section 2.10.8.3). */
	if (s->client->protect.machine && !nfs4_session_binds_locked(s, c->req->conn))
		return NFS4ERR_CONN_NOT_BOUND_TO_SESSION;
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

/* Findings under the session's lock. */
struct found {
	struct nfs4_slot *slot;
	struct nfs4_cached *kept; /* NFS4_REPLAYED: a reference of the reply, or NULL */
};

/* Result of find_slot: a retry of a request that is still under way. */
#define MUST_WAIT (-4)

/* NFS4_OK: the slot is taken. NFS4_REPLAYED: a retry. */
static int sequence_find_slot(struct nfs4_compound *c, struct nfs4_sequence_args *a,
			      struct nfs4_session *s, struct found *out)
{
	int status = sequence_check(c, a, s);
	struct nfs4_slot *slot;

	if (status != NFS4_OK)
		return status;
	slot = nfs4_slot_get(s, a->slot);
	if (!slot)
		return NFS4ERR_DELAY;
	out->slot = slot;
	if (!slot->busy && (a->seqid == slot->seqid + 1 || (slot->regranted && a->seqid == 1)))
		return sequence_take_slot(a, s, slot);
	status = nfs4_slot_reply(s, a->slot, a->seqid, &out->kept);
	if (status == NFS4ERR_SEQ_MISORDERED)
		return status;
	if (!same_call(a, slot))
		return NFS4ERR_SEQ_FALSE_RETRY;
	if (status != NFS4ERR_DELAY)
		return status;
	return MUST_WAIT;
}

static void sequence_begin(struct nfs4_compound *c, const struct nfs4_sequence_args *a,
			   struct nfs4_session *s, struct nfs4_slot *slot)
{
	c->session = s;
	c->slot = slot;
	c->cache_this = a->cache_this;
	c->reply_limit = s->fore.max_reply;
	c->cached_limit = s->fore.max_cached;
	nfs4_client_ref(s->client);
	c->client = s->client;
	c->counts = &s->client->counts;
	nfs4_origin_note(s->client, c);
	nfs4_put_sequence(c, a, s, nfs4_client_renew(s->client));
}

/* Evicts after NFS4ERR_DELAY, which may be due to a lack of memory, so that the client's next try
 * succeeds. */
static void sequence_make_room(struct nfs4_compound *c, const struct nfs4_session *s)
{
	const size_t need = s->fore.max_cached + NFS4_SLOT_PIECE * sizeof(struct nfs4_slot);

	if (nfs4_clients_take(c->server->clients, s->client->host, need, NFS4_TO_ANSWER))
		nfs4_host_give(s->client->host, need);
}

static int run_sequence(struct nfs4_compound *c, void *args)
{
	struct nfs4_sequence_args *a = args;
	struct nfs4_session *s = nfs4_session_get(c->server->clients, a->session);
	struct found found = { .slot = NULL };
	bool probe;
	int status;

	if (!s)
		return NFS4ERR_BADSESSION;
	pthread_mutex_lock(&s->lock);
	status = sequence_find_slot(c, a, s, &found);
	if (status == NFS4_OK || status == NFS4_REPLAYED)
		nfs4_session_bind_locked(s, c->req->conn);
	nfs4_sequence_look(a, s);
	probe = status == NFS4_OK && nfs4_cb_begin_probe(s);
	if (status == MUST_WAIT) {
		status = nfs4_retry_wait(c, s, found.slot);
		nfs4_session_put(s);
		return status;
	}
	pthread_mutex_unlock(&s->lock);
	if (status == NFS4ERR_DELAY)
		sequence_make_room(c, s);
	if (status == NFS4_OK) {
		sequence_begin(c, a, s, found.slot);
		if (probe)
			nfs4_cb_probe(s);
		return NFS4_OK;
	}
	if (status == NFS4_REPLAYED)
		status = nfs4_retry_answer(c, s, found.kept);
	else
		nfs4_cached_put(found.kept);
	nfs4_session_put(s);
	return status;
}

const struct nfs4_op nfs4_op_sequence = {
	.name = "SEQUENCE",
	.minors = { 1, 2 },
	.flags = NFS4_OP_FIRST | NFS4_OP_FOR_FORMER | NFS4_OP_PROMPT,
	.reply_max = NFS4_SEQUENCE_RESULT,
	.errors = NFS4_ERRORS_OWN,
	.shape = NFS4_SHAPE(NFS4_SESSIONID_SIZE + 16, 0, 0),
	.args_size = sizeof(struct nfs4_sequence_args),
	.decode = decode_sequence,
	.run = run_sequence,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Retries of requests whose replies are there, or will be. A client retries after a new connection
 * (RFC 8881 section 2.10.6.2), often while the first request is still under way: told
 * NFS4ERR_DELAY, Linux's then waits for 15 seconds. So the retry waits with the slot for the reply
 * and takes it to where the client is now. One for each slot, the last: of others the connection is
 * gone, or the client has a second one. It holds nothing of its call meanwhile, as it could be what
 * the first request waits for.
 *
 * A request that waits is the slot's, under the session's lock, until it is handed back to its
 * worker, either by a later retry or by the end of the request under way.
 */
#include <errno.h>

#include "nfs4/client/sequence.h"
#include "nfs4/compound.h"
#include "nfs4/server.h"

struct nfs4_retry {
	struct rpc_request *req;
	bool has_op;   /* an operation follows SEQUENCE */
	uint32_t op;   /* its number */
	bool replaced; /* by a later one, before its time */
};

static void get_retry(struct nfs4_compound *c, struct nfs4_retry *r)
{
	*r = (struct nfs4_retry){ .req = c->req };
	if (c->nops > 1) {
		r->op = xdr_get_u32(c->in);
		r->has_op = !c->in->err;
	}
}

/* What a retry gets as its second result if its reply was not kept (section 2.10.6.1.3). */
static void put_uncached(struct nfs4_compound *c, const struct nfs4_retry *r)
{
	const struct nfs4_op *op = r->has_op ? c->server->hooks->find_op(r->op, c->minor) : NULL;
	int status = NFS4ERR_RETRY_UNCACHED_REP;

	if (!op)
		status = NFS4ERR_OP_ILLEGAL;
	else if (!nfs4_op_is_done(op, c->minor))
		status = NFS4ERR_NOTSUPP;
	xdr_put_u32(c->out, op ? r->op : (uint32_t)OP_ILLEGAL);
	xdr_put_u32(c->out, (uint32_t)status);
	xdr_patch_u32(c->out, c->body_at, (uint32_t)status);
	xdr_patch_u32(c->out, c->count_at, 2);
}

/* Who may not have it any more makes another call, as it were. */
static int check_audience(struct nfs4_compound *c, const struct nfs4_cached *kept)
{
	switch (nfs4_audience_check(c, &kept->audience)) {
	case 0:
		return NFS4_OK;
	case -EAGAIN:
		return NFS4ERR_DELAY;
	default:
		return NFS4ERR_SEQ_FALSE_RETRY;
	}
}

static int answer(struct nfs4_compound *c, struct nfs4_session *s, const struct nfs4_retry *r,
		  struct nfs4_cached *kept)
{
	int status;

	if (kept) {
		status = check_audience(c, kept);
		if (status == NFS4_OK)
			status = nfs4_slot_replay(c, kept);
		if (status == NFS4_REPLAYED)
			nfs4_client_renew(s->client);
		return status;
	}
	status = nfs4_reserve_reply(c, NFS4_SEQUENCE_RESULT + 8);
	if (status != NFS4_OK)
		return status;
	nfs4_put_sequence(c, c->args, s, nfs4_client_renew(s->client));
	if (c->nops == 1)
		return NFS4_OK;
	put_uncached(c, r);
	return NFS4_REPLAYED;
}

int nfs4_retry_answer(struct nfs4_compound *c, struct nfs4_session *s, struct nfs4_cached *kept)
{
	struct nfs4_retry r;
	int status;

	get_retry(c, &r);
	status = answer(c, s, &r, kept);
	nfs4_cached_put(kept);
	return status;
}

/* The request under way has ended; its reply is there, unless the client has gone on already. */
static int look_again(struct nfs4_compound *c, const struct nfs4_retry *r)
{
	struct nfs4_sequence_args *a = c->args;
	struct nfs4_session *s = nfs4_session_get(c->server->clients, a->session);
	struct nfs4_cached *kept = NULL;
	int status = NFS4_REPLAYED;

	if (!s)
		return NFS4ERR_BADSESSION;
	pthread_mutex_lock(&s->lock);
	if (s->dead)
		status = NFS4ERR_BADSESSION;
	else if (a->slot >= s->nslots)
		status = NFS4ERR_BADSLOT;
	else
		status = nfs4_slot_reply(s, a->slot, a->seqid, &kept);
	nfs4_sequence_slots(a, s);
	pthread_mutex_unlock(&s->lock);
	if (status == NFS4_REPLAYED)
		status = answer(c, s, r, kept);
	nfs4_cached_put(kept);
	nfs4_session_put(s);
	return status;
}

/* On its worker again. */
static void resume(struct rpc_request *req)
{
	struct nfs4_compound *c = req->op;
	const struct nfs4_retry *r = c->wait;

	nfs4_compound_resume(c, r->replaced ? NFS4ERR_DELAY : look_again(c, r));
}

int nfs4_retry_wait(struct nfs4_compound *c, struct nfs4_slot *slot, struct nfs4_retry **replaced)
{
	struct nfs4_retry *r = rn_arena_alloc(&c->req->arena, sizeof(*r));

	if (!r)
		return NFS4ERR_DELAY;
	get_retry(c, r);
	c->wait = r;
	*replaced = slot->retry;
	if (*replaced)
		(*replaced)->replaced = true;
	slot->retry = r;
	return NFS4_PENDING;
}

void nfs4_retry_waits(struct nfs4_compound *c, struct nfs4_retry *replaced)
{
	/* Whoever hands it back does so to this worker, which is here. */
	rpc_request_forget_call(c->req);
	c->rest = (struct rpc_seg){ .len = 0 };
	xdr_in_init(c->in, &c->rest, 1, &c->req->arena);
	nfs4_retry_go_on(replaced);
}

void nfs4_retry_go_on(struct nfs4_retry *r)
{
	if (r)
		rpc_requeue(r->req, resume);
}

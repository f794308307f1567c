/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Retries of requests that have been answered, or are under way. A client retries after a new
 * connection (RFC 8881 section 2.10.6.2), often while the first request is still under way. After
 * NFS4ERR_DELAY, Linux's client would wait for 15 seconds. So the retry waits in the slot for the
 * reply and sends it over its own connection. A slot has at most one waiting retry, the latest; the
 * connections of earlier ones are gone or have been replaced. A waiting retry has freed its call's
 * memory, since the first request could be waiting for that.
 *
 * A waiting retry is in the slot, under the session's lock, until a later retry or the end of the first request
 * takes it out.
 */
#include <errno.h>

#include "lib/error.h"
#include "nfs4/session/sequence.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_private.h"

/* On the stack of the retry. */
struct nfs4_retry {
	bool has_op;   /* an operation follows SEQUENCE */
	uint32_t op;   /* its number */
	bool replaced; /* a later retry has taken its place */
};

/* Looks at the next operation. */
static void look_at_retry(const struct nfs4_compound *c, struct nfs4_retry *r)
{
	struct xdr_in in = *c->in;

	*r = (struct nfs4_retry){ .has_op = false };
	if (c->nops > 1) {
		r->op = xdr_get_u32(&in);
		r->has_op = !in.err;
	}
}

/* Puts the second result of a retry whose reply was not kept (section 2.10.6.1.3). */
static void put_uncached(struct nfs4_compound *c, const struct nfs4_retry *r)
{
	const struct nfs4_op *op = r->has_op ? nfs4_op_find(r->op, c->minor) : NULL;
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

/*
 * A caller that is not admitted to the reply's exports is treated like one that sends another call.
 */
static int check_audience(struct nfs4_compound *c, const struct nfs4_cached *kept)
{
	switch (nfs4_audience_check(c, &kept->audience)) {
	case 0:
		return NFS4_OK;
	case -RN_EUNNAMED:
		return NFS4ERR_DELAY;
	default:
		return NFS4ERR_SEQ_FALSE_RETRY;
	}
}

static int retry_answer_kept(struct nfs4_compound *c, struct nfs4_session *s,
			     const struct nfs4_retry *r, struct nfs4_cached *kept)
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

	look_at_retry(c, &r);
	status = retry_answer_kept(c, s, &r, kept);
	nfs4_cached_put(kept);
	return status;
}

/* The first request has ended. Its reply is in the slot, unless the client has sent the next
 * request already. */
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
	nfs4_sequence_look(a, s);
	pthread_mutex_unlock(&s->lock);
	if (status == NFS4_REPLAYED)
		status = retry_answer_kept(c, s, r, kept);
	nfs4_cached_put(kept);
	nfs4_session_put(s);
	return status;
}

/* Frees the call's memory: the operations behind SEQUENCE do not run. */
static void forget_call(struct nfs4_compound *c)
{
	rpc_request_forget_call(c->req);
	c->rest = (struct rpc_seg){ .len = 0 };
	xdr_in_init(c->in, &c->rest, 1, &c->req->arena);
}

int nfs4_retry_wait(struct nfs4_compound *c, struct nfs4_session *s, struct nfs4_slot *slot)
{
	struct nfs4_retry r;
	int rc = 0;

	look_at_retry(c, &r);
	if (slot->retry) {
		slot->retry->replaced = true;
		rpc_wake(c->req->server->waits, slot->retry);
	}
	slot->retry = &r;
	pthread_mutex_unlock(&s->lock);
	forget_call(c);
	pthread_mutex_lock(&s->lock);
	while (rc == 0 && slot->retry == &r) {
		rc = rpc_wait(c->req, RN_WAIT_CALL, &r, 0, &s->lock);
		pthread_mutex_lock(&s->lock);
	}
	if (slot->retry == &r)
		slot->retry = NULL;
	pthread_mutex_unlock(&s->lock);
	return rc != 0 || r.replaced ? NFS4ERR_DELAY : look_again(c, &r);
}

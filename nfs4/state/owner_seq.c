/* SPDX-License-Identifier: BSD-2-Clause */
/* Sequence numbers of owners in minor version 0, and the replies stored for retransmissions. */
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/registry.h"
#include "nfs4/client/session.h"
#include "nfs4/hash.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/owner.h"

bool nfs4_seq_advances(int status)
{
	switch (status) {
	case NFS4ERR_STALE_CLIENTID:
	case NFS4ERR_STALE_STATEID:
	case NFS4ERR_BAD_STATEID:
	case NFS4ERR_BAD_SEQID:
	case NFS4ERR_BADXDR:
	case NFS4ERR_RESOURCE:
	case NFS4ERR_NOFILEHANDLE:
	case NFS4ERR_MOVED:
		return false;
	default:
		return true;
	}
}

/* 1 follows the largest number (RFC 7530 section 9.1.3), but some clients send 0. */
static bool is_next(uint32_t last, uint32_t seqid)
{
	return seqid == last + 1 || (last == UINT32_MAX && seqid == 1);
}

void nfs4_seq_sum(struct nfs4_compound *c)
{
	const struct vfs_fh *fh = &c->current.fh;
	uint64_t of_fh;

	if (c->minor > 0)
		return;
	crypto_shorthash((uint8_t *)&of_fh, fh->data, fh->len, c->server->hash_key);
	c->seq_sum = nfs4_mix(nfs4_call_sum(c, true) ^ of_fh);
}

bool nfs4_seq_is_next(struct nfs4_owner *o, uint32_t seqid)
{
	bool next;

	pthread_mutex_lock(&o->client->lock);
	next = !o->seq_known || is_next(o->seqid, seqid);
	pthread_mutex_unlock(&o->client->lock);
	return next;
}

void nfs4_seq_set(struct nfs4_owner *o, uint32_t seqid)
{
	pthread_mutex_lock(&o->client->lock);
	o->seq_known = true;
	o->seqid = seqid;
	if (o->replay)
		o->replay->opnum = 0; /* the memory held another operation's reply */
	pthread_mutex_unlock(&o->client->lock);
}

void nfs4_owner_drop_kept(struct nfs4_owner *o)
{
	struct nfs4_client *cl = o->client;
	struct nfs4_open *kept;
	bool gone;

	pthread_mutex_lock(&cl->lock);
	kept = o->kept;
	o->kept = NULL;
	gone = !kept || kept->st.gone;
	if (kept && gone)
		nfs4_state_forget(cl, &kept->st);
	pthread_mutex_unlock(&cl->lock);
	if (!gone)
		nfs4_open_drop(kept);
	if (kept)
		nfs4_state_unref(&kept->st);
}

enum seq_verdict { SEQ_NEXT, SEQ_AGAIN, SEQ_AFRESH, SEQ_BUSY, SEQ_BAD, SEQ_NO_STATE };

/* True if the owner's last reply answers the operation under way, which has the same sequence number.
 * An owner that is not confirmed has not shown that it counts its operations: some clients send
 * their next OPEN with the number of one that has failed. */
static bool is_replay(const struct nfs4_compound *c, const struct nfs4_owner *o)
{
	return o->replay && o->replay->opnum == c->opnum &&
	       (!o->unconfirmed || o->replay->sum == c->seq_sum);
}

/* Compares a sequence number with the owner's. Under the client's lock. */
static enum seq_verdict owner_seq_judge(const struct nfs4_compound *c, const struct nfs4_owner *o,
					uint32_t seqid)
{
	if (o->seq_busy)
		return SEQ_BUSY;
	if (!o->seq_known)
		return SEQ_NEXT;
	if (seqid == o->seqid && is_replay(c, o))
		return SEQ_AGAIN;
	if (o->unconfirmed) {
		/* RFC 7530 section 16.18.5: the unconfirmed OPEN may have been a late duplicate;
		 * this one replaces it. */
		if (c->opnum == OP_OPEN)
			return SEQ_AFRESH;
		if (c->opnum != OP_OPEN_CONFIRM)
			return SEQ_NO_STATE;
	}
	return is_next(o->seqid, seqid) ? SEQ_NEXT : SEQ_BAD;
}

/* Puts the stored reply; fh: the current filehandle that OPEN left. */
static int put_replay(struct nfs4_compound *c, const struct nfs4_owner *o, struct vfs_fh *fh,
		      struct nfs4_audience *audience)
{
	const struct nfs4_replay *r = o->replay;
	int status = nfs4_reserve_reply(c, r->len);

	if (status != NFS4_OK)
		return status;
	xdr_put_fixed(c->out, r->body, r->len); /* a multiple of 4 */
	c->keep_body = true;
	*fh = r->fh;
	*audience = r->audience;
	return (int)r->status;
}

/* A caller outside the reply's audience is treated like one that sends another call. A repeated
 * OPEN sets the current filehandle to its file, for the operations behind it. */
static int end_replay(struct nfs4_compound *c, const struct nfs4_audience *audience,
		      const struct vfs_fh *fh, int status)
{
	const int rc = nfs4_audience_check(c, audience);

	if (rc < 0)
		status = rc == -RN_EUNNAMED ? NFS4ERR_RESOURCE : NFS4ERR_BAD_SEQID;
	else if (status != NFS4_OK || fh->len == 0)
		return status;
	else
		status = nfs4_place_by_fh(c, &c->current, fh);
	if (status != NFS4_OK)
		c->keep_body = false;
	return status;
}

static int owner_seq_refusal(enum seq_verdict v)
{
	switch (v) {
	case SEQ_BUSY:
		return NFS4ERR_RESOURCE; /* leaves the number unchanged, unlike NFS4ERR_DELAY */
	case SEQ_NO_STATE:
		return NFS4ERR_BAD_STATEID;
	default:
		return NFS4ERR_BAD_SEQID;
	}
}

/* Memory for a reply: the owner's if it is large enough, else new. Under the client's lock. */
static struct nfs4_replay *replay_for(struct nfs4_owner *o, uint32_t len)
{
	struct nfs4_client *cl = o->client;
	uint32_t size = ((uint32_t)sizeof(struct nfs4_replay) + len + 63u) & ~63u;
	struct nfs4_replay *r = o->replay;

	if (r && r->size >= size)
		return r;
	if (r)
		nfs4_state_discharge(cl, r->size);
	free(r);
	o->replay = NULL;
	if (!nfs4_state_charge(cl, size))
		return NULL;
	o->replay = calloc(1, size);
	if (o->replay)
		o->replay->size = size;
	else
		nfs4_state_discharge(cl, size);
	return o->replay;
}

/*
 * Stores the reply. Without memory it is lost, and a retransmission is answered NFS4ERR_BAD_SEQID.
 */
static void keep_answer(const struct nfs4_compound *c, struct nfs4_owner *o, int status)
{
	size_t at = c->status_at + 4;
	uint32_t len = (uint32_t)(xdr_out_pos(c->out) - at);
	struct nfs4_replay *r = o->in_table ? replay_for(o, len) : NULL;

	if (!r)
		return;
	r->opnum = c->opnum;
	r->status = (uint32_t)status;
	r->sum = c->seq_sum;
	r->len = len;
	r->audience = nfs4_audience_of(c);
	r->fh.len = 0;
	if (c->opnum == OP_OPEN && status == NFS4_OK)
		r->fh = c->current.fh;
	memcpy(r->body, c->out->base + at, len);
}

static void owner_seq_done(struct nfs4_compound *c, int status)
{
	struct nfs4_owner *o = c->seq_owner;

	c->seq_owner = NULL;
	pthread_mutex_lock(&o->client->lock);
	o->seq_busy = false;
	if (nfs4_seq_advances(status)) {
		o->seq_known = true;
		o->seqid = o->seq_next;
		keep_answer(c, o, status);
	}
	pthread_mutex_unlock(&o->client->lock);
	nfs4_owner_release(o);
}

static const struct nfs4_seq_hooks seq_hooks = { .done = owner_seq_done };

int nfs4_seq_begin(struct nfs4_compound *c, struct nfs4_owner *o, uint32_t seqid, bool *replayed)
{
	struct nfs4_client *cl = o->client;
	enum seq_verdict v;
	struct vfs_fh fh = { .len = 0 };
	struct nfs4_audience audience = { .n = 0 };
	bool put = false;
	int status = NFS4_OK;

	*replayed = false;
	if (c->minor > 0)
		return NFS4_OK;
	pthread_mutex_lock(&cl->lock);
	v = owner_seq_judge(c, o, seqid);
	if (v == SEQ_AFRESH && rpc_is_prompt(c->req)) {
		/* The end of the open that is replaced may wait. */
		pthread_mutex_unlock(&cl->lock);
		rpc_move(c->req);
		pthread_mutex_lock(&cl->lock);
		v = owner_seq_judge(c, o, seqid);
	}
	if (v == SEQ_AGAIN) {
		status = put_replay(c, o, &fh, &audience);
		put = c->keep_body;
	} else if (v == SEQ_NEXT || v == SEQ_AFRESH) {
		o->seq_busy = true;
		o->seq_next = seqid;
		nfs4_owner_use(o);
		c->seq_owner = o;
		c->seq_hooks = &seq_hooks;
	} else {
		status = owner_seq_refusal(v);
	}
	pthread_mutex_unlock(&cl->lock);
	if (v == SEQ_AGAIN) {
		*replayed = true;
		return put ? end_replay(c, &audience, &fh, status) : status;
	}
	if (status != NFS4_OK)
		return status;
	/* Only the next operation of the owner proves that the reply of CLOSE has arrived. */
	if (v == SEQ_AFRESH || (v == SEQ_NEXT && !o->unconfirmed))
		nfs4_owner_drop_kept(o);
	return status;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Owners: as objects, and as holders that vfs/ names in conflicts; a client's table of them, by kind and name; and
 * in minor version 0 their sequence numbers, with the replies stored for retransmissions. */
#include "nfs4/state/owner.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/session.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/pseudo/pseudo.h"
#include "nfs4/state/holdings.h"
#include "nfs4/state/state.h"

void nfs4_get_wire_owner(struct nfs4_compound *c, struct nfs4_wire_owner *o)
{
	o->clientid = xdr_get_u64(c->in);
	o->name = xdr_get_opaque(c->in, NFS4_OPAQUE_LIMIT, &o->len);
}

void nfs4_owner_ref(struct nfs4_owner *o)
{
	atomic_fetch_add_explicit(&o->refs, 1, memory_order_relaxed);
}

void nfs4_owner_unref(struct nfs4_owner *o)
{
	if (atomic_fetch_sub_explicit(&o->refs, 1, memory_order_acq_rel) != 1)
		return;
	nfs4_client_put(o->client);
	free(o->replay);
	free(o);
}

static void owner_holder_ref(struct vfs_holder *h)
{
	nfs4_owner_ref(nfs4_owner_of_holder(h));
}

static void owner_holder_put(struct vfs_holder *h)
{
	nfs4_owner_unref(nfs4_owner_of_holder(h));
}

static enum vfs_yield holder_yield(struct vfs_holder *h)
{
	struct nfs4_client *cl = nfs4_owner_of_holder(h)->client;

	switch (nfs4_client_expire_courtesy(cl->srv, cl)) {
	case NFS4_DROPPED:
		return VFS_YIELDED;
	case NFS4_DROPPING:
		return VFS_YIELDING;
	default:
		return VFS_HOLDS;
	}
}

static const struct vfs_holder_ops holder_ops = {
	.ref = owner_holder_ref,
	.put = owner_holder_put,
	.yield = holder_yield,
};

bool nfs4_holder_is_ours(const struct vfs_holder *h)
{
	return h && h->ops == &holder_ops;
}

/* bytes of an owner with a name of that length */
static size_t nfs4_owner_cost(uint32_t len)
{
	return sizeof(struct nfs4_owner) + len;
}

/* Makes an owner in no table, with a reference for the caller. NULL: no memory. */
static struct nfs4_owner *nfs4_owner_new(struct nfs4_client *cl, const struct nfs4_owner_name *name)
{
	struct nfs4_owner *o = calloc(1, nfs4_owner_cost(name->len));

	if (!o)
		return NULL;
	o->holder.ops = &holder_ops;
	o->refs = 1;
	o->kind = (uint8_t)name->kind;
	o->client = cl;
	nfs4_client_ref(cl);
	o->len = name->len;
	memcpy(o->name, name->name, name->len);
	return o;
}

#define BUCKETS_MIN 8u

static uint32_t owner_table_hash(const struct nfs4_client *cl, const struct nfs4_owner_name *name)
{
	return (uint32_t)nfs4_client_hash(cl, name->kind, name->name, name->len);
}

static struct nfs4_owner **owner_table_bucket(struct nfs4_holdings *held, uint32_t hash)
{
	return &held->owner_hash[hash & (held->owner_buckets - 1)];
}

static struct nfs4_owner *owner_table_find(struct nfs4_holdings *held,
					   const struct nfs4_owner_name *name, uint32_t hash)
{
	struct nfs4_owner *o;

	if (held->owner_buckets == 0)
		return NULL;
	for (o = *owner_table_bucket(held, hash); o; o = o->hash_next) {
		if (o->hash == hash && o->kind == name->kind && o->len == name->len &&
		    memcmp(o->name, name->name, name->len) == 0)
			return o;
	}
	return NULL;
}

static void owner_table_insert(struct nfs4_holdings *held, struct nfs4_owner *o)
{
	struct nfs4_owner **at = owner_table_bucket(held, o->hash);

	o->hash_next = *at;
	*at = o;
}

static void rehash(struct nfs4_holdings *held, struct nfs4_owner **old, uint32_t n)
{
	struct nfs4_owner *o, *next;

	for (uint32_t i = 0; i < n; i++) {
		for (o = old[i]; o; o = next) {
			next = o->hash_next;
			owner_table_insert(held, o);
		}
	}
}

static bool owner_table_grow(struct nfs4_client *cl)
{
	struct nfs4_holdings *held = cl->holdings;
	uint32_t n = held->owner_buckets, twice = n > 0 ? 2 * n : BUCKETS_MIN;
	struct nfs4_owner **fresh, **old = held->owner_hash;

	if (!nfs4_state_charge(cl, (twice - n) * sizeof(*fresh)))
		return n > 0;
	fresh = calloc(twice, sizeof(*fresh));
	if (!fresh) {
		nfs4_state_discharge(cl, (twice - n) * sizeof(*fresh));
		return n > 0;
	}
	held->owner_hash = fresh;
	held->owner_buckets = twice;
	rehash(held, old, n);
	free(old);
	return true;
}

static struct nfs4_owner *new_owner(struct nfs4_client *cl, const struct nfs4_owner_name *name,
				    uint32_t hash)
{
	struct nfs4_holdings *held = cl->holdings;
	struct nfs4_owner *o;

	if (held->owners >= held->owner_buckets && !owner_table_grow(cl))
		return NULL;
	if (!nfs4_state_charge(cl, nfs4_owner_cost(name->len)))
		return NULL;
	o = nfs4_owner_new(cl, name);
	if (!o) {
		nfs4_state_discharge(cl, nfs4_owner_cost(name->len));
		return NULL;
	}
	o->in_table = true;
	o->hash = hash;
	owner_table_insert(held, o);
	held->owners++;
	nfs4_totals_count(cl->srv, NFS4_TOTAL_OWNERS, 1);
	return o;
}

/* Begins unconfirmed: the server may have forgotten the owner, and this OPEN be a late duplicate
 * (RFC 7530 section 9.1.11). A reclaim confirms the owner by itself (nfs4/open/open_share.c). */
static void begin_unconfirmed(struct nfs4_holdings *held, struct nfs4_owner *o)
{
	o->unconfirmed = true;
	o->since = (uint32_t)nfs4_clients_now(o->client->srv);
	TAILQ_INSERT_TAIL(&held->unconfirmed, o, link);
}

void nfs4_owner_use(struct nfs4_owner *o)
{
	if (o->idle) {
		o->idle = false;
		TAILQ_REMOVE(&o->client->holdings->idle, o, link);
		o->client->holdings->nidle--;
	}
	nfs4_owner_ref(o);
	o->users++;
}

int nfs4_owner_get(struct nfs4_compound *c, struct nfs4_client *cl,
		   const struct nfs4_owner_name *name, struct nfs4_owner **out)
{
	struct nfs4_holdings *held = cl->holdings;
	uint32_t hash = owner_table_hash(cl, name);
	struct nfs4_owner *o;
	int status = NFS4_OK;

	pthread_mutex_lock(&cl->lock);
	o = owner_table_find(held, name, hash);
	if (held->dropped) {
		status = NFS4ERR_EXPIRED;
	} else if (!o) {
		o = new_owner(cl, name, hash);
		if (!o)
			status = nfs4_state_no_memory(c);
		else if (c->minor == 0 && name->kind == NFS4_OPEN_OWNER)
			begin_unconfirmed(held, o);
	}
	if (status == NFS4_OK)
		nfs4_owner_use(o);
	pthread_mutex_unlock(&cl->lock);
	*out = status == NFS4_OK ? o : NULL;
	return status;
}

struct nfs4_owner *nfs4_owner_load(struct nfs4_client *cl, const struct nfs4_owner_name *name,
				   bool unconfirmed, uint32_t since)
{
	const uint32_t hash = owner_table_hash(cl, name);
	struct nfs4_owner *o;

	pthread_mutex_lock(&cl->lock);
	o = owner_table_find(cl->holdings, name, hash) ? NULL : new_owner(cl, name, hash);
	if (o && unconfirmed)
		begin_unconfirmed(cl->holdings, o);
	if (o)
		o->since = since;
	pthread_mutex_unlock(&cl->lock);
	return o;
}

struct nfs4_owner *nfs4_owner_find(struct nfs4_client *cl, const struct nfs4_owner_name *name)
{
	struct nfs4_owner *o;

	pthread_mutex_lock(&cl->lock);
	o = owner_table_find(cl->holdings, name, owner_table_hash(cl, name));
	if (o)
		nfs4_owner_use(o);
	pthread_mutex_unlock(&cl->lock);
	return o;
}

void nfs4_owner_forget(struct nfs4_owner *o, struct nfs4_dead_owners *dead)
{
	struct nfs4_client *cl = o->client;
	struct nfs4_holdings *held = cl->holdings;
	struct nfs4_owner **at = owner_table_bucket(held, o->hash);

	while (*at != o)
		at = &(*at)->hash_next;
	*at = o->hash_next;
	if (o->unconfirmed)
		TAILQ_REMOVE(&held->unconfirmed, o, link);
	if (o->idle) {
		TAILQ_REMOVE(&held->idle, o, link);
		held->nidle--;
	}
	o->in_table = o->unconfirmed = o->idle = false;
	if (o->kept) {
		nfs4_state_forget(cl, &o->kept->st);
		/* The link is free: the open is in no hash table any more. */
		o->kept->st.hash_next = dead->kept;
		dead->kept = &o->kept->st;
		o->kept = NULL;
	}
	nfs4_state_discharge(cl, nfs4_owner_cost(o->len) + (o->replay ? o->replay->size : 0));
	held->owners--;
	nfs4_totals_count(cl->srv, NFS4_TOTAL_OWNERS, -1);
	o->hash_next = dead->first;
	dead->first = o;
}

void nfs4_bury(struct nfs4_dead_owners *dead)
{
	struct nfs4_owner *o, *next_owner;
	struct nfs4_state *st, *next;

	for (st = dead->kept; st; st = next) {
		next = st->hash_next;
		nfs4_state_unref(st);
	}
	for (o = dead->first; o; o = next_owner) {
		next_owner = o->hash_next;
		nfs4_owner_unref(o);
	}
}

void nfs4_owner_maybe_idle(struct nfs4_owner *o, struct nfs4_dead_owners *dead)
{
	struct nfs4_holdings *held = o->client->holdings;

	if (o->states > 0 || o->users > 0 || !o->in_table || o->idle)
		return;
	/* A lock-owner without stateids is freed. Linux restarts its sequence under the same name
	 * when its first LOCK was refused, and its last operation cannot be retransmitted. */
	if (!o->seq_known || held->dropped || o->kind == NFS4_LOCK_OWNER) {
		nfs4_owner_forget(o, dead);
		return;
	}
	if (o->unconfirmed)
		return; /* the list of unconfirmed owners has its own timeout */
	o->idle = true;
	o->since = (uint32_t)nfs4_clients_now(o->client->srv);
	TAILQ_INSERT_TAIL(&held->idle, o, link);
	if (++held->nidle > NFS4_IDLE_OWNERS_MAX)
		nfs4_owner_forget(TAILQ_FIRST(&held->idle), dead);
}

void nfs4_owner_release(struct nfs4_owner *o)
{
	struct nfs4_dead_owners dead = { NULL, NULL };
	struct nfs4_client *cl;

	if (!o)
		return;
	cl = o->client;
	nfs4_client_ref(cl);
	pthread_mutex_lock(&cl->lock);
	o->users--;
	nfs4_owner_maybe_idle(o, &dead);
	pthread_mutex_unlock(&cl->lock);
	nfs4_bury(&dead);
	nfs4_owner_unref(o);
	nfs4_client_put(cl);
}

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
		      struct nfs4_reply_exports *exports)
{
	const struct nfs4_replay *r = o->replay;
	int status = nfs4_reserve_reply(c, r->len);

	if (status != NFS4_OK)
		return status;
	xdr_put_fixed(c->out, r->body, r->len); /* a multiple of 4 */
	c->keep_body = true;
	*fh = r->fh;
	*exports = r->exports;
	return (int)r->status;
}

/* A caller that the reply's exports do not admit is treated like one that sends another call. A repeated
 * OPEN sets the current filehandle to its file, for the operations behind it. */
static int end_replay(struct nfs4_compound *c, const struct nfs4_reply_exports *exports,
		      const struct vfs_fh *fh, int status)
{
	const int rc = nfs4_reply_exports_check(c, exports);

	if (rc < 0)
		status = rc == -RN_EUNNAMED ? NFS4ERR_RESOURCE : NFS4ERR_BAD_SEQID;
	else if (status != NFS4_OK || fh->len == 0)
		return status;
	else
		status = nfs4_object_by_fh(c, &c->current, fh);
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

/* The owner's if it is large enough, else new. */
struct nfs4_replay *nfs4_replay_for(struct nfs4_owner *o, uint32_t len)
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
	struct nfs4_replay *r = o->in_table ? nfs4_replay_for(o, len) : NULL;

	if (!r)
		return;
	r->opnum = c->opnum;
	r->status = (uint32_t)status;
	r->sum = c->seq_sum;
	r->len = len;
	r->exports = nfs4_reply_exports_of(c);
	r->fh.len = 0;
	if (c->opnum == OP_OPEN && status == NFS4_OK)
		r->fh = c->current.fh;
	memcpy(r->body, c->out->base + at, len);
}

void nfs4_seq_done(struct nfs4_compound *c, int status)
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

int nfs4_seq_begin(struct nfs4_compound *c, struct nfs4_owner *o, uint32_t seqid, bool *replayed)
{
	struct nfs4_client *cl = o->client;
	enum seq_verdict v;
	struct vfs_fh fh = { .len = 0 };
	struct nfs4_reply_exports exports = { .n = 0 };
	bool put = false;
	int status = NFS4_OK;

	*replayed = false;
	if (c->minor > 0)
		return NFS4_OK;
	pthread_mutex_lock(&cl->lock);
	v = owner_seq_judge(c, o, seqid);
	if (v == SEQ_AFRESH && rpc_on_event_thread(c->req)) {
		/* The end of the open that is replaced may wait. */
		pthread_mutex_unlock(&cl->lock);
		rpc_move(c->req);
		pthread_mutex_lock(&cl->lock);
		v = owner_seq_judge(c, o, seqid);
	}
	if (v == SEQ_AGAIN) {
		status = put_replay(c, o, &fh, &exports);
		put = c->keep_body;
	} else if (v == SEQ_NEXT || v == SEQ_AFRESH) {
		o->seq_busy = true;
		o->seq_next = seqid;
		nfs4_owner_use(o);
		c->seq_owner = o;
	} else {
		status = owner_seq_refusal(v);
	}
	pthread_mutex_unlock(&cl->lock);
	if (v == SEQ_AGAIN) {
		*replayed = true;
		return put ? end_replay(c, &exports, &fh, status) : status;
	}
	if (status != NFS4_OK)
		return status;
	/* Only the next operation of the owner proves that the reply of CLOSE has arrived. */
	if (v == SEQ_AFRESH || (v == SEQ_NEXT && !o->unconfirmed))
		nfs4_owner_drop_kept(o);
	return status;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* SEQUENCE (RFC 8881 section 18.46): the slot, its cached reply, retries, the result. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/error.h"
#include "lib/util.h"
#include "nfs4/callback/cb_ops.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/client_host.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/session.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/recovery/grace.h"
#include "nfs4/session/registry.h"
#include "nfs4/session/session_private.h"
#include "nfs4/state/holdings.h"

/* The result of SEQUENCE. */

/* Flags of the callback path: of the session, and of the client if no session has another. */
static uint32_t path_flags(uint32_t cb_flags, struct nfs4_client *cl)
{
	struct nfs4_session *other;

	if (!(cb_flags & SEQ4_STATUS_CB_PATH_DOWN_SESSION))
		return cb_flags;
	other = nfs4_cb_session(cl);
	nfs4_session_put(other);
	return cb_flags | (other ? 0 : SEQ4_STATUS_CB_PATH_DOWN);
}

uint32_t nfs4_sequence_flags(const struct nfs4_session *s, uint32_t cb_flags, bool alive)
{
	struct nfs4_client *cl = s->client;
	uint32_t flags = path_flags(cb_flags, cl);

	if (!alive)
		flags |= SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED;
	if (nfs4_holdings_have_revoked(cl->holdings, NFS4ERR_EXPIRED))
		flags |= SEQ4_STATUS_EXPIRED_SOME_STATE_REVOKED;
	if (nfs4_holdings_have_revoked(cl->holdings, NFS4ERR_ADMIN_REVOKED))
		flags |= SEQ4_STATUS_ADMIN_STATE_REVOKED;
	if (nfs4_holdings_have_revoked(cl->holdings, NFS4ERR_DELEG_REVOKED))
		flags |= SEQ4_STATUS_RECALLABLE_STATE_REVOKED;
	if (nfs4_reclaim_is_needed(&cl->record))
		flags |= SEQ4_STATUS_RESTART_RECLAIM_NEEDED;
	return flags;
}

/* Puts the result; alive: true if the client's state has not expired. */
static void nfs4_put_sequence(struct nfs4_compound *c, const struct nfs4_sequence_args *a,
			      const struct nfs4_session *s, bool alive)
{
	xdr_put_fixed(c->out, a->session, sizeof(a->session));
	xdr_put_u32(c->out, a->seqid);
	xdr_put_u32(c->out, a->slot);
	xdr_put_u32(c->out, a->highest_now);
	xdr_put_u32(c->out, a->target_now);
	xdr_put_u32(c->out, nfs4_sequence_flags(s, a->cb_flags, alive));
}

/* Fills in the part of the result that is under s->lock, which is held. */
static void nfs4_sequence_look(struct nfs4_sequence_args *a, struct nfs4_session *s)
{
	a->cb_flags = nfs4_cb_flags(s);
	a->highest_now = s->nslots - 1;
	a->target_now = s->target - 1;
}

/*
 * Replies cached in slots. A reply is cached as its byte stream on the wire, with the positions of bulk
 * items: a retry may come over another connection, and gets these by its own Write chunks (RFC 8881
 * section 2.10.6.2).
 */

#define SMALL 512u /* bytes that a slot may keep allocated for a smaller reply */

static size_t marks_size(const struct xdr_out *out)
{
	return out->nbulks * 2 * sizeof(uint32_t);
}

/* True if another reply of the session's maximum size can be kept. */
static bool nfs4_slot_can_keep(const struct nfs4_session *s, const struct nfs4_slot *slot)
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

/* Keeps c's reply in c->slot, which is busy. The caller holds no lock. */
static void nfs4_slot_keep(struct nfs4_compound *c)
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
	c->slot->reply->exports = nfs4_reply_exports_of(c);
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

/* Replaces the contents of c->out by the cached reply. NFS4_REPLAYED, or NFS4ERR_DELAY: no memory
 * now. */
static int nfs4_slot_replay(struct nfs4_compound *c, const struct nfs4_cached *r)
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
static int check_reply_exports(struct nfs4_compound *c, const struct nfs4_cached *cached)
{
	switch (nfs4_reply_exports_check(c, &cached->exports)) {
	case 0:
		return NFS4_OK;
	case -RN_EUNNAMED:
		return NFS4ERR_DELAY;
	default:
		return NFS4ERR_SEQ_FALSE_RETRY;
	}
}

static int retry_answer_cached(struct nfs4_compound *c, struct nfs4_session *s,
			       const struct nfs4_retry *r, struct nfs4_cached *cached)
{
	int status;

	if (cached) {
		status = check_reply_exports(c, cached);
		if (status == NFS4_OK)
			status = nfs4_slot_replay(c, cached);
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

/* Answers the retry c; takes over the reference of cached (or
 * NULL). NFS4_OK, NFS4_REPLAYED, or a status. */
static int nfs4_retry_answer(struct nfs4_compound *c, struct nfs4_session *s,
			     struct nfs4_cached *cached)
{
	struct nfs4_retry r;
	int status;

	look_at_retry(c, &r);
	status = retry_answer_cached(c, s, &r, cached);
	nfs4_cached_put(cached);
	return status;
}

/* The first request has ended. Its reply is in the slot, unless the client has sent the next
 * request already. */
static int look_again(struct nfs4_compound *c, const struct nfs4_retry *r)
{
	struct nfs4_sequence_args *a = c->args;
	struct nfs4_session *s = nfs4_session_get(c->server->clients, a->session);
	struct nfs4_cached *cached = NULL;
	int status = NFS4_REPLAYED;

	if (!s)
		return NFS4ERR_BADSESSION;
	pthread_mutex_lock(&s->lock);
	if (s->dead)
		status = NFS4ERR_BADSESSION;
	else if (a->slot >= s->nslots)
		status = NFS4ERR_BADSLOT;
	else
		status = nfs4_slot_reply(s, a->slot, a->seqid, &cached);
	nfs4_sequence_look(a, s);
	pthread_mutex_unlock(&s->lock);
	if (status == NFS4_REPLAYED)
		status = retry_answer_cached(c, s, r, cached);
	nfs4_cached_put(cached);
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

/* Answers a retry whose request is under way, after that has ended. The caller holds s->lock, which is not held
 * any more on return, and a reference of s. */
static int nfs4_retry_wait(struct nfs4_compound *c, struct nfs4_session *s, struct nfs4_slot *slot)
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

/* Work for the session and the client at the end of a COMPOUND. */

/* Keeps the reply for a retry if the client asked for that, and frees the slot. */
static void leave_session(struct nfs4_compound *c)
{
	struct nfs4_session *s = c->session;

	if (c->cache_this)
		nfs4_slot_keep(c);
	nfs4_slot_done(s, c->slot);
	c->session = NULL;
	c->slot = NULL;
	nfs4_session_put(s);
}

void nfs4_clients_leave(struct nfs4_compound *c)
{
	if (c->session)
		leave_session(c);
	if (c->client)
		c->clientid = c->client->clientid;
	nfs4_client_call_ends(c);
	nfs4_client_put(c->of_conn);
	c->of_conn = NULL;
}

/* SEQUENCE (RFC 8881 section 18.46): a COMPOUND takes its slot, or is a retry. Errors are found
 * before the slot changes, because a failed SEQUENCE leaves it unchanged. */

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
	struct nfs4_cached *cached; /* NFS4_REPLAYED: a reference of the reply, or NULL */
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
	status = nfs4_slot_reply(s, a->slot, a->seqid, &out->cached);
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
	nfs4_client_call_begins(s->client, c);
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
	if (status == NFS4_OK)
		nfs4_cb_return(s, c->req->conn);
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
		status = nfs4_retry_answer(c, s, found.cached);
	else
		nfs4_cached_put(found.cached);
	nfs4_session_put(s);
	return status;
}

const struct nfs4_op nfs4_op_sequence = {
	.name = "SEQUENCE",
	.minors = { 1, 2 },
	.flags = NFS4_OP_FIRST | NFS4_OP_FOR_RECENT | NFS4_OP_EVENT_THREAD,
	.reply_max = NFS4_SEQUENCE_RESULT,
	.errors = NFS4_ERRORS_OWN,
	.shape = NFS4_SHAPE(NFS4_SESSIONID_SIZE + 16, 0, 0),
	.args_size = sizeof(struct nfs4_sequence_args),
	.decode = decode_sequence,
	.run = run_sequence,
};

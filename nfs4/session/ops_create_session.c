/* SPDX-License-Identifier: BSD-2-Clause */
/* CREATE_SESSION (RFC 8881 section 18.36): channels and the session. */
#include <stdlib.h>
#include <string.h>

#include "lib/budget.h"
#include "lib/util.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/client_host.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/session.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/recovery/grace.h"
#include "nfs4/session/session_private.h"

/* channel_attrs4: the limits that a session negotiates (RFC 8881 section 18.36.3). */

/* Smallest limits with which a COMPOUND can run and be answered: RPC headers with AUTH_SYS,
 * SEQUENCE and one small operation. */
#define REQUEST_LEAST 256u
#define REPLY_LEAST 160u

/* Least size of a CB_COMPOUND: CB_SEQUENCE, and an operation with a filehandle and an owner. */
#define CALLBACK_LEAST 512u
#define CALLBACK_REPLY_LEAST 128u

/* Bytes of a request or reply in addition to the data of its READ or WRITE. */
#define BESIDES_DATA 16384u

void nfs4_get_channel(struct xdr_in *x, struct nfs4_channel *out)
{
	out->header_pad = xdr_get_u32(x);
	out->max_request = xdr_get_u32(x);
	out->max_reply = xdr_get_u32(x);
	out->max_cached = xdr_get_u32(x);
	out->max_ops = xdr_get_u32(x);
	out->max_requests = xdr_get_u32(x);
	out->nird = xdr_get_u32(x);
	if (out->nird > 1)
		x->err = true;
	if (out->nird == 1)
		out->ird = xdr_get_u32(x);
}

void nfs4_put_channel(struct xdr_out *x, const struct nfs4_channel *ch)
{
	xdr_put_u32(x, ch->header_pad);
	xdr_put_u32(x, ch->max_request);
	xdr_put_u32(x, ch->max_reply);
	xdr_put_u32(x, ch->max_cached);
	xdr_put_u32(x, ch->max_ops);
	xdr_put_u32(x, ch->max_requests);
	xdr_put_u32(x, ch->nird);
	if (ch->nird > 0)
		xdr_put_u32(x, ch->ird);
}

static uint32_t at_most(uint32_t v, uint32_t most)
{
	return v < most ? v : most;
}

static uint32_t between(uint32_t v, uint32_t least, uint32_t most)
{
	return v < least ? least : at_most(v, most);
}

/* Turns the fore channel that the client offers into the one that the session will use. slots:
 * limit of its slots at the start. NFS4_OK or NFS4ERR_TOOSMALL. */
static int nfs4_channel_fore(const struct nfs4_config *cfg, uint32_t slots, struct nfs4_channel *ch)
{
	const uint32_t most = cfg->max_io + BESIDES_DATA;

	if (ch->max_request < REQUEST_LEAST || ch->max_reply < REPLY_LEAST)
		return NFS4ERR_TOOSMALL;
	ch->header_pad = 0;
	ch->max_request = at_most(ch->max_request, most);
	ch->max_reply = at_most(ch->max_reply, most);
	ch->max_cached = at_most(at_most(ch->max_cached, ch->max_reply), NFS4_CACHED_MOST);
	ch->max_ops = between(ch->max_ops, 2, NFS4_OPS_MAX);
	ch->max_requests = between(ch->max_requests, 1, slots);
	return NFS4_OK;
}

/* The numbers of operations and requests are left as the client offers them. */
static int nfs4_channel_back(struct nfs4_channel *ch)
{
	if (ch->max_requests > 0 && (ch->max_request < CALLBACK_LEAST ||
				     ch->max_reply < CALLBACK_REPLY_LEAST || ch->max_ops < 2))
		return NFS4ERR_TOOSMALL;
	ch->header_pad = 0;
	ch->max_request = at_most(ch->max_request, BESIDES_DATA);
	ch->max_reply = at_most(ch->max_reply, BESIDES_DATA);
	ch->max_cached = at_most(ch->max_cached, ch->max_reply);
	return NFS4_OK;
}

/* Creation of a session, and eviction for its memory. */

/* Counts a session. If there are too many, courtesy clients are evicted first, then clients without
 * state of the host that has most. */
static int count_session(struct nfs4_clients *all, const struct nfs4_host *h)
{
	const unsigned most = all->srv->cfg.max_sessions;

	for (unsigned i = 0; atomic_fetch_add(&all->nsessions, 1) >= most && most > 0; i++) {
		enum nfs4_expire how = NFS4_DROPPING;

		atomic_fetch_sub(&all->nsessions, 1);
		if (i < NFS4_EVICT_MOST)
			how = nfs4_clients_evict(all);
		if (how == NFS4_HOLDS && i < NFS4_EVICT_MOST &&
		    nfs4_clients_shed(all, NFS4_SESSIONS, nfs4_host_has(h, NFS4_SESSIONS) + 1))
			continue;
		if (how != NFS4_DROPPED)
			return how == NFS4_DROPPING ? NFS4ERR_DELAY : NFS4ERR_NOSPC;
	}
	return NFS4_OK;
}

/* Makes a session of cl that is in no table. NFS4_OK, NFS4ERR_DELAY or
 * NFS4ERR_NOSPC. */
static int nfs4_session_new(struct nfs4_client *cl, const struct nfs4_channel *fore,
			    const struct nfs4_channel *back, struct nfs4_session **out)
{
	const size_t need =
		sizeof(struct nfs4_session) + NFS4_SLOT_PIECE * sizeof(struct nfs4_slot);
	struct nfs4_clients *all = cl->srv->clients;
	struct nfs4_session *s = NULL;
	int status = count_session(all, cl->host);

	if (status != NFS4_OK)
		return status;
	/* Memory for the first slots is included, so that the session can be used. */
	if (nfs4_clients_take(all, cl->host, need, NFS4_TO_BEGIN)) {
		nfs4_host_give(cl->host, need);
		s = nfs4_session_make(cl, fore, back);
	}
	atomic_fetch_sub(&all->nsessions, 1);
	if (!s)
		return NFS4ERR_DELAY;
	nfs4_session_name(s);
	nfs4_slot_get(s, 0);
	*out = s;
	return NFS4_OK;
}

/*
 * CREATE_SESSION (RFC 8881 section 18.36): a client id is confirmed by its first session. Each
 * client has one slot for this operation. A final answer is kept for a retry; NFS4ERR_DELAY is not.
 */

#define FLAGS_ALLOWED                                                                              \
	(CREATE_SESSION4_FLAG_PERSIST | CREATE_SESSION4_FLAG_CONN_BACK_CHAN |                      \
	 CREATE_SESSION4_FLAG_CONN_RDMA)

struct create_session_args {
	uint64_t clientid;
	uint32_t seqid, flags;
	struct nfs4_channel fore, back;
	uint32_t cb_program;
	struct nfs4_cb_security security;
};

static void decode_create_session(struct nfs4_compound *c, void *args)
{
	struct create_session_args *a = args;

	a->clientid = xdr_get_u64(c->in);
	a->seqid = xdr_get_u32(c->in);
	a->flags = xdr_get_u32(c->in);
	nfs4_get_channel(c->in, &a->fore);
	nfs4_get_channel(c->in, &a->back);
	a->cb_program = xdr_get_u32(c->in);
	nfs4_get_cb_security(c->in, &a->security);
}

static int create_session_put_reply(struct nfs4_compound *c, const struct nfs4_cs_reply *r)
{
	if (r->status != NFS4_OK)
		return r->status;
	xdr_put_fixed(c->out, r->id, NFS4_SESSIONID_SIZE);
	xdr_put_u32(c->out, r->seqid);
	xdr_put_u32(c->out, r->flags);
	nfs4_put_channel(c->out, &r->fore);
	nfs4_put_channel(c->out, &r->back);
	return NFS4_OK;
}

#define MAY_CREATE (-6) /* no status */

/* Phases 1 and 2 of section 18.36.4. MAY_CREATE: this call may create the session, and no other
 * call of the client until create_session_finish(). */
static int create_session_begin(struct nfs4_compound *c, const struct create_session_args *a,
				struct nfs4_client *cl)
{
	enum nfs4_client_status status = nfs4_client_status(cl);
	const bool own = nfs4_origin_is(cl, c);
	int rc = NFS4ERR_SEQ_MISORDERED;

	if (!cl->sessions || status == NFS4_CLIENT_EXPIRED || status == NFS4_CLIENT_GONE)
		return NFS4ERR_STALE_CLIENTID;
	/* Checked first, so that other callers cannot use up sequence numbers. An unconfirmed
	 * client must call from the address of its EXCHANGE_ID, a moment before. */
	if (nfs4_principal_made(c, cl) && !nfs4_may_manage(c, cl))
		return NFS4ERR_WRONG_CRED;
	if (!nfs4_principal_made(c, cl) || (status == NFS4_CLIENT_UNCONFIRMED && !own))
		return NFS4ERR_CLID_INUSE;
	pthread_mutex_lock(&cl->lock);
	if (cl->creating)
		rc = NFS4ERR_DELAY;
	else if (a->seqid == cl->cs_seqid && cl->cs_reply && own)
		/* Contains the session's id: only for its client */
		rc = create_session_put_reply(c, cl->cs_reply);
	else if (a->seqid == cl->cs_seqid + 1)
		rc = MAY_CREATE;
	if (rc == MAY_CREATE)
		cl->creating = true;
	pthread_mutex_unlock(&cl->lock);
	return rc;
}

/* Phase 3: confirms the client id if necessary, and removes its predecessors. */
static int create_session_confirm(struct nfs4_compound *c, struct nfs4_client *cl)
{
	struct nfs4_clients *all = cl->srv->clients;
	struct nfs4_client_queue old;
	enum nfs4_client_status status;
	int rc = NFS4_OK;

	TAILQ_INIT(&old);
	pthread_mutex_lock(&all->lock);
	status = nfs4_client_status(cl);
	if (status == NFS4_CLIENT_UNCONFIRMED)
		rc = nfs4_client_confirm(c, cl, &old);
	pthread_mutex_unlock(&all->lock);
	if (rc != NFS4_OK)
		return rc;
	if (status == NFS4_CLIENT_UNCONFIRMED) {
		nfs4_clients_forget(cl->srv, &old);
		nfs4_record_confirmed(cl->srv, &cl->record);
		nfs4_client_log_confirmed(c, cl);
	}
	return status == NFS4_CLIENT_GONE || status == NFS4_CLIENT_EXPIRED ? NFS4ERR_STALE_CLIENTID
									   : NFS4_OK;
}

static uint32_t first_slots(const struct nfs4_server *srv)
{
	const struct rn_budget *b = srv->cfg.budget;

	return atomic_load_explicit(&b->used, memory_order_relaxed) > b->max / 2 ? NFS4_SLOTS_LEAST
										 : NFS4_SLOTS_FIRST;
}

/* Agrees on both channels. */
static int negotiate(struct nfs4_compound *c, struct nfs4_client *cl, struct create_session_args *a)
{
	int status;

	if (a->flags & ~FLAGS_ALLOWED)
		return NFS4ERR_INVAL;
	status = nfs4_choose_cb_security(c, &a->security);
	if (status != NFS4_OK)
		return status;
	status = nfs4_channel_fore(&cl->srv->cfg, first_slots(cl->srv), &a->fore);
	if (status != NFS4_OK)
		return status;
	status = nfs4_channel_back(&a->back);
	if ((a->flags & CREATE_SESSION4_FLAG_CONN_BACK_CHAN) && a->back.max_requests == 0)
		status = NFS4ERR_TOOSMALL;
	return status;
}

/* Phase 4. */
static int make_session(struct nfs4_compound *c, struct nfs4_client *cl,
			struct create_session_args *a, struct nfs4_session **out)
{
	const uint32_t asked = a->fore.max_requests;
	struct nfs4_session *s;
	int status = negotiate(c, cl, a);

	if (status == NFS4_OK)
		status = nfs4_session_new(cl, &a->fore, &a->back, &s);
	if (status != NFS4_OK)
		return status;
	s->minor = c->minor;
	s->asked = asked < NFS4_SLOTS_MAX ? asked : NFS4_SLOTS_MAX;
	/* When memory is short, a session does without callbacks. */
	if ((a->security.plain || a->security.auth) && s->back.max_requests > 0)
		(void)nfs4_cb_path_new(s, c->minor, a->cb_program, &a->security);
	*out = s;
	return NFS4_OK;
}

/* Removes the oldest session without requests from the table. NULL: there is none. The client's
 * lock is held. */
static struct nfs4_session *oldest_idle(struct nfs4_client *cl)
{
	struct nfs4_session *s, *oldest = NULL;

	LIST_FOREACH (s, &cl->session_list, of_client) {
		if (!nfs4_session_busy(s, NULL))
			oldest = s;
	}
	if (oldest)
		nfs4_session_leave(oldest);
	return oldest;
}

/*
 * Adds the session to the table, unless the client is gone. Linux's client makes a new session
 * whenever it doubts its lease, and forgets the old one. So beyond the limit the oldest one is
 * removed.
 */
static int create_session_enter(struct nfs4_client *cl, struct nfs4_session *s)
{
	struct nfs4_session *old = NULL;
	int status = NFS4_OK;

	pthread_mutex_lock(&cl->lock);
	if (nfs4_client_status(cl) == NFS4_CLIENT_GONE)
		status = NFS4ERR_STALE_CLIENTID;
	else if (cl->nsessions >= NFS4_SESSIONS_PER_CLIENT && !(old = oldest_idle(cl)))
		status = NFS4ERR_NOSPC;
	else
		nfs4_session_enter(s);
	pthread_mutex_unlock(&cl->lock);
	nfs4_session_put(old);
	return status;
}

static int create_session_make(struct nfs4_compound *c, struct nfs4_client *cl,
			       struct create_session_args *a, struct nfs4_cs_reply *r)
{
	struct nfs4_session *s = NULL;
	int status = make_session(c, cl, a, &s);

	if (status != NFS4_OK)
		return status;
	nfs4_session_bind(s, c->req->conn);
	memcpy(r->id, s->id, sizeof(r->id));
	r->seqid = a->seqid;
	/* No persistence, no step-up to RDMA. */
	if ((a->flags & CREATE_SESSION4_FLAG_CONN_BACK_CHAN) && nfs4_cb_bind(s, c->req->conn))
		r->flags = CREATE_SESSION4_FLAG_CONN_BACK_CHAN;
	r->fore = s->fore;
	r->back = s->back;
	status = create_session_confirm(c, cl);
	if (status == NFS4_OK)
		status = create_session_enter(cl, s);
	if (status != NFS4_OK)
		nfs4_session_put(s);
	return status;
}

static bool is_final(int status)
{
	return status != NFS4ERR_DELAY && status != NFS4ERR_STALE_CLIENTID;
}

static void create_session_finish(struct nfs4_client *cl, uint32_t seqid, struct nfs4_cs_reply *r)
{
	struct nfs4_cs_reply *last = r;

	pthread_mutex_lock(&cl->lock);
	cl->creating = false;
	if (is_final(r->status)) {
		last = cl->cs_reply;
		cl->cs_reply = r;
		cl->cs_seqid = seqid;
	}
	pthread_mutex_unlock(&cl->lock);
	free(last);
}

static int run_create_session(struct nfs4_compound *c, void *args)
{
	struct create_session_args *a = args;
	struct nfs4_client *cl = nfs4_client_get(c->server->clients, a->clientid);
	struct nfs4_cs_reply *r;
	int status;

	if (!cl)
		return NFS4ERR_STALE_CLIENTID;
	status = create_session_begin(c, a, cl);
	if (status == MAY_CREATE) {
		/* Else it might be evicted to make room for its own session */
		nfs4_client_renew(cl);
		r = calloc(1, sizeof(*r));
		status = r ? create_session_make(c, cl, a, r) : NFS4ERR_DELAY;
		if (r) {
			r->status = status;
			status = create_session_put_reply(c, r);
			create_session_finish(cl, a->seqid, r);
		} else {
			pthread_mutex_lock(&cl->lock);
			cl->creating = false;
			pthread_mutex_unlock(&cl->lock);
		}
		nfs4_cb_security_clear(&a->security);
	}
	nfs4_client_put(cl);
	return status;
}

const struct nfs4_op nfs4_op_create_session = {
	.name = "CREATE_SESSION",
	.minors = { 1, 2 },
	.flags = NFS4_OP_ALONE | NFS4_OP_CHANGES | NFS4_OP_MACHINE_ONLY,
	.reply_max = NFS4_SESSIONID_SIZE + 8 + 2 * (6 * 4 + 4 + 4) /* channel_attrs4 */,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct create_session_args),
	.decode = decode_create_session,
	.run = run_create_session,
};

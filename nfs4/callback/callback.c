/* SPDX-License-Identifier: BSD-2-Clause */
/* Callbacks: their slots, their replies, and the call itself. */
#include "nfs4/callback/callback.h"

#include <errno.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/util.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/session.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/nfs4_proto.h"

/*
 * A slot whose call ended without an answer is lost: the client may have accepted its sequence id or
 * not, and a wrong guess would be taken for a retry of another call. When no slot is left, the
 * client is told to make a new session (SEQ4_STATUS_BACKCHANNEL_FAULT).
 */

/* Queues cb for a slot. False: too many wait. */
static bool nfs4_cb_queue(struct nfs4_cb *cb)
{
	struct nfs4_session *s = cb->session;
	struct nfs4_cb_path *p = s->cb_path;
	bool queued;

	pthread_mutex_lock(&s->lock);
	queued = p->nwaiting < NFS4_CB_WAITING_MAX;
	if (queued) {
		TAILQ_INSERT_TAIL(&p->waiting, cb, link);
		p->nwaiting++;
	}
	pthread_mutex_unlock(&s->lock);
	return queued;
}

/* The functions below, down to the next comment, need the session's lock. */

/* The first free slot; NULL: there is none now. */
static struct nfs4_cb_slot *cb_slot_first_free(struct nfs4_cb_path *p)
{
	for (uint32_t i = 0; i < p->nslots; i++) {
		if (!p->slot[i].busy && !p->slot[i].lost)
			return &p->slot[i];
	}
	return NULL;
}

static bool all_lost(const struct nfs4_cb_path *p)
{
	for (uint32_t i = 0; i < p->nslots; i++) {
		if (!p->slot[i].lost)
			return false;
	}
	return true;
}

static void cb_slot_take(struct nfs4_cb_path *p, struct nfs4_cb_slot *slot, struct nfs4_cb *cb)
{
	slot->busy = true;
	cb->slot = (uint32_t)(slot - p->slot);
	cb->seqid = slot->seqid;
	for (uint32_t i = 0; i < NFS4_CB_SLOTS; i++) {
		if (p->slot[i].busy)
			cb->highest = i;
	}
	cb->sent = false;
	cb->conn = p->conn[p->nconns - 1];
	rpc_backchannel_ref(cb->conn);
}

static bool may_call(struct nfs4_session *s)
{
	const struct nfs4_cb_path *p = s->cb_path;

	return !s->dead && !p->fault && p->state != NFS4_CB_DOWN && nfs4_cb_is_connected(s);
}

/* Takes the first callback out that has a slot and a connection now (*rc is 0), or cannot have them
 * any more (*rc is -ENOTCONN). NULL: none. */
static struct nfs4_cb *nfs4_cb_next(struct nfs4_session *s, int *rc)
{
	struct nfs4_cb_path *p = s->cb_path;
	struct nfs4_cb_slot *slot;
	struct nfs4_cb *cb;

	pthread_mutex_lock(&s->lock);
	cb = TAILQ_FIRST(&p->waiting);
	slot = cb_slot_first_free(p);
	*rc = may_call(s) ? 0 : -ENOTCONN;
	if (cb && *rc == 0 && !slot)
		cb = NULL;
	if (cb) {
		TAILQ_REMOVE(&p->waiting, cb, link);
		p->nwaiting--;
		if (*rc == 0)
			cb_slot_take(p, slot, cb);
	}
	pthread_mutex_unlock(&s->lock);
	return cb;
}

/* Replaces the connection of cb, which is lost. False: there is no other. */
static bool nfs4_cb_next_conn(struct nfs4_cb *cb)
{
	struct nfs4_session *s = cb->session;
	struct nfs4_cb_path *p = s->cb_path;
	bool found;

	pthread_mutex_lock(&s->lock);
	nfs4_cb_unbind(s, cb->conn);
	rpc_backchannel_put(cb->conn);
	cb->conn = NULL;
	found = may_call(s);
	if (found) {
		cb->conn = p->conn[p->nconns - 1];
		rpc_backchannel_ref(cb->conn);
	}
	pthread_mutex_unlock(&s->lock);
	return found;
}

static void nfs4_cb_note_path(struct nfs4_cb_path *p, enum nfs4_cb_path_event event)
{
	switch (event) {
	case NFS4_CB_PATH_SAME:
		if (p->state == NFS4_CB_TRYING)
			p->state = NFS4_CB_UNTRIED;
		break;
	case NFS4_CB_ANSWERED:
		p->state = NFS4_CB_UP;
		break;
	case NFS4_CB_FAILED:
		p->state = NFS4_CB_DOWN;
		break;
	case NFS4_CB_BROKEN:
		p->fault = true;
		break;
	}
}

static void nfs4_cb_give_slot(struct nfs4_cb *cb, enum nfs4_cb_fate fate,
			      enum nfs4_cb_path_event event)
{
	struct nfs4_session *s = cb->session;
	struct nfs4_cb_path *p = s->cb_path;
	struct nfs4_cb_slot *slot = &p->slot[cb->slot];

	pthread_mutex_lock(&s->lock);
	slot->busy = false;
	if (fate == NFS4_CB_ACCEPTED)
		slot->seqid++;
	else if (fate == NFS4_CB_LOST)
		slot->lost = true;
	nfs4_cb_note_path(p, event);
	if (all_lost(p))
		p->fault = true;
	pthread_mutex_unlock(&s->lock);
}

/* The client accepts slots up to this one. */
static void nfs4_cb_limit_slots(struct nfs4_session *s, uint32_t highest)
{
	const uint32_t most = (uint32_t)rn_min(s->back.max_requests, NFS4_CB_SLOTS);

	pthread_mutex_lock(&s->lock);
	s->cb_path->nslots = highest < most ? highest + 1 : most;
	pthread_mutex_unlock(&s->lock);
}

/* Meaning of a failed CB_SEQUENCE, which leaves the slot as it was (RFC 8881 section 20.9.3). */
static void sequence_failed(const struct nfs4_cb *cb, uint32_t status, struct nfs4_cb_answer *a)
{
	a->rc = -EPROTO;
	a->fate = NFS4_CB_UNTOUCHED;
	a->path = NFS4_CB_FAILED;
	switch (status) {
	case NFS4ERR_DELAY:
		a->rc = -RN_ELATER;
		a->path = NFS4_CB_PATH_SAME;
		break;
	case NFS4ERR_BADSLOT:
	case NFS4ERR_BAD_HIGH_SLOT:
		a->rc = -RN_ELATER;
		a->path = cb->slot > 0 ? NFS4_CB_PATH_SAME : NFS4_CB_BROKEN;
		a->has_highest = cb->slot > 0;
		a->highest = cb->slot - 1;
		break;
	case NFS4ERR_RETRY_UNCACHED_REP: /* it was accepted over a connection that is lost */
		a->rc = 0;
		a->status = status;
		a->fate = NFS4_CB_ACCEPTED;
		a->path = NFS4_CB_ANSWERED;
		break;
	case NFS4ERR_BADSESSION:
	case NFS4ERR_DEADSESSION:
	case NFS4ERR_SEQ_MISORDERED:
	case NFS4ERR_SEQ_FALSE_RETRY:
		a->fate = NFS4_CB_LOST;
		a->path = NFS4_CB_BROKEN;
		break;
	default:
		break;
	}
}

/* True if the result is CB_SEQUENCE's for this call. */
static bool is_echo(const struct nfs4_cb *cb, struct xdr_in *x, struct nfs4_cb_answer *a)
{
	uint8_t id[NFS4_SESSIONID_SIZE] = { 0 };
	uint32_t seqid, slot;

	xdr_get_fixed(x, id, sizeof(id));
	seqid = xdr_get_u32(x);
	slot = xdr_get_u32(x);
	xdr_get_u32(x); /* highest slot that it accepts: not below the target */
	a->highest = xdr_get_u32(x);
	return !x->err && memcmp(id, cb->session->id, sizeof(id)) == 0 && seqid == cb->seqid &&
	       slot == cb->slot;
}

/* Reads up to the first result. Returns the number of results. */
static uint32_t get_header(struct xdr_in *x)
{
	uint32_t len;

	xdr_get_u32(x); /* status of the whole, which is that of the last result */
	xdr_get_opaque(x, NFS4_OPAQUE_LIMIT, &len);
	return xdr_get_u32(x);
}

/* Reads the status of the operation. False: the result is not the operation's. */
static bool cb_get_op_status(const struct nfs4_cb *cb, struct xdr_in *x, struct nfs4_cb_answer *a)
{
	const uint32_t op = xdr_get_u32(x);

	a->status = xdr_get_u32(x);
	return !x->err && (op == cb->op->opnum || op == OP_CB_ILLEGAL);
}

void nfs4_cb_read_answer_v40(const struct nfs4_cb *cb, struct xdr_in *x, struct nfs4_cb_answer *a)
{
	const uint32_t n = get_header(x);

	*a = (struct nfs4_cb_answer){ .rc = -EPROTO };
	if (n == 1 && cb_get_op_status(cb, x, a))
		a->rc = 0;
}

/* Reads x up to the body of the operation's result. */
static void nfs4_cb_read_answer(const struct nfs4_cb *cb, struct xdr_in *x,
				struct nfs4_cb_answer *a)
{
	uint32_t n, op, status;

	*a = (struct nfs4_cb_answer){ .rc = -EPROTO, .fate = NFS4_CB_LOST, .path = NFS4_CB_FAILED };
	n = get_header(x);
	op = xdr_get_u32(x);
	status = xdr_get_u32(x);
	if (x->err || n == 0 || n > 2 || op != OP_CB_SEQUENCE)
		return;
	if (status != NFS4_OK) {
		sequence_failed(cb, status, a);
		return;
	}
	if (!is_echo(cb, x, a))
		return;
	a->has_highest = true;
	a->fate = NFS4_CB_ACCEPTED;
	if (cb->op->opnum && (!cb_get_op_status(cb, x, a) || n < 2))
		return;
	a->rc = 0;
	a->path = NFS4_CB_ANSWERED;
}

/*
 * A callback on its way over a session: queued, sent, perhaps sent again over another connection, answered.
 *
 * drive() is the only place where a queued callback goes on, so that one which fails at once does
 * not run the next from within its own end.
 */

/* Time for an answer, as a fraction of a lease, as nfsd has it. */
#define LEASE_PART 10u

struct nfs4_cb_referring nfs4_cb_refer(const struct nfs4_compound *c)
{
	struct nfs4_cb_referring r = { .seqid = 0 };

	if (!c->session)
		return r;
	memcpy(r.session, c->session->id, NFS4_SESSIONID_SIZE);
	r.seqid = c->slot->seqid;
	r.slot = c->slot->id;
	return r;
}

static void put_referring(const struct nfs4_cb_referring *r, struct xdr_out *x)
{
	xdr_put_u32(x, r ? 1 : 0);
	if (!r)
		return;
	xdr_put_fixed(x, r->session, NFS4_SESSIONID_SIZE);
	xdr_put_u32(x, 1);
	xdr_put_u32(x, r->seqid);
	xdr_put_u32(x, r->slot);
}

static void put_sequence(const struct nfs4_cb *cb, struct xdr_out *x)
{
	xdr_put_u32(x, OP_CB_SEQUENCE);
	xdr_put_fixed(x, cb->session->id, NFS4_SESSIONID_SIZE);
	xdr_put_u32(x, cb->seqid);
	xdr_put_u32(x, cb->slot);
	xdr_put_u32(x, cb->highest);
	xdr_put_bool(x, false); /* the reply need not be kept */
	put_referring(cb->referring, x);
}

/* Under RPCSEC_GSS the credential is put by the call's security. */
static void cb_put_header(struct nfs4_cb *cb, struct xdr_out *x)
{
	struct nfs4_session *s = cb->session;
	const struct nfs4_cb_path *p = s->cb_path;

	pthread_mutex_lock(&s->lock);
	const struct rpc_callee to = { p->program, NFS4_CB_VERSION, NFSPROC4_CB_COMPOUND };

	rpc_cb_auth_put(cb->rpc.auth);
	cb->rpc.auth = rpc_cb_auth_ref(p->security.auth);
	if (cb->rpc.auth)
		rpc_put_call(x, &to, RPC_AUTH_NONE, NULL, 0);
	else
		rpc_put_call(x, &to, p->security.flavor, p->security.body, p->security.len);
	pthread_mutex_unlock(&s->lock);
	xdr_put_opaque(x, NULL, 0); /* tag */
	xdr_put_u32(x, p->minor);
	xdr_put_u32(x, 0); /* callback_ident: minor version 0 only */
}

/* Encodes the call. Bytes, or 0: it is longer than the client accepts. */
static uint32_t cb_encode(struct nfs4_cb *cb, uint8_t msg[RPC_CALLBACK_SIZE])
{
	struct xdr_out x;
	size_t len;

	xdr_out_init(&x, msg, RPC_CALLBACK_SIZE);
	cb_put_header(cb, &x);
	xdr_put_u32(&x, cb->op->opnum ? 2 : 1);
	put_sequence(cb, &x);
	if (cb->op->opnum) {
		xdr_put_u32(&x, cb->op->opnum);
		cb->op->encode(cb, &x);
	}
	len = x.used + (cb->rpc.auth ? cb->rpc.auth->overhead : 0);
	return x.overflow || len > cb->session->back.max_request ? 0 : (uint32_t)x.used;
}

/*
 * Sends cb, which has a slot and a connection. 0: it ends later. Otherwise its slot is given back,
 * and the caller ends it.
 */
static int cb_transmit(struct nfs4_cb *cb)
{
	enum nfs4_cb_fate fate = cb->sent ? NFS4_CB_LOST : NFS4_CB_UNTOUCHED;
	uint8_t msg[RPC_CALLBACK_SIZE];
	const uint32_t len = cb_encode(cb, msg);
	struct rpc_backchannel *conn;
	int rc = -EMSGSIZE;

	while (len > 0) {
		conn = cb->conn;
		rpc_backchannel_ref(conn); /* cb may have ended when the call returns */
		cb->sent = true;
		rc = rpc_backchannel_call(conn, &cb->rpc, msg, len);
		rpc_backchannel_put(conn);
		if (rc == 0)
			return 0;
		cb->sent = fate == NFS4_CB_LOST;
		if (rc != -ENOTCONN || !nfs4_cb_next_conn(cb))
			break;
	}
	nfs4_cb_give_slot(cb, fate, NFS4_CB_PATH_SAME);
	return rc == -RN_EFULL ? -RN_ELATER : rc;
}

/* Ends cb, which has no slot. */
static void cb_finish(struct nfs4_cb *cb, int rc, uint32_t status, struct xdr_in *results)
{
	struct nfs4_session *s = cb->session;

	if (rc != 0)
		rn_debug(s->client->srv->cfg.log, "nfs4: %s to client %llx: %s", cb->op->name,
			 (unsigned long long)s->client->clientid, rn_error_text(rc));
	rpc_backchannel_put(cb->conn);
	cb->conn = NULL;
	rpc_cb_auth_put(cb->rpc.auth);
	cb->rpc.auth = NULL;
	cb->session = NULL;
	cb->op->done(cb, rc, status, results);
	nfs4_session_put(s);
}

/* Lets the callbacks that wait for s go on. The caller holds a reference of s. */
static void drive(struct nfs4_session *s)
{
	struct nfs4_cb *cb;
	int rc;

	while ((cb = nfs4_cb_next(s, &rc))) {
		if (rc == 0) {
			/* The wait for a slot was no delay of the client. */
			cb->rpc.due_ns = nfs4_cb_due(s->client->srv);
			rc = cb_transmit(cb);
		}
		if (rc != 0)
			cb_finish(cb, rc, 0, NULL);
	}
}

/* The answer to a CB_COMPOUND: also renews the lease (RFC 8881 section 20.9.3). */
static void cb_take_answer(struct nfs4_cb *cb, struct xdr_in *results)
{
	struct nfs4_cb_answer a;

	nfs4_cb_read_answer(cb, results, &a);
	if (a.fate == NFS4_CB_ACCEPTED)
		nfs4_client_renew(cb->session->client);
	if (a.has_highest)
		nfs4_cb_limit_slots(cb->session, a.highest);
	nfs4_cb_give_slot(cb, a.fate, a.path);
	cb_finish(cb, a.rc, a.status, a.rc == 0 && a.status == NFS4_OK ? results : NULL);
}

/* The call has ended without results. */
static void cb_take_failure(struct nfs4_cb *cb, int rc)
{
	const bool refused = rc == -EACCES || rc == -EOPNOTSUPP;

	if (rc == -ENOTCONN && nfs4_cb_next_conn(cb)) {
		rc = cb_transmit(cb);
		if (rc != 0)
			cb_finish(cb, rc, 0, NULL);
		return;
	}
	nfs4_cb_give_slot(cb, refused ? NFS4_CB_UNTOUCHED : NFS4_CB_LOST,
			  rc == -ENOTCONN ? NFS4_CB_PATH_SAME : NFS4_CB_FAILED);
	cb_finish(cb, rc, 0, NULL);
}

static void cb_on_done(struct rpc_callback *rpc, int rc, struct xdr_in *results)
{
	struct nfs4_cb *cb = rn_container_of(rpc, struct nfs4_cb, rpc);
	struct nfs4_session *s = cb->session;

	nfs4_session_ref(s);
	if (rc == 0)
		cb_take_answer(cb, results);
	else
		cb_take_failure(cb, rc);
	drive(s);
	nfs4_session_put(s);
}

uint64_t nfs4_cb_due(const struct nfs4_server *srv)
{
	const unsigned seconds = srv->cfg.lease_seconds / LEASE_PART;

	return rn_now_ns() + (seconds > 0 ? seconds : 1) * RN_NS_PER_SECOND;
}

void nfs4_cb_start(struct nfs4_cb *cb, const struct nfs4_cb_op *op, struct nfs4_session *s)
{
	cb->op = op;
	cb->session = s;
	cb->client = NULL;
	cb->conn = NULL;
	cb->rpc.auth = NULL;
	cb->rpc.done = cb_on_done;
	nfs4_session_ref(s);
	if (nfs4_cb_queue(cb))
		drive(s);
	else
		cb_finish(cb, -RN_ELATER, 0, NULL);
	nfs4_session_put(s);
}

void nfs4_cb_call(struct nfs4_cb *cb, const struct nfs4_cb_op *op, struct nfs4_client *cl)
{
	struct nfs4_session *s;

	if (!cl->sessions) {
		nfs4_cb_start_v40(cb, op, cl);
		return;
	}
	s = nfs4_cb_session(cl);
	if (s)
		nfs4_cb_start(cb, op, s);
	else
		op->done(cb, -ENOTCONN, 0, NULL);
}

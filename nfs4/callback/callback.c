/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A callback on its way over a session: queued, sent, perhaps sent again over another connection, answered.
 *
 * drive() is the only place where a queued callback goes on, so that one which fails at once does
 * not run the next from within its own end.
 */
#include "nfs4/callback/callback.h"

#include <errno.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/util.h"
#include "nfs4/callback/callback_v40.h"
#include "nfs4/callback/cb_reply.h"
#include "nfs4/callback/cb_slots.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/session.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_proto.h"
#include "nfs4/nfs4_private.h"

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
	nfs4_cb_give_slot(cb, fate, NFS4_CB_NO_NEWS);
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
	nfs4_cb_give_slot(cb, a.fate, a.news);
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
			  rc == -ENOTCONN ? NFS4_CB_NO_NEWS : NFS4_CB_FAILED);
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

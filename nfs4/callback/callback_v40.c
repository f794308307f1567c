/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A callback goes out over the client's connection, or over one that is made for it. If a connection
 * from before is lost, which the client may have closed while it was idle, the callback is sent once
 * more over a new one. The client may have run it then: operations of minor version 0 can be
 * repeated (RFC 7530 section 17).
 */
#include <errno.h>
#include <string.h>

#include "lib/error.h"
#include "lib/util.h"
#include "nfs4/callback/callback.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/nfs4_proto.h"

/* The credential is of the flavour that the client registered with, and names root, as nfsd has it. That of RPCSEC_GSS is for the call's security to
 * put. */
static void cb_v40_put_header(const struct nfs4_cb *cb, uint32_t program, struct xdr_out *x)
{
	const bool compound = cb->op->opnum != 0;
	const struct rpc_callee to = { program, NFS4_CB_VERSION,
				       compound ? NFSPROC4_CB_COMPOUND : NFSPROC4_CB_NULL };
	const bool sys = cb->client->principal.flavor == RPC_AUTH_SYS && !cb->rpc.auth;
	const uint8_t root[5 * 4] = { 0 }; /* authsys_parms: stamp, no name, uid, gid, no groups */

	rpc_put_call(x, &to, sys ? RPC_AUTH_SYS : RPC_AUTH_NONE, root, sys ? sizeof(root) : 0);
}

static uint32_t cb_v40_encode(const struct nfs4_cb *cb, const struct nfs4_cb_target *to,
			      uint8_t msg[RPC_CALLBACK_SIZE])
{
	struct xdr_out x;

	xdr_out_init(&x, msg, RPC_CALLBACK_SIZE);
	cb_v40_put_header(cb, to->program, &x);
	if (cb->op->opnum) {
		xdr_put_opaque(&x, NULL, 0); /* tag */
		xdr_put_u32(&x, 0);	     /* minor version */
		xdr_put_u32(&x, to->ident);
		xdr_put_u32(&x, 1);
		xdr_put_u32(&x, cb->op->opnum);
		cb->op->encode(cb, &x);
	}
	return x.overflow ? 0 : (uint32_t)x.used;
}

/* Ends cb, which has told the path how it went. */
static void cb_v40_finish(struct nfs4_cb *cb, int rc, uint32_t status, struct xdr_in *results)
{
	struct nfs4_client *cl = cb->client;

	rn_debug(cl->srv->cfg.log, "nfs4: %s to client %llx: %s", cb->op->name,
		 (unsigned long long)cl->clientid, rc == 0 ? "answered" : rn_error_text(rc));
	rpc_backchannel_put(cb->conn);
	cb->conn = NULL;
	rpc_cb_auth_put(cb->rpc.auth);
	rpc_cb_auth_put(cb->trial);
	cb->rpc.auth = cb->trial = NULL;
	cb->client = NULL;
	cb->op->done(cb, rc, status, results);
	nfs4_client_put(cl);
}

/* Sends cb, or sends it again. 0: it ends later. Otherwise the caller ends it. */
static int cb_v40_transmit(struct nfs4_cb *cb, bool again)
{
	struct nfs4_client *cl = cb->client;
	uint8_t msg[RPC_CALLBACK_SIZE];
	struct nfs4_cb_target to;
	uint32_t len;
	int rc;

	do {
		rc = nfs4_cb_conn_get(cl, cb->trial, &to);
		/* The probe that makes a context goes on. */
		if (rc != 0 && rc != -ENOKEY)
			nfs4_cb_conn_is(cl, NULL, NFS4_CB_DOWN);
		if (rc != 0)
			return rc;
		rpc_backchannel_put(cb->conn);
		cb->conn = to.conn;
		rpc_cb_auth_put(cb->rpc.auth);
		cb->rpc.auth = to.auth;
		cb->last = again || to.fresh;
		rpc_backchannel_ref(to.conn); /* cb may have ended when the call returns */
		len = cb_v40_encode(cb, &to, msg);
		rc = len > 0 ? rpc_backchannel_call(to.conn, &cb->rpc, msg, len) : -EMSGSIZE;
		if (rc != 0)
			nfs4_cb_conn_is(cl, to.conn,
					(rc == -ENOTCONN && to.fresh) || rc == -EACCES
						? NFS4_CB_DOWN
						: NFS4_CB_UNTRIED);
		rpc_backchannel_put(to.conn);
	} while (rc == -ENOTCONN && !to.fresh);
	return rc == -RN_EFULL ? -RN_ELATER : rc;
}

/* The client has answered. */
static void cb_v40_take_answer(struct nfs4_cb *cb, struct xdr_in *results)
{
	struct nfs4_cb_answer a = { .rc = 0, .status = NFS4_OK };

	if (cb->op->opnum)
		nfs4_cb_read_answer_v40(cb, results, &a);
	if (cb->trial)
		nfs4_cb_conn_auth(cb->client, cb->conn, cb->trial);
	nfs4_cb_conn_is(cb->client, cb->conn, a.rc == 0 ? NFS4_CB_UP : NFS4_CB_DOWN);
	cb_v40_finish(cb, a.rc, a.status, a.rc == 0 && a.status == NFS4_OK ? results : NULL);
}

static void cb_v40_on_done(struct rpc_callback *rpc, int rc, struct xdr_in *results)
{
	struct nfs4_cb *cb = rn_container_of(rpc, struct nfs4_cb, rpc);

	if (rc == 0) {
		cb_v40_take_answer(cb, results);
		return;
	}
	if (rc == -ENOTCONN && !cb->last) {
		rc = cb_v40_transmit(cb, true);
		if (rc == 0)
			return;
	} else {
		nfs4_cb_conn_is(cb->client, cb->conn, NFS4_CB_DOWN);
	}
	cb_v40_finish(cb, rc, 0, NULL);
}

void nfs4_cb_start_v40(struct nfs4_cb *cb, const struct nfs4_cb_op *op, struct nfs4_client *cl)
{
	nfs4_cb_try(cb, op, cl, NULL);
}

void nfs4_cb_try(struct nfs4_cb *cb, const struct nfs4_cb_op *op, struct nfs4_client *cl,
		 struct rpc_cb_auth *trial)
{
	int rc;

	cb->op = op;
	cb->session = NULL;
	cb->client = cl;
	cb->conn = NULL;
	cb->rpc.auth = NULL;
	cb->trial = trial;
	cb->rpc.done = cb_v40_on_done;
	cb->rpc.due_ns = nfs4_cb_due(cl->srv);
	nfs4_client_ref(cl);
	rc = cb_v40_transmit(cb, false);
	if (rc != 0)
		cb_v40_finish(cb, rc, 0, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* RENEW (RFC 7530 section 16.28), DESTROY_CLIENTID and RECLAIM_COMPLETE (RFC 8881 sections 18.50
 * and 18.51). */
#include "nfs4/callback/cb_ops.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/compound.h"
#include "nfs4/recovery/grace.h"
#include "nfs4/session/session_private.h"
#include "nfs4/state/holdings.h"

struct renew_args {
	uint64_t clientid;
};

static void decode_renew(struct nfs4_compound *c, void *args)
{
	struct renew_args *a = args;

	a->clientid = xdr_get_u64(c->in);
}

static bool has_delegations(struct nfs4_client *cl)
{
	bool has;

	pthread_mutex_lock(&cl->lock);
	has = nfs4_holdings_delegated(cl->holdings);
	pthread_mutex_unlock(&cl->lock);
	return has;
}

/* Any user of the client who knows the client id may renew (RFC 7530 section 16.28.4). A client with
 * delegations is told that it cannot be called back; its lease is renewed all the same. */
static int run_renew(struct nfs4_compound *c, void *args)
{
	const struct renew_args *a = args;
	struct nfs4_client *cl;
	int status = nfs4_client_by_id(c->server, a->clientid, &cl);

	if (!cl)
		return status;
	nfs4_origin_note(cl, c);
	if (status == NFS4_OK && has_delegations(cl) && nfs4_cb_conn_is_down(cl))
		status = NFS4ERR_CB_PATH_DOWN;
	if (nfs4_cb_conn_begin_probe(cl))
		nfs4_cb_probe_client(cl, c->req->server);
	nfs4_client_put(cl);
	return status;
}

struct destroy_clientid_args {
	uint64_t clientid;
};

static void decode_destroy_clientid(struct nfs4_compound *c, void *args)
{
	struct destroy_clientid_args *a = args;

	a->clientid = xdr_get_u64(c->in);
}

static bool nfs4_client_has_sessions(struct nfs4_client *cl)
{
	bool has;

	pthread_mutex_lock(&cl->lock);
	has = cl->nsessions > 0 || cl->creating;
	pthread_mutex_unlock(&cl->lock);
	return has;
}

static int run_destroy_clientid(struct nfs4_compound *c, void *args)
{
	const struct destroy_clientid_args *a = args;
	struct nfs4_clients *all = c->server->clients;
	struct nfs4_client *cl = nfs4_client_get(all, a->clientid);
	int status = NFS4_OK;

	if (!cl || !cl->sessions) {
		nfs4_client_put(cl);
		return NFS4ERR_STALE_CLIENTID;
	}
	pthread_mutex_lock(&all->lock);
	if (nfs4_client_status(cl) == NFS4_CLIENT_GONE)
		status = NFS4ERR_STALE_CLIENTID;
	else if (!nfs4_may_manage(c, cl))
		status = NFS4ERR_WRONG_CRED;
	else if (cl == c->client || nfs4_client_has_sessions(cl) || nfs4_client_has_state(cl))
		status = NFS4ERR_CLIENTID_BUSY;
	else
		nfs4_client_detach(all, cl);
	pthread_mutex_unlock(&all->lock);
	if (status == NFS4_OK) {
		if (cl->was_confirmed)
			nfs4_record_forget(c->server, &cl->record);
		nfs4_client_destroy(cl);
	}
	nfs4_client_put(cl);
	return status;
}

struct reclaim_complete_args {
	bool one_fs;
};

static void decode_reclaim_complete(struct nfs4_compound *c, void *args)
{
	struct reclaim_complete_args *a = args;

	a->one_fs = xdr_get_bool(c->in);
}

static int run_reclaim_complete(struct nfs4_compound *c, void *args)
{
	const struct reclaim_complete_args *a = args;

	if (!nfs4_principal_made(c, c->client))
		return NFS4ERR_WRONG_CRED;
	if (!a->one_fs)
		return nfs4_reclaim_done(c->server, &c->client->record);
	/*
	 * RECLAIM_COMPLETE for one file system concerns migration, which this server does not have.
	 */
	return c->current.kind == NFS4_NOWHERE ? NFS4ERR_NOFILEHANDLE : NFS4_OK;
}

const struct nfs4_op nfs4_op_renew = {
	.name = "RENEW",
	.minors = { 0, 2 },
	.gone_from = 1,
	.flags = NFS4_OP_FOR_RECENT,
	.errors = NFS4_ERRORS_OWN,
	.shape = NFS4_SHAPE(8, 0, 0),
	.args_size = sizeof(struct renew_args),
	.decode = decode_renew,
	.run = run_renew,
};

const struct nfs4_op nfs4_op_destroy_clientid = {
	.name = "DESTROY_CLIENTID",
	.minors = { 1, 2 },
	.flags = NFS4_OP_ALONE | NFS4_OP_CHANGES | NFS4_OP_FOR_RECENT | NFS4_OP_MACHINE_ONLY,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct destroy_clientid_args),
	.decode = decode_destroy_clientid,
	.run = run_destroy_clientid,
};

const struct nfs4_op nfs4_op_reclaim_complete = {
	.name = "RECLAIM_COMPLETE",
	.minors = { 1, 2 },
	.flags = NFS4_OP_CHANGES | NFS4_OP_FOR_RECENT,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct reclaim_complete_args),
	.decode = decode_reclaim_complete,
	.run = run_reclaim_complete,
};

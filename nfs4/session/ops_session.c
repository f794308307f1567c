/* SPDX-License-Identifier: BSD-2-Clause */
/* The smaller operations on sessions (RFC 8881 sections 18.33, 18.34, 18.37 and 18.47). */
#include <string.h>

#include "nfs4/client/cb_path.h"
#include "nfs4/client/session.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_private.h"

enum channel_dir {
	CDFC4_FORE = 1,
	CDFC4_BACK = 2,
	CDFC4_FORE_OR_BOTH = 3,
	CDFC4_BACK_OR_BOTH = 7,
	CDFS4_FORE = 1,
	CDFS4_BACK = 2,
	CDFS4_BOTH = 3,
};

struct backchannel_ctl_args {
	uint32_t cb_program;
	struct nfs4_cb_security security;
};

static void decode_backchannel_ctl(struct nfs4_compound *c, void *args)
{
	struct backchannel_ctl_args *a = args;

	a->cb_program = xdr_get_u32(c->in);
	nfs4_get_cb_security(c->in, &a->security);
}

static int run_backchannel_ctl(struct nfs4_compound *c, void *args)
{
	struct backchannel_ctl_args *a = args;
	int status;

	/* NFS4ERR_WRONG_CRED is not allowed here: for this caller the handles do not exist (RFC 8881 section 15.2). */
	if (!nfs4_may_manage_by(c, c->client, OP_BACKCHANNEL_CTL))
		return NFS4ERR_NOENT;
	status = nfs4_choose_cb_security(c, &a->security);

	if (status != NFS4_OK)
		return status;
	nfs4_cb_change(c->session, a->cb_program, &a->security);
	nfs4_cb_security_clear(&a->security);
	return NFS4_OK;
}

struct bind_conn_to_session_args {
	uint8_t session[NFS4_SESSIONID_SIZE];
	uint32_t dir;
	bool rdma;
};

static void decode_bind_conn_to_session(struct nfs4_compound *c, void *args)
{
	struct bind_conn_to_session_args *a = args;

	xdr_get_fixed(c->in, a->session, sizeof(a->session));
	a->dir = xdr_get_u32(c->in);
	a->rdma = xdr_get_bool(c->in);
	if (a->dir != CDFC4_FORE && a->dir != CDFC4_BACK && a->dir != CDFC4_FORE_OR_BOTH &&
	    a->dir != CDFC4_BACK_OR_BOTH)
		c->in->err = true;
}

/*
 * Binds the connection to the channels that the client asks for. A connection that is bound keeps
 * its channels, but FORE_OR_BOTH adds the back channel to the fore channel: Linux's client asks so
 * when SEQUENCE has said that the callback path is down. Other changes are NFS4ERR_INVAL, and so is
 * a back channel that cannot be had (RFC 8881 section 18.34.3).
 */
static int bind_channels(struct nfs4_session *s, struct rpc_conn *conn, uint32_t dir,
			 uint32_t *given)
{
	const bool fore = nfs4_session_is_bound(s, conn->id);
	const bool back = nfs4_cb_is_bound(s, conn);

	switch (dir) {
	case CDFC4_FORE:
		*given = CDFS4_FORE;
		if (back)
			return NFS4ERR_INVAL;
		break;
	case CDFC4_BACK:
		*given = CDFS4_BACK;
		return !fore && nfs4_cb_bind(s, conn) ? NFS4_OK : NFS4ERR_INVAL;
	case CDFC4_FORE_OR_BOTH:
		if (back && !fore)
			return NFS4ERR_INVAL;
		*given = nfs4_cb_bind(s, conn) ? CDFS4_BOTH : CDFS4_FORE;
		break;
	default:
		*given = CDFS4_BOTH;
		if ((fore && !back) || !nfs4_cb_bind(s, conn))
			return NFS4ERR_INVAL;
	}
	nfs4_session_bind(s, conn);
	return NFS4_OK;
}

static int run_bind_conn_to_session(struct nfs4_compound *c, void *args)
{
	const struct bind_conn_to_session_args *a = args;
	struct nfs4_session *s = nfs4_session_get(c->server->clients, a->session);
	uint32_t given;
	int status;

	if (!s)
		return NFS4ERR_BADSESSION;
	/* NFS4ERR_WRONG_CRED is not allowed here (RFC 8881 section 15.2). */
	if (!nfs4_may_manage(c, s->client)) {
		nfs4_session_put(s);
		return NFS4ERR_BADSESSION;
	}
	nfs4_origin_note(s->client, c);
	status = bind_channels(s, c->req->conn, a->dir, &given);
	nfs4_session_put(s);
	if (status != NFS4_OK)
		return status;
	xdr_put_fixed(c->out, a->session, sizeof(a->session));
	xdr_put_u32(c->out, given);
	xdr_put_bool(c->out, false);
	return NFS4_OK;
}

struct destroy_session_args {
	uint8_t session[NFS4_SESSIONID_SIZE];
};

static void decode_destroy_session(struct nfs4_compound *c, void *args)
{
	struct destroy_session_args *a = args;

	xdr_get_fixed(c->in, a->session, sizeof(a->session));
}

static int run_destroy_session(struct nfs4_compound *c, void *args)
{
	const struct destroy_session_args *a = args;
	struct nfs4_session *s = nfs4_session_get(c->server->clients, a->session);
	bool own, left = false;
	int status = NFS4_OK;

	if (!s)
		return NFS4ERR_BADSESSION;
	own = s == c->session;
	pthread_mutex_lock(&s->client->lock);
	if (own && c->index + 1 < c->nops)
		status = NFS4ERR_NOT_ONLY_OP;
	else if (!nfs4_session_is_bound(s, c->req->conn->id))
		status = NFS4ERR_CONN_NOT_BOUND_TO_SESSION;
	else if (!nfs4_may_manage(c, s->client))
		status = NFS4ERR_WRONG_CRED;
	else if (nfs4_session_busy(s, own ? c->slot : NULL))
		status = NFS4ERR_DELAY;
	else if (!nfs4_session_leave(s))
		status = NFS4ERR_BADSESSION;
	else
		left = true;
	pthread_mutex_unlock(&s->client->lock);
	if (left)
		nfs4_session_put(s); /* the list's reference */
	nfs4_session_put(s);
	return status;
}

struct set_ssv_args {
	uint32_t ssv_len, digest_len;
};

static void decode_set_ssv(struct nfs4_compound *c, void *args)
{
	struct set_ssv_args *a = args;

	xdr_get_opaque(c->in, NFS4_OPAQUE_LIMIT, &a->ssv_len);
	xdr_get_opaque(c->in, NFS4_OPAQUE_LIMIT, &a->digest_len);
}

/* No client can have SP4_SSV. */
static int run_set_ssv(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_INVAL;
}

const struct nfs4_op nfs4_op_backchannel_ctl = {
	.name = "BACKCHANNEL_CTL",
	.minors = { 1, 2 },
	.flags = NFS4_OP_CHANGES | NFS4_OP_MACHINE_IF_ASKED,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct backchannel_ctl_args),
	.decode = decode_backchannel_ctl,
	.run = run_backchannel_ctl,
};

const struct nfs4_op nfs4_op_bind_conn_to_session = {
	.name = "BIND_CONN_TO_SESSION",
	.minors = { 1, 2 },
	.flags = NFS4_OP_NOT_BEHIND | NFS4_OP_ALONE | NFS4_OP_CHANGES | NFS4_OP_FOR_RECENT |
		 NFS4_OP_MACHINE_ONLY,
	.reply_max = NFS4_SESSIONID_SIZE + 8,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct bind_conn_to_session_args),
	.decode = decode_bind_conn_to_session,
	.run = run_bind_conn_to_session,
};

const struct nfs4_op nfs4_op_destroy_session = {
	.name = "DESTROY_SESSION",
	.minors = { 1, 2 },
	.flags = NFS4_OP_ALONE | NFS4_OP_CHANGES | NFS4_OP_FOR_RECENT | NFS4_OP_MACHINE_ONLY,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct destroy_session_args),
	.decode = decode_destroy_session,
	.run = run_destroy_session,
};

const struct nfs4_op nfs4_op_set_ssv = {
	.name = "SET_SSV",
	.minors = { 1, 2 },
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct set_ssv_args),
	.decode = decode_set_ssv,
	.run = run_set_ssv,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* EXCHANGE_ID (RFC 8881 section 18.35): the arguments, the nine cases of section 18.35.4, the
 * result. */
#include <string.h>

#include "config.h"
#include "nfs4/client/client_host.h"
#include "nfs4/compound.h"
#include "nfs4/recovery/grace.h"
#include "nfs4/session/session_private.h"

enum state_protect_how4 { SP4_NONE = 0, SP4_MACH_CRED = 1, SP4_SSV = 2 };

#define FLAGS_ALLOWED                                                                              \
	(EXCHGID4_FLAG_SUPP_MOVED_REFER | EXCHGID4_FLAG_SUPP_MOVED_MIGR |                          \
	 EXCHGID4_FLAG_BIND_PRINC_STATEID | EXCHGID4_FLAG_MASK_PNFS |                              \
	 EXCHGID4_FLAG_UPD_CONFIRMED_REC_A)

/* Skips a counted array of opaques. Returns its length. */
static uint32_t skip_opaques(struct xdr_in *x)
{
	const uint32_t n = xdr_get_u32(x);
	uint32_t len;

	for (uint32_t i = 0; i < n && !x->err; i++)
		xdr_get_opaque(x, NFS4_OPAQUE_LIMIT, &len);
	return n;
}

struct exchange_id_args {
	struct nfs4_client_init who;
	uint32_t flags;
	uint32_t protect; /* state_protect_how4 */
	struct nfs4_protect ops;
	bool ssv_invalid; /* SP4_SSV with parameters that section 18.35.3 does not allow */
};

static void get_protect(struct xdr_in *x, struct exchange_id_args *a)
{
	a->protect = xdr_get_u32(x);
	if (a->protect > SP4_SSV)
		x->err = true;
	if (a->protect == SP4_NONE)
		return;
	nfs4_get_protect(x, &a->ops);
	if (a->protect == SP4_MACH_CRED)
		return;
	if (skip_opaques(x) == 0) /* ssp_hash_algs */
		a->ssv_invalid = true;
	if (skip_opaques(x) == 0) /* ssp_encr_algs */
		a->ssv_invalid = true;
	if (xdr_get_u32(x) == 0) /* ssp_window */
		a->ssv_invalid = true;
	xdr_get_u32(x); /* ssp_num_gss_handles */
}

/* nfs_impl_id4<1> */
static void skip_impl_id(struct xdr_in *x)
{
	const uint32_t n = xdr_get_u32(x);
	uint32_t len;

	if (n > 1)
		x->err = true;
	if (n != 1)
		return;
	xdr_get_opaque(x, NFS4_OPAQUE_LIMIT, &len); /* domain */
	xdr_get_opaque(x, NFS4_OPAQUE_LIMIT, &len); /* name */
	xdr_skip(x, 8 + 4);			    /* date */
}

static void decode_exchange_id(struct nfs4_compound *c, void *args)
{
	struct exchange_id_args *a = args;

	a->who.sessions = true;
	xdr_get_fixed(c->in, a->who.verifier, sizeof(a->who.verifier));
	a->who.ownerid = xdr_get_opaque(c->in, NFS4_OPAQUE_LIMIT, &a->who.ownerid_len);
	a->flags = xdr_get_u32(c->in);
	get_protect(c->in, a);
	skip_impl_id(c->in);
}

static int exchange_id_check(const struct nfs4_compound *c, const struct exchange_id_args *a)
{
	uint32_t allowed = FLAGS_ALLOWED;

	if (c->minor >= 2)
		allowed |= EXCHGID4_FLAG_SUPP_FENCE_OPS;
	if (a->flags & ~allowed)
		return NFS4ERR_INVAL;
	if (a->protect == SP4_MACH_CRED && !nfs4_is_machine(c))
		return NFS4ERR_INVAL;
	if (a->protect == SP4_SSV && a->ssv_invalid)
		return NFS4ERR_INVAL;
	return a->protect == SP4_SSV ? NFS4ERR_ENCR_ALG_UNSUPP : NFS4_OK;
}

/* Cases 6 to 9; all->lock is held. */
static int exchange_id_update(struct nfs4_compound *c, const struct nfs4_client_init *who,
			      struct nfs4_client **out)
{
	struct nfs4_client *cl = nfs4_client_find(c->server->clients, who);

	if (!cl)
		return NFS4ERR_NOENT;
	if (!nfs4_verifier_is(cl, c, who->verifier))
		return NFS4ERR_NOT_SAME;
	if (!nfs4_may_manage(c, cl))
		return NFS4ERR_PERM;
	*out = cl;
	return NFS4_OK;
}

static void exchange_id_detach(struct nfs4_clients *all, struct nfs4_client *cl,
			       struct nfs4_client_queue *old)
{
	if (!cl)
		return;
	nfs4_client_detach(all, cl);
	TAILQ_INSERT_TAIL(old, cl, aging);
}

/*
 * Cases 1 to 5. If *fresh is needed, it is added to the table and set to NULL. all->lock is held.
 */
static int exchange_id_set_up(struct nfs4_compound *c, const struct nfs4_client_init *who,
			      struct nfs4_client **fresh, struct nfs4_client_queue *old,
			      struct nfs4_client **out)
{
	struct nfs4_clients *all = c->server->clients;
	struct nfs4_client *cl = nfs4_client_find(all, who), *pushed;
	const bool same = cl && nfs4_may_manage(c, cl) && nfs4_verifier_is(cl, c, who->verifier);
	int status = cl ? NFS4_OK : nfs4_drain_check_client(c->server);

	if (cl && !same)
		status = nfs4_client_contest(cl, c);

	if (status == NFS4_OK && !same)
		status = nfs4_client_contest_record(*fresh, c);
	if (status != NFS4_OK)
		return status;
	if (cl && !nfs4_may_manage(c, cl))
		exchange_id_detach(all, cl, old);
	exchange_id_detach(all, nfs4_client_waiting(all, who, (*fresh)->host), old);
	if (same) {
		*out = cl;
		return NFS4_OK;
	}
	pushed = nfs4_client_enter(all, *fresh);
	if (pushed)
		TAILQ_INSERT_TAIL(old, pushed, aging);
	*out = *fresh;
	*fresh = NULL;
	return NFS4_OK;
}

static void exchange_id_put_result(struct nfs4_compound *c, struct nfs4_client *cl)
{
	const char *id = c->server->clients->server_id, *scope = c->server->clients->server_scope;
	const struct nfs4_cluster *cluster = c->server->cfg.cluster;
	uint32_t flags = cluster && cluster->layouts ? EXCHGID4_FLAG_USE_PNFS_MDS
						     : EXCHGID4_FLAG_USE_NON_PNFS;
	uint32_t seqid;

	if (nfs4_client_status(cl) != NFS4_CLIENT_UNCONFIRMED)
		flags |= EXCHGID4_FLAG_CONFIRMED_R;
	pthread_mutex_lock(&cl->lock);
	seqid = cl->cs_seqid + 1;
	pthread_mutex_unlock(&cl->lock);
	xdr_put_u64(c->out, cl->clientid);
	xdr_put_u32(c->out, seqid);
	xdr_put_u32(c->out, flags);
	nfs4_put_protect(c->out, &cl->protect);
	xdr_put_u64(c->out, 0); /* so_minor_id: all addresses lead to all sessions */
	xdr_put_opaque(c->out, id, (uint32_t)strlen(id));
	xdr_put_opaque(c->out, scope, (uint32_t)strlen(scope));
	xdr_put_u32(c->out, 1);
	xdr_put_opaque(c->out, "", 0);
	xdr_put_opaque(c->out, PACKAGE_STRING, sizeof(PACKAGE_STRING) - 1);
	xdr_put_u64(c->out, 0); /* date of the build: left out, builds are reproducible */
	xdr_put_u32(c->out, 0);
}

/* clientid, sequence, flags, SP4_NONE; owner and scope; one implementation id. Exactly
 * that: a client may not have offered room for more. */
#define RESULT_SIZE (8u + 4u + 4u + 4u + 8u + 2u * (4u + 64u) + 4u + 4u + 4u + 64u + 12u)

static int run_exchange_id(struct nfs4_compound *c, void *args)
{
	struct exchange_id_args *a = args;
	struct nfs4_clients *all = c->server->clients;
	struct nfs4_client *fresh, *cl = NULL;
	struct nfs4_client_queue old;
	int status = exchange_id_check(c, a);

	if (status == NFS4_OK && a->protect == SP4_MACH_CRED)
		status = nfs4_reserve_reply(c, RESULT_SIZE + NFS4_PROTECT_SIZE);
	if (status != NFS4_OK)
		return status;
	fresh = nfs4_client_new(c, &a->who);
	if (!fresh)
		return NFS4ERR_DELAY;
	if (a->protect == SP4_MACH_CRED) {
		nfs4_grant_protect(c, &a->ops);
		fresh->protect = a->ops;
	}
	TAILQ_INIT(&old);
	pthread_mutex_lock(&all->lock);
	if (a->flags & EXCHGID4_FLAG_UPD_CONFIRMED_REC_A)
		status = exchange_id_update(c, &a->who, &cl);
	else
		status = exchange_id_set_up(c, &a->who, &fresh, &old, &cl);
	if (status == NFS4_OK)
		exchange_id_put_result(c, cl);
	pthread_mutex_unlock(&all->lock);
	nfs4_client_put(fresh);
	nfs4_clients_forget(c->server, &old);
	return status;
}

const struct nfs4_op nfs4_op_exchange_id = {
	.name = "EXCHANGE_ID",
	.minors = { 1, 2 },
	.flags = NFS4_OP_ALONE | NFS4_OP_CHANGES | NFS4_OP_MACHINE_ONLY,
	.reply_max = RESULT_SIZE,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct exchange_id_args),
	.decode = decode_exchange_id,
	.run = run_exchange_id,
};

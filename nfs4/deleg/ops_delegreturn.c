/* SPDX-License-Identifier: BSD-2-Clause */
/* DELEGRETURN (RFC 8881 section 18.6) and DELEGPURGE (section 18.5). */
#include "nfs4/compound.h"
#include "nfs4/state/stateid_check.h"
#include "nfs4/state/nfs4_deleg.h"

struct delegpurge_args {
	uint64_t clientid;
};

static void decode_delegpurge(struct nfs4_compound *c, void *args)
{
	struct delegpurge_args *a = args;

	a->clientid = xdr_get_u64(c->in);
}

/* Only for servers that support CLAIM_DELEGATE_PREV. */
static int run_delegpurge(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

struct delegreturn_args {
	struct nfs4_stateid sid;
};

static void decode_delegreturn(struct nfs4_compound *c, void *args)
{
	struct delegreturn_args *a = args;

	nfs4_get_stateid(c->in, &a->sid);
}

static int run_delegreturn(struct nfs4_compound *c, void *args)
{
	const struct delegreturn_args *a = args;
	struct nfs4_state *st;
	int status = nfs4_state_get(c, &c->current, &a->sid, NFS4_STATE_DELEG, &st);

	if (status != NFS4_OK)
		return status;
	if (nfs4_may_end(c, st->client, nfs4_as_deleg(st)->opener))
		nfs4_deleg_end(nfs4_as_deleg(st));
	else
		status = NFS4ERR_BAD_STATEID;
	nfs4_state_unref(st);
	return status;
}

const struct nfs4_op nfs4_op_delegpurge = {
	.name = "DELEGPURGE",
	.minors = { 0, 2 },
	.flags = NFS4_OP_CHANGES | NFS4_OP_FOR_FORMER | NFS4_OP_MACHINE_IF_ASKED,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct delegpurge_args),
	.decode = decode_delegpurge,
	.run = run_delegpurge,
};

const struct nfs4_op nfs4_op_delegreturn = {
	.name = "DELEGRETURN",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES | NFS4_OP_FOR_FORMER | NFS4_OP_MACHINE_TOO,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct delegreturn_args),
	.decode = decode_delegreturn,
	.run = run_delegreturn,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* WANT_DELEGATION (RFC 8881 section 18.49), DELEGRETURN (section 18.6) and DELEGPURGE (section 18.5). The server gives
 * a delegation now, or not at all: it registers no wants. */
#include <sys/stat.h>

#include "nfs4/client/nfs4_client.h"
#include "nfs4/compound.h"
#include "nfs4/deleg/grant.h"
#include "nfs4/recovery/client_records.h"
#include "nfs4/recovery/grace.h"
#include "nfs4/state/nfs4_deleg.h"
#include "nfs4/state/stateid_check.h"

enum { CLAIM_PREVIOUS = 1, CLAIM_FH = 4, CLAIM_DELEG_PREV_FH = 6 };

struct want_args {
	uint32_t want;
	uint32_t claim;
	uint32_t type; /* enum open_delegation_type4, for CLAIM_PREVIOUS */
};

static void decode_want(struct nfs4_compound *c, void *args)
{
	struct want_args *a = args;

	a->want = xdr_get_u32(c->in);
	a->claim = xdr_get_u32(c->in);
	switch (a->claim) {
	case CLAIM_PREVIOUS:
		a->type = xdr_get_u32(c->in);
		break;
	case CLAIM_FH:
	case CLAIM_DELEG_PREV_FH:
		break;
	default:
		c->in->err = true;
	}
}

static int want_check_args(struct nfs4_compound *c, const struct want_args *a)
{
	const uint32_t want = a->want & OPEN4_SHARE_ACCESS_WANT_DELEG_MASK;
	const uint32_t known =
		OPEN4_SHARE_ACCESS_BOTH | OPEN4_SHARE_ACCESS_WANT_DELEG_MASK | NFS4_WANT_LATER;

	if ((want & ~OPEN4_SHARE_ACCESS_WANT_NO_DELEG) == 0 ||
	    want > OPEN4_SHARE_ACCESS_WANT_CANCEL || (a->want & ~known))
		return NFS4ERR_INVAL;
	switch (a->claim) {
	case CLAIM_PREVIOUS:
		if (a->type != OPEN_DELEGATE_READ && a->type != OPEN_DELEGATE_WRITE)
			return NFS4ERR_INVAL;
		return nfs4_may_reclaim(c->server, &c->client->record, false);
	case CLAIM_DELEG_PREV_FH:
		return NFS4ERR_NOTSUPP;
	default:
		return nfs4_may_open(c->server, &c->client->record, false);
	}
}

static int no_offer(struct nfs4_compound *c, enum why_no_delegation4 why)
{
	const struct nfs4_deleg_offer offer = { .type = OPEN_DELEGATE_NONE_EXT, .why = why };

	nfs4_put_delegation(c, &offer);
	return NFS4_OK;
}

/* The table of the operation's errors has none for a caller who may not read the file. */
static int offer(struct nfs4_compound *c, const struct want_args *a)
{
	struct nfs4_object *p = &c->current;
	const struct nfs4_deleg_request r = {
		.object = p,
		.want = a->want & (OPEN4_SHARE_ACCESS_WANT_DELEG_MASK | NFS4_WANT_LATER),
		.access = OPEN4_SHARE_ACCESS_READ,
		.reclaim = a->claim == CLAIM_PREVIOUS,
		.reclaimed = a->type,
	};
	struct nfs4_deleg_offer given;

	if (vfs_open_check(&p->ctx, p->node, VFS_MAY_READ) != 0)
		return no_offer(c, WND4_RESOURCE);
	nfs4_deleg_offer(c, &r, &given);
	nfs4_put_delegation(c, &given);
	return NFS4_OK;
}

/* A client that is being removed gets no new record: see run_open() in nfs4/open/ops_open.c. */
static int record_and_offer(struct nfs4_compound *c, struct want_args *a)
{
	struct nfs4_record *rec = &c->client->record;
	const uint32_t want = a->want & OPEN4_SHARE_ACCESS_WANT_DELEG_MASK;
	const unsigned writes =
		want == OPEN4_SHARE_ACCESS_WANT_READ_DELEG ? 0 : NFS4_RECORD_DELEG_WRITE;
	int status = NFS4ERR_DELAY;

	nfs4_record_begin(rec);
	if (nfs4_client_status(c->client) != NFS4_CLIENT_EXPIRED)
		status = nfs4_record_for(c, rec, NFS4_RECORD_STATE | NFS4_RECORD_DELEG | writes);
	if (status == NFS4_OK)
		status = offer(c, a);
	nfs4_record_end(rec);
	return status;
}

static int run_want(struct nfs4_compound *c, void *args)
{
	struct want_args *a = args;
	struct nfs4_object *p = &c->current;
	int status = nfs4_need(c, p, 0);

	if (status == NFS4_OK)
		status = want_check_args(c, a);
	if (status != NFS4_OK)
		return status;
	if (p->kind == NFS4_PSEUDO || p->type == S_IFDIR)
		return no_offer(c, WND4_IS_DIR);
	if (p->type != S_IFREG)
		return no_offer(c, WND4_NOT_SUPP_FTYPE);
	return record_and_offer(c, a);
}

const struct nfs4_op nfs4_op_want_delegation = {
	.name = "WANT_DELEGATION",
	.minors = { 1, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES,
	.reply_max = NFS4_DELEGATION_SIZE,
	.errors = NFS4_ERRORS(NFS4_E_INVAL | NFS4_E_IO | NFS4_E_NOTSUPP | NFS4_E_STALE),
	.args_size = sizeof(struct want_args),
	.decode = decode_want,
	.run = run_want,
};

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
	.flags = NFS4_OP_CHANGES | NFS4_OP_FOR_RECENT | NFS4_OP_MACHINE_IF_ASKED,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct delegpurge_args),
	.decode = decode_delegpurge,
	.run = run_delegpurge,
};

const struct nfs4_op nfs4_op_delegreturn = {
	.name = "DELEGRETURN",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES | NFS4_OP_FOR_RECENT | NFS4_OP_MACHINE_TOO,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct delegreturn_args),
	.decode = decode_delegreturn,
	.run = run_delegreturn,
};

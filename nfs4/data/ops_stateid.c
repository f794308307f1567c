/* SPDX-License-Identifier: BSD-2-Clause */
/* FREE_STATEID and TEST_STATEID. */
#include "nfs4/client/nfs4_client.h"
#include "nfs4/data/nfs4_copies.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/stateid_check.h"
#include "nfs4/state/nfs4_deleg.h"
#include "nfs4/state/owner.h"

struct free_stateid_args {
	struct nfs4_stateid sid;
};

static void decode_free_stateid(struct nfs4_compound *c, void *args)
{
	struct free_stateid_args *a = args;

	nfs4_get_stateid(c->in, &a->sid);
}

/* Frees revoked state that the client has acknowledged; its opens and locks have ended already. */
static void free_revoked(struct nfs4_state *st)
{
	struct nfs4_client *cl = st->client;
	struct nfs4_dead_owners dead = { NULL, NULL };

	pthread_mutex_lock(&cl->lock);
	nfs4_state_remove(cl, st, false);
	nfs4_owner_maybe_idle(st->owner, &dead);
	pthread_mutex_unlock(&cl->lock);
	nfs4_state_unref(st);
	nfs4_bury(&dead);
}

static int free_locked(struct nfs4_compound *c, struct nfs4_state *st,
		       const struct nfs4_stateid *sid)
{
	int status = nfs4_state_check(c, st, sid, NFS4_STATE_ANY);

	if (status == NFS4ERR_EXPIRED || status == NFS4ERR_ADMIN_REVOKED) {
		rpc_move(c->req); /* the end of an open may wait for a disk */
		/* Linux (6.1) was seen to free an open only, and not its locks. It then tests all
		 * its stateids after each SEQUENCE, as long as a revoked one is left. */
		if (st->kind == NFS4_STATE_OPEN)
			nfs4_open_end(nfs4_as_open(st), false);
		else
			free_revoked(st);
		return NFS4_OK;
	}
	if (status != NFS4_OK)
		return status;
	if (st->kind == NFS4_STATE_OPEN || vfs_lock_held(&nfs4_as_lock(st)->ranges))
		return NFS4ERR_LOCKS_HELD;
	nfs4_lock_end(nfs4_as_lock(st));
	return NFS4_OK;
}

static int free_open(struct nfs4_compound *c, struct nfs4_state *st, const struct nfs4_stateid *sid)
{
	struct nfs4_open *open = nfs4_open_of(st);
	int status;

	rn_lock_take(&open->busy);
	status = free_locked(c, st, sid);
	rn_lock_give(&open->busy);
	return status;
}

/* A delegation that was not revoked is given back by DELEGRETURN. */
static int free_deleg(struct nfs4_compound *c, struct nfs4_state *st,
		      const struct nfs4_stateid *sid)
{
	int status = nfs4_state_check(c, st, sid, NFS4_STATE_DELEG);

	if (status == NFS4_OK)
		return NFS4ERR_LOCKS_HELD;
	if (status != NFS4ERR_DELEG_REVOKED && status != NFS4ERR_ADMIN_REVOKED &&
	    status != NFS4ERR_EXPIRED)
		return status;
	nfs4_deleg_end(nfs4_as_deleg(st));
	return NFS4_OK;
}

static int run_free_stateid(struct nfs4_compound *c, void *args)
{
	const struct free_stateid_args *a = args;
	struct nfs4_state *st;
	int status = nfs4_state_lookup(c, &a->sid, &st);

	if (status == NFS4ERR_EXPIRED)
		return NFS4_OK; /* freed with all of the client's state */
	if (status != NFS4_OK)
		return status;
	if (st->kind == NFS4_STATE_LAYOUT)
		status = NFS4ERR_LOCKS_HELD; /* it is given back by LAYOUTRETURN */
	else
		status = st->kind == NFS4_STATE_DELEG ? free_deleg(c, st, &a->sid)
						      : free_open(c, st, &a->sid);
	nfs4_state_unref(st);
	return status;
}

struct test_stateid_args {
	uint32_t count;
	struct nfs4_stateid *sids; /* in the arena */
};

static void decode_test_stateid(struct nfs4_compound *c, void *args)
{
	struct test_stateid_args *a = args;

	a->count = xdr_get_u32(c->in);
	if (a->count > c->in->left / NFS4_STATEID_SIZE) {
		c->in->err = true;
		return;
	}
	a->sids = rn_arena_array(&c->req->arena, a->count > 0 ? a->count : 1, sizeof(*a->sids));
	if (!a->sids) {
		c->in->err = true; /* the loop finds out that the arena is full */
		return;
	}
	for (uint32_t i = 0; i < a->count; i++)
		nfs4_get_stateid(c->in, &a->sids[i]);
}

static int test(struct nfs4_compound *c, const struct nfs4_stateid *sid)
{
	struct nfs4_state *st;
	int status;

	if (nfs4_stateid_is_current(sid))
		return NFS4ERR_BAD_STATEID;
	if (nfs4_copies_know(c, sid))
		return NFS4_OK;
	status = nfs4_state_lookup(c, sid, &st);
	if (status != NFS4_OK)
		return status;
	status = nfs4_state_check(c, st, sid, NFS4_STATE_ANY | NFS4_STATE_LAYOUT);
	nfs4_state_unref(st);
	return status;
}

static int run_test_stateid(struct nfs4_compound *c, void *args)
{
	const struct test_stateid_args *a = args;
	int status = nfs4_reserve_reply(c, 4u + 4u * (size_t)a->count);

	if (status != NFS4_OK)
		return status;
	xdr_put_u32(c->out, a->count);
	for (uint32_t i = 0; i < a->count; i++)
		xdr_put_u32(c->out, (uint32_t)test(c, &a->sids[i]));
	return NFS4_OK;
}

const struct nfs4_op nfs4_op_free_stateid = {
	.name = "FREE_STATEID",
	.minors = { 1, 2 },
	.flags = NFS4_OP_CHANGES | NFS4_OP_FOR_RECENT | NFS4_OP_EVENT_THREAD | NFS4_OP_MACHINE_TOO,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct free_stateid_args),
	.decode = decode_free_stateid,
	.run = run_free_stateid,
};

const struct nfs4_op nfs4_op_test_stateid = {
	.name = "TEST_STATEID",
	.minors = { 1, 2 },
	.flags = NFS4_OP_FOR_RECENT | NFS4_OP_MACHINE_TOO,
	.reply_max = 4,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct test_stateid_args),
	.decode = decode_test_stateid,
	.run = run_test_stateid,
};

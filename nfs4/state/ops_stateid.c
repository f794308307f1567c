/* SPDX-License-Identifier: BSD-2-Clause */
/* FREE_STATEID and TEST_STATEID; DELEGRETURN and DELEGPURGE while there are no delegations. */
#include "nfs4/client/client.h"
#include "nfs4/state/check.h"
#include "nfs4/state/ops.h"
#include "nfs4/state/owners.h"

void nfs4_decode_free_stateid(struct nfs4_compound *c, void *args)
{
	struct nfs4_free_stateid_args *a = args;

	nfs4_get_stateid(c->in, &a->sid);
}

/* The client has taken note. What it had is gone already. */
static void free_revoked(struct nfs4_state *st)
{
	struct nfs4_client *cl = st->owner->client;
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
		/* Linux (6.1) was seen to free an open only, and then asks about all that it has
		 * after each SEQUENCE, as the locks that came of it are still to be freed. */
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

int nfs4_free_stateid(struct nfs4_compound *c, void *args)
{
	const struct nfs4_free_stateid_args *a = args;
	struct nfs4_state *st;
	pthread_mutex_t *busy;
	int status = nfs4_state_lookup(c, &a->sid, &st);

	if (status == NFS4ERR_EXPIRED)
		return NFS4_OK; /* it went with all that the client had: noted */
	if (status != NFS4_OK)
		return status;
	busy = &nfs4_open_of(st)->busy;
	pthread_mutex_lock(busy);
	status = free_locked(c, st, &a->sid);
	pthread_mutex_unlock(busy);
	nfs4_state_unref(st);
	return status;
}

void nfs4_decode_test_stateid(struct nfs4_compound *c, void *args)
{
	struct nfs4_test_stateid_args *a = args;

	a->count = xdr_get_u32(c->in);
	if (a->count > c->in->left / NFS4_STATEID_SIZE) {
		c->in->err = true;
		return;
	}
	a->sids = rn_arena_array(&c->req->arena, a->count > 0 ? a->count : 1, sizeof(*a->sids));
	if (!a->sids) {
		c->in->err = true; /* the loop sees that it was the arena */
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
	status = nfs4_state_lookup(c, sid, &st);
	if (status != NFS4_OK)
		return status;
	status = nfs4_state_check(c, st, sid, NFS4_STATE_ANY);
	nfs4_state_unref(st);
	return status;
}

int nfs4_test_stateid(struct nfs4_compound *c, void *args)
{
	const struct nfs4_test_stateid_args *a = args;
	int status = nfs4_reserve_reply(c, 4u + 4u * (size_t)a->count);

	if (status != NFS4_OK)
		return status;
	xdr_put_u32(c->out, a->count);
	for (uint32_t i = 0; i < a->count; i++)
		xdr_put_u32(c->out, (uint32_t)test(c, &a->sids[i]));
	return NFS4_OK;
}

void nfs4_decode_delegpurge(struct nfs4_compound *c, void *args)
{
	struct nfs4_delegpurge_args *a = args;

	a->clientid = xdr_get_u64(c->in);
}

/* Of servers that know CLAIM_DELEGATE_PREV. */
int nfs4_delegpurge(struct nfs4_compound *c, void *args)
{
	(void)c;
	(void)args;
	return NFS4ERR_NOTSUPP;
}

void nfs4_decode_delegreturn(struct nfs4_compound *c, void *args)
{
	struct nfs4_delegreturn_args *a = args;

	nfs4_get_stateid(c->in, &a->sid);
}

int nfs4_delegreturn(struct nfs4_compound *c, void *args)
{
	const struct nfs4_delegreturn_args *a = args;
	struct nfs4_state *st;
	int status = nfs4_state_lookup(c, &a->sid, &st);

	if (status != NFS4_OK)
		return status;
	nfs4_state_unref(st);
	return NFS4ERR_BAD_STATEID; /* of an open or a lock */
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* CLOSE, OPEN_DOWNGRADE and OPEN_CONFIRM. */
#include <string.h>

#include "nfs4/client/nfs4_client.h"
#include "nfs4/state/stateid_check.h"
#include "nfs4/state/owner.h"

#define WANT_MASK 0xff00u /* bits of share_access: wanted delegations */

struct close_args {
	uint32_t seqid;
	struct nfs4_stateid sid;
};

static void decode_close(struct nfs4_compound *c, void *args)
{
	struct close_args *a = args;

	a->seqid = xdr_get_u32(c->in);
	nfs4_get_stateid(c->in, &a->sid);
}

/* Takes busy if the open still exists, so that it stays; fails if it was closed in the meantime. */
static int lock_open(struct nfs4_compound *c, struct nfs4_open *open,
		     const struct nfs4_stateid *sid)
{
	int status;

	rn_lock_take(&open->busy);
	status = nfs4_state_check(c, &open->st, sid, NFS4_STATE_OPEN);
	if (status != NFS4_OK)
		rn_lock_give(&open->busy);
	return status;
}

/* The stateid that CLOSE returns; in minor versions 1 and 2 clients must not use it (RFC 8881
 * section 18.2.4). */
static void closed_stateid(struct nfs4_compound *c, struct nfs4_state *st, struct nfs4_stateid *sid)
{
	nfs4_state_changed(c, st, sid);
	if (c->minor == 0)
		return;
	memset(sid->other, 0, sizeof(sid->other));
	sid->seqid = UINT32_MAX;
	nfs4_set_current_stateid(c, sid);
}

static bool has_locks(const struct nfs4_open *open)
{
	struct nfs4_client *cl = open->st.client;
	bool has;

	pthread_mutex_lock(&cl->lock);
	has = !LIST_EMPTY(&open->locks);
	pthread_mutex_unlock(&cl->lock);
	return has;
}

/* Closes an open, under its busy. The end of locks, and of the last descriptor of an unlinked file, may wait for a
 * disk. */
static int close_open(struct nfs4_compound *c, struct nfs4_open *open, struct nfs4_stateid *sid)
{
	struct vfs_node *n = c->current.node;
	const bool written = vfs_share_ends_writing(&open->share, n);

	if (written || has_locks(open) || vfs_share_pins(&open->share))
		rpc_move(c->req);
	closed_stateid(c, &open->st, sid);
	nfs4_open_end(open, c->minor == 0);
	if (written)
		vfs_share_end_writing(n);
	return NFS4_OK;
}

static int run_close(struct nfs4_compound *c, void *args)
{
	const struct close_args *a = args;
	struct nfs4_stateid sid;
	struct nfs4_state *st;
	struct nfs4_open *open;
	bool replayed;
	int status;

	status = nfs4_state_get_seq(c, &a->sid, a->seqid, NFS4_STATE_OPEN, &st, &replayed);
	if (status != NFS4_OK || replayed)
		return status;
	open = nfs4_as_open(st);
	status = lock_open(c, open, &a->sid);
	if (status == NFS4_OK) {
		status = close_open(c, open, &sid);
		rn_lock_give(&open->busy);
	}
	if (status == NFS4_OK)
		nfs4_put_stateid(c->out, &sid);
	nfs4_state_unref(st);
	return status;
}

struct open_downgrade_args {
	struct nfs4_stateid sid;
	uint32_t seqid;
	uint32_t access, deny;
};

static void decode_open_downgrade(struct nfs4_compound *c, void *args)
{
	struct open_downgrade_args *a = args;

	nfs4_get_stateid(c->in, &a->sid);
	a->seqid = xdr_get_u32(c->in);
	a->access = xdr_get_u32(c->in);
	a->deny = xdr_get_u32(c->in);
}

/* True if (access, deny) is the union of some combinations that were opened. Those within it are
 * kept. */
static bool nfs4_open_narrow(struct nfs4_open *open, uint32_t access, uint32_t deny)
{
	uint32_t a = 0, d = 0, left = 0;

	for (unsigned i = 0; i < 16; i++) {
		if (!(open->combinations >> i & 1) || (i / 4 & ~access) || (i % 4 & ~deny))
			continue;
		a |= i / 4;
		d |= i % 4;
		left |= 1u << i;
	}
	if (a != access || d != deny)
		return false;
	open->combinations = (uint16_t)left;
	return true;
}

static int downgrade(struct nfs4_compound *c, struct nfs4_open *open,
		     const struct open_downgrade_args *a, struct nfs4_stateid *sid)
{
	const uint32_t access = c->minor > 0 ? a->access & ~WANT_MASK : a->access;

	if (access == 0 || access > VFS_SHARE_BOTH || a->deny > VFS_SHARE_BOTH)
		return NFS4ERR_INVAL;
	if (!nfs4_open_narrow(open, access, a->deny))
		return NFS4ERR_INVAL;
	/* Cannot fail: fewer bits cause no conflict. */
	vfs_share_change(&open->share, (uint8_t)access, (uint8_t)a->deny, NULL);
	open->access = open->share.access;
	nfs4_state_changed(c, &open->st, sid);
	return NFS4_OK;
}

static int run_open_downgrade(struct nfs4_compound *c, void *args)
{
	const struct open_downgrade_args *a = args;
	struct nfs4_stateid sid;
	struct nfs4_state *st;
	bool replayed;
	int status;

	status = nfs4_state_get_seq(c, &a->sid, a->seqid, NFS4_STATE_OPEN, &st, &replayed);
	if (status != NFS4_OK || replayed)
		return status;
	status = lock_open(c, nfs4_as_open(st), &a->sid);
	if (status == NFS4_OK) {
		status = downgrade(c, nfs4_as_open(st), a, &sid);
		rn_lock_give(&nfs4_as_open(st)->busy);
	}
	if (status == NFS4_OK)
		nfs4_put_stateid(c->out, &sid);
	nfs4_state_unref(st);
	return status;
}

struct open_confirm_args {
	struct nfs4_stateid sid;
	uint32_t seqid;
};

static void decode_open_confirm(struct nfs4_compound *c, void *args)
{
	struct open_confirm_args *a = args;

	nfs4_seq_sum(c);
	nfs4_get_stateid(c->in, &a->sid);
	a->seqid = xdr_get_u32(c->in);
}

/* Confirms the owner. False: there was nothing to confirm. */
static bool nfs4_open_confirm_owner(struct nfs4_state *st)
{
	struct nfs4_owner *o = st->owner;
	struct nfs4_client *cl = o->client;
	bool was;

	pthread_mutex_lock(&cl->lock);
	was = o->unconfirmed;
	if (was) {
		TAILQ_REMOVE(&cl->holdings->unconfirmed, o, link);
		o->unconfirmed = false;
	}
	pthread_mutex_unlock(&cl->lock);
	return was;
}

/* Puts the owner's reference of its unconfirmed open. */
static void unkeep(struct nfs4_owner *o)
{
	struct nfs4_client *cl = o->client;
	struct nfs4_open *kept;

	pthread_mutex_lock(&cl->lock);
	kept = o->kept;
	o->kept = NULL;
	pthread_mutex_unlock(&cl->lock);
	if (kept)
		nfs4_state_unref(&kept->st);
}

static int run_open_confirm(struct nfs4_compound *c, void *args)
{
	const struct open_confirm_args *a = args;
	struct nfs4_stateid sid;
	struct nfs4_state *st;
	bool replayed;
	int status;

	status = nfs4_state_get_seq(c, &a->sid, a->seqid, NFS4_STATE_OPEN, &st, &replayed);
	if (status != NFS4_OK || replayed)
		return status;
	if (nfs4_open_confirm_owner(st)) {
		unkeep(st->owner);
		nfs4_state_changed(c, st, &sid);
		nfs4_put_stateid(c->out, &sid);
	} else {
		status = NFS4ERR_BAD_STATEID;
	}
	nfs4_state_unref(st);
	return status;
}

const struct nfs4_op nfs4_op_close = {
	.name = "CLOSE",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES | NFS4_OP_FOR_RECENT | NFS4_OP_EVENT_THREAD | NFS4_OP_MACHINE_TOO,
	.reply_max = NFS4_STATEID_SIZE,
	.errors = NFS4_ERRORS_BY_MINOR(NFS4_E_STALE, NFS4_E_ISDIR | NFS4_E_INVAL, 0),
	.args_size = sizeof(struct close_args),
	.decode = decode_close,
	.run = run_close,
};

const struct nfs4_op nfs4_op_open_confirm = {
	.name = "OPEN_CONFIRM",
	.minors = { 0, 2 },
	.gone_from = 1,
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES,
	.reply_max = NFS4_STATEID_SIZE,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct open_confirm_args),
	.decode = decode_open_confirm,
	.run = run_open_confirm,
};

const struct nfs4_op nfs4_op_open_downgrade = {
	.name = "OPEN_DOWNGRADE",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES | NFS4_OP_FOR_RECENT | NFS4_OP_EVENT_THREAD | NFS4_OP_MACHINE_TOO,
	.reply_max = NFS4_STATEID_SIZE,
	.errors = NFS4_ERRORS(NFS4_E_STALE | NFS4_E_INVAL | NFS4_E_ROFS),
	.args_size = sizeof(struct open_downgrade_args),
	.decode = decode_open_downgrade,
	.run = run_open_downgrade,
};

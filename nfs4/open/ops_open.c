/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * OPEN (RFC 7530 section 16.16, RFC 8881 section 18.16), in steps:
 *
 *	run_open	client, owner and its sequence number, arguments, grace; the client's record
 *	open_recorded	file and share; truncates; makes changes durable
 *	open_settled	the current filehandle, and the result
 *
 * A step that fails ends in nfs4_open_finish(), which releases what the earlier steps acquired.
 */
#include "nfs4/client/nfs4_client.h"
#include "nfs4/names/nfs4_name.h"
#include "nfs4/open/opening.h"
#include "nfs4/recovery/client_records.h"
#include "nfs4/recovery/grace.h"
#include "nfs4/state/lock_waiter.h"
#include "nfs4/state/owner.h"
#include "nfs4/state/stateid_check.h"
#include "nfs4/told.h"
#include "vfs/share.h"

static void get_how(struct nfs4_compound *c, struct nfs4_open_args *a)
{
	struct xdr_in *x = c->in;

	a->how = xdr_get_u32(x);
	switch (a->how) {
	case NFS4_UNCHECKED:
	case NFS4_GUARDED:
		nfs4_get_sattr(c, &a->attrs);
		break;
	case NFS4_EXCLUSIVE:
		xdr_get_fixed(x, a->verifier, sizeof(a->verifier));
		break;
	case NFS4_EXCLUSIVE_1:
		if (c->minor == 0)
			x->err = true;
		xdr_get_fixed(x, a->verifier, sizeof(a->verifier));
		nfs4_get_sattr(c, &a->attrs);
		break;
	default:
		x->err = true;
	}
}

static void get_claim(struct nfs4_compound *c, struct nfs4_open_args *a)
{
	struct xdr_in *x = c->in;

	a->claim = xdr_get_u32(x);
	if (a->claim >= NFS4_CLAIM_FH && c->minor == 0)
		x->err = true;
	switch (a->claim) {
	case NFS4_CLAIM_NULL:
	case NFS4_CLAIM_DELEGATE_PREV:
		nfs4_get_name(x, &a->name);
		break;
	case NFS4_CLAIM_PREVIOUS:
		a->delegate_type = xdr_get_u32(x);
		break;
	case NFS4_CLAIM_DELEGATE_CUR:
		nfs4_get_stateid(x, &a->delegate_sid);
		nfs4_get_name(x, &a->name);
		break;
	case NFS4_CLAIM_DELEG_CUR_FH:
		nfs4_get_stateid(x, &a->delegate_sid);
		break;
	case NFS4_CLAIM_FH:
	case NFS4_CLAIM_DELEG_PREV_FH:
		break;
	default:
		x->err = true;
	}
}

static void nfs4_decode_open(struct nfs4_compound *c, void *args)
{
	struct nfs4_open_args *a = args;
	struct xdr_in *x = c->in;
	uint32_t type;

	nfs4_seq_sum(c);
	a->seqid = xdr_get_u32(x);
	a->access = xdr_get_u32(x);
	a->deny = xdr_get_u32(x);
	nfs4_get_wire_owner(c, &a->owner);
	type = xdr_get_u32(x);
	if (type > 1)
		x->err = true;
	a->create = type == 1;
	if (a->create)
		get_how(c, a);
	get_claim(c, a);
}

/* RFC 8881 section 18.16.1 */
#define WANT_MASK OPEN4_SHARE_ACCESS_WANT_DELEG_MASK

#define RACES 8u /* tries while other callers take the name away */

static int nfs4_open_finish(struct nfs4_opening *w, int status)
{
	if (w->open) {
		if (!w->shared && status == NFS4_OK)
			nfs4_open_shared(w);
		else if (!w->shared)
			nfs4_open_unshare(w);
		nfs4_state_unref(&w->open->st);
	}
	nfs4_object_clear(&w->file);
	nfs4_owner_release(w->owner);
	if (w->client) {
		nfs4_record_end(&w->client->record);
		nfs4_client_put(w->client);
	}
	return status;
}

static int check_share_bits(struct nfs4_compound *c, struct nfs4_opening *w)
{
	const struct nfs4_open_args *a = w->args;
	uint32_t known = OPEN4_SHARE_ACCESS_BOTH;

	if (c->minor > 1)
		known |= OPEN4_SHARE_ACCESS_WANT_OPEN_XOR_DELEGATION;
	if (c->minor > 0) {
		known |= WANT_MASK | NFS4_WANT_LATER;
		if ((a->access & WANT_MASK) > OPEN4_SHARE_ACCESS_WANT_CANCEL)
			return NFS4ERR_INVAL;
	}
	w->access = a->access & OPEN4_SHARE_ACCESS_BOTH;
	w->deny = a->deny & OPEN4_SHARE_DENY_BOTH;
	return (a->access & ~known) || w->access == 0 || a->deny != w->deny ? NFS4ERR_INVAL
									    : NFS4_OK;
}

/* The delegation that is claimed must be the client's. That it is the file's is checked later
 * (nfs4/open/open_file.c). Nothing that others may reclaim is in its way, so it need not wait for
 * them (RFC 8881 section 18.16.3). */
static int check_delegated(struct nfs4_compound *c, struct nfs4_opening *w)
{
	const struct nfs4_stateid *sid = &w->args->delegate_sid;
	struct nfs4_state *st;
	int status = nfs4_state_lookup(c, sid, &st);

	if (status != NFS4_OK)
		return status;
	/* In minor version 0 the lookup finds other clients' delegations, too. */
	status = st->client == w->client ? nfs4_state_check(c, st, sid, NFS4_STATE_DELEG)
					 : NFS4ERR_BAD_STATEID;
	nfs4_state_unref(st);
	return status == NFS4_OK && w->deny != 0
		       ? nfs4_may_open(c->server, &w->client->record, true)
		       : status;
}

static int may_open(struct nfs4_compound *c, struct nfs4_opening *w)
{
	const struct nfs4_record *rec = &w->client->record;
	int status = nfs4_may_open(c->server, &w->client->record, w->deny != 0);

	if (status == NFS4_OK)
		status = nfs4_drain_check(&c->current);
	if (status == NFS4_OK && ((w->access & VFS_SHARE_WRITE) || (w->deny & VFS_SHARE_READ)))
		status = nfs4_may_write(c->server, rec);
	return status;
}

static int check_claim(struct nfs4_compound *c, struct nfs4_opening *w)
{
	const struct nfs4_open_args *a = w->args;
	struct nfs4_record *rec = &w->client->record;

	if (a->create && a->claim != NFS4_CLAIM_NULL && a->claim != NFS4_CLAIM_DELEGATE_CUR &&
	    a->claim != NFS4_CLAIM_DELEGATE_PREV)
		return NFS4ERR_INVAL;
	switch (a->claim) {
	case NFS4_CLAIM_PREVIOUS:
		if (a->delegate_type > OPEN_DELEGATE_WRITE)
			return NFS4ERR_INVAL;
		return nfs4_may_reclaim(c->server, rec, w->deny != 0);
	case NFS4_CLAIM_DELEGATE_CUR:
	case NFS4_CLAIM_DELEG_CUR_FH:
		return check_delegated(c, w);
	case NFS4_CLAIM_DELEGATE_PREV:
	case NFS4_CLAIM_DELEG_PREV_FH:
		return c->minor == 0 ? NFS4ERR_NOTSUPP : NFS4ERR_RECLAIM_BAD;
	default:
		return may_open(c, w);
	}
}

/*
 * A claim of a delegation brings no second one. A client that reclaims gets one if it had one. An
 * open that the client has to confirm (minor version 0) brings none: it may be a late duplicate.
 */
static bool gets_delegation(const struct nfs4_opening *w)
{
	const struct nfs4_open_args *a = w->args;

	if (a->claim == NFS4_CLAIM_PREVIOUS)
		return a->delegate_type != OPEN_DELEGATE_NONE;
	return !nfs4_claims_delegated(a) && !w->confirm;
}

/* The delegation that goes with the open. */
static void offer_delegation(struct nfs4_compound *c, struct nfs4_opening *w)
{
	const struct nfs4_deleg_request r = nfs4_open_wants(c, w);

	w->offer = (struct nfs4_deleg_offer){ .type = OPEN_DELEGATE_NONE };
	if (gets_delegation(w))
		nfs4_deleg_offer(c, &r, &w->offer);
}

/*
 * A client may want the delegation instead of the open (OPEN_XOR_DELEGATION, RFC 9754): it need not
 * close then. An open that the owner has had before stays. So does one that is reclaimed: as in nfsd
 * the delegation alone would do, but the client has asked for its open.
 */
static void nfs4_open_xor_deleg(struct nfs4_compound *c, struct nfs4_opening *w)
{
	const struct nfs4_open_args *a = w->args;
	const bool given =
		w->offer.type == OPEN_DELEGATE_READ || w->offer.type == OPEN_DELEGATE_WRITE;

	if (!given || !(a->access & OPEN4_SHARE_ACCESS_WANT_OPEN_XOR_DELEGATION) ||
	    a->claim == NFS4_CLAIM_PREVIOUS || !nfs4_open_yield(w))
		return;
	w->sid = (struct nfs4_stateid){ .seqid = 0 };
	w->no_open = true;
	nfs4_set_current_stateid(c, &w->offer.sid);
}

static uint32_t result_flags(struct nfs4_compound *c, const struct nfs4_opening *w)
{
	return OPEN4_RESULT_LOCKTYPE_POSIX | (w->confirm ? OPEN4_RESULT_CONFIRM : 0) |
	       (w->no_open ? OPEN4_RESULT_NO_OPEN_STATEID : 0) |
	       (nfs4_locks_are_notified(c) ? OPEN4_RESULT_MAY_NOTIFY_LOCK : 0);
}

static void nfs4_open_put_result(struct nfs4_compound *c, struct nfs4_opening *w)
{
	struct xdr_out *x = c->out;

	nfs4_put_stateid(x, &w->sid);
	nfs4_put_cinfo(x, &w->change);
	xdr_put_u32(x, result_flags(c, w));
	nfs4_put_bitmap(x, &w->attrset);
	nfs4_put_delegation(c, &w->offer);
}

static int open_settled(struct nfs4_compound *c, struct nfs4_opening *w, int rc)
{
	if (rc != 0)
		return nfs4_open_finish(w, nfs4_status(c->minor, rc));
	offer_delegation(c, w);
	if (w->by_name)
		nfs4_object_take(&c->current, &w->file);
	nfs4_set_current_stateid(c, &w->sid);
	nfs4_open_xor_deleg(c, w);
	nfs4_open_put_result(c, w);
	return nfs4_open_finish(w, NFS4_OK);
}

/* Truncates the file. If the share has no write access, the shares of others may deny it. */
static int truncate_file(struct nfs4_compound *c, struct nfs4_opening *w)
{
	const struct vfs_setattr sa = { .set_size = true };
	struct nfs4_object *p = nfs4_opened_object(c, w);
	int rc = 0;

	if (!(w->access & VFS_SHARE_WRITE)) {
		rc = vfs_share_check_io(&p->ctx, p->node, &w->open->share, VFS_SHARE_WRITE, NULL);
		if (rc == -RN_ESHARE)
			return NFS4ERR_SHARE_DENIED;
	}
	if (rc == 0)
		do
			rc = vfs_setattr(&p->ctx, p->node, &sa, NULL);
		while (nfs4_await(c, rc));
	if (rc == 0)
		nfs4_bitmap_add(&w->attrset, FATTR4_SIZE);
	return nfs4_status(c->minor, rc);
}

/* False if the client reclaims the open, or has a delegation in which it is contained. */
static bool is_new(const struct nfs4_opening *w)
{
	return w->args->claim == NFS4_CLAIM_NULL || w->args->claim == NFS4_CLAIM_FH;
}

/* A file that was found by its name may have lost it meanwhile, perhaps to another one: the name is looked up again, as it may
 * always have been there. */
static int nfs4_open_file_and_share(struct nfs4_compound *c, struct nfs4_opening *w)
{
	unsigned tries = RACES;
	int status;

	do {
		nfs4_object_clear(&w->file);
		w->found = false;
		status = nfs4_open_file(c, w);
		if (status == NFS4_OK)
			status = nfs4_open_share(c, w);
	} while (status == NFS4ERR_STALE && w->found && !w->open && --tries > 0);
	return status;
}

static int open_recorded(struct nfs4_compound *c, struct nfs4_opening *w)
{
	/* A drain may have begun while the record was written. */
	int status = is_new(w) ? nfs4_drain_check(&c->current) : NFS4_OK;

	if (status == NFS4_OK)
		status = nfs4_open_file_and_share(c, w);
	if (status == NFS4_OK && w->truncate)
		status = truncate_file(c, w);
	if (status != NFS4_OK)
		return nfs4_open_finish(w, status);
	if (!w->sync_name && !w->truncate)
		return open_settled(c, w, 0);
	struct vfs_sync sync = { .node = { w->sync_name ? c->current.node : NULL,
					   nfs4_opened_object(c, w)->node },
				 .how = w->made && !w->truncate ? VFS_SYNC_MADE : VFS_SYNC_EACH };
	return open_settled(c, w, nfs4_settle(c, &sync, 0));
}

/* True if an event thread's worker may try: the rest would wait for a disk or for others, or is too rare. */
static bool open_fits_event_thread(struct nfs4_compound *c, const struct nfs4_opening *w,
				   unsigned bits)
{
	const struct nfs4_open_args *a = w->args;

	return is_new(w) && !(a->create && a->how != NFS4_UNCHECKED) && w->deny == 0 &&
	       nfs4_record_has(&w->client->record, bits) && !nfs4_in_grace(c->server);
}

/* Before a file is made. */
static int nfs4_open_check_deny(struct nfs4_compound *c, const struct nfs4_opening *w)
{
	const bool reclaim = w->args->claim == NFS4_CLAIM_PREVIOUS;
	struct nfs4_told t;

	if (vfs_share_may_deny(c->server->cfg.vfs, w->deny))
		return NFS4_OK;
	if (nfs4_told_begin(c, RN_NOTICE, &t)) {
		rn_notice(c->server->cfg.log,
			  "%s: an open that denies others access is refused, as other members of "
			  "the cluster do not see it",
			  t.client);
		nfs4_told_end(c, &t);
	}
	return reclaim ? NFS4ERR_RECLAIM_BAD : NFS4ERR_SHARE_DENIED;
}

static int open_checked(struct nfs4_compound *c, struct nfs4_opening *w)
{
	unsigned bits = NFS4_RECORD_STATE;
	struct nfs4_deleg_request wants;
	int status = check_share_bits(c, w);

	if (status == NFS4_OK)
		status = nfs4_open_check_deny(c, w);
	if (status == NFS4_OK)
		status = check_claim(c, w);
	if (status != NFS4_OK)
		return nfs4_open_finish(w, status);
	if (w->deny != 0)
		bits |= NFS4_RECORD_DENY;
	wants = nfs4_open_wants(c, w);
	if (gets_delegation(w))
		bits |= nfs4_deleg_record(c, &wants);
	if (rpc_on_event_thread(c->req) && !open_fits_event_thread(c, w, bits))
		rpc_move(c->req);
	status = nfs4_record_for(c, &w->client->record, bits);
	return status == NFS4_OK ? open_recorded(c, w) : nfs4_open_finish(w, status);
}

static int run_open(struct nfs4_compound *c, void *args)
{
	struct nfs4_open_args *a = args;
	const struct nfs4_owner_name name = { NFS4_OPEN_OWNER, a->owner.name, a->owner.len };
	struct nfs4_opening *w = rn_arena_alloc(&c->req->arena, sizeof(*w));
	bool replayed;
	int status;

	if (!w)
		return nfs4_state_no_memory(c);
	w->args = a;
	status = nfs4_caller(c, a->owner.clientid, &w->client);
	if (status != NFS4_OK) {
		w->client = NULL;
	} else {
		/* A stateid that the OPEN names may make another one c->client. */
		nfs4_client_ref(w->client);
		nfs4_record_begin(&w->client->record);
	}
	/* A client that is being removed gets no new record. Checked after nfs4_record_begin,
	 * because the removal waits for the operations that have begun. */
	if (status == NFS4_OK && nfs4_client_status(w->client) == NFS4_CLIENT_EXPIRED)
		status = NFS4ERR_EXPIRED;
	if (status == NFS4_OK)
		status = nfs4_owner_get(c, w->client, &name, &w->owner);
	if (status == NFS4_OK)
		status = nfs4_seq_begin(c, w->owner, a->seqid, &replayed);
	if (status != NFS4_OK || (c->minor == 0 && replayed))
		return nfs4_open_finish(w, status);
	return open_checked(c, w);
}

/* True if OPEN uses the current filehandle. OPEN by name looks up the name and checks the file's
 * flavour itself. */
static bool uses_fh(const void *args)
{
	const struct nfs4_open_args *a = args;

	return a->claim >= NFS4_CLAIM_FH;
}

const struct nfs4_op nfs4_op_open = {
	.name = "OPEN",
	.minors = { 0, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES | NFS4_OP_SETS_FH | NFS4_OP_EVENT_THREAD,
	.flavor = NFS4_FLAVOR_HERE,
	.reply_max =
		NFS4_STATEID_SIZE + NFS4_CINFO_SIZE + 4 + NFS4_BITMAP_SIZE + NFS4_DELEGATION_SIZE,
	.errors = NFS4_ERRORS_BY_MINOR(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_NAME | NFS4_E_FILE_ONLY |
					       NFS4_E_PERM | NFS4_E_EXIST | NFS4_E_FBIG |
					       NFS4_E_NOSPC | NFS4_E_ROFS,
				       NFS4_E_NOTSUPP, 0),
	.args_size = sizeof(struct nfs4_open_args),
	.decode = nfs4_decode_open,
	.run = run_open,
	.uses_fh = uses_fh,
};

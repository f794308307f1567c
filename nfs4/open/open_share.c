/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The share of an OPEN. OPENs of one owner and file may run at the same time, beside a CLOSE. Each
 * OPEN that gets its share counts as pending and advances the stateid's seqid at once, so that a
 * CLOSE sent before it is answered NFS4ERR_OLD_STATEID. An OPEN that fails afterwards undoes its
 * change unless another has come since.
 */
#include <errno.h>

#include "nfs/caller.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/open/opening.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/stateid_check.h"
#include "nfs4/state/owner.h"

static uint16_t combination(uint8_t access, uint8_t deny)
{
	return (uint16_t)(1u << (access * 4u + deny));
}

/* Returns the open in the table, or adds fresh. Takes over the reference of fresh. */
static struct nfs4_open *find_or_add(struct nfs4_opening *w, struct vfs_file *f,
				     struct nfs4_open *fresh, int *rc)
{
	struct nfs4_client *cl = w->client;
	struct nfs4_open *open = fresh;
	struct nfs4_state *st;

	pthread_mutex_lock(&cl->lock);
	st = nfs4_state_by_file(cl, w->owner, f);
	if (st) {
		open = nfs4_as_open(st);
		nfs4_state_ref(st);
	} else if (fresh) {
		*rc = nfs4_state_add(cl, &fresh->st);
	}
	pthread_mutex_unlock(&cl->lock);
	if (fresh && open != fresh)
		nfs4_state_unref(&fresh->st);
	if (*rc != 0) {
		nfs4_state_unref(&fresh->st);
		open = NULL;
	}
	return open;
}

static int nfs4_open_enter(struct nfs4_compound *c, struct nfs4_opening *w, struct vfs_file *f)
{
	struct nfs4_object *p = nfs4_opened_object(c, w);
	struct nfs4_open *fresh;
	int rc = 0;

	w->open = find_or_add(w, f, NULL, &rc);
	if (w->open)
		return NFS4_OK;
	fresh = nfs4_open_new(w->owner, f, p);
	if (!fresh)
		return nfs4_state_no_memory(c);
	w->open = find_or_add(w, f, fresh, &rc);
	if (w->open)
		return NFS4_OK;
	return rc == -ESTALE ? NFS4ERR_EXPIRED : nfs4_state_no_memory(c);
}

/* A further OPEN is also checked against the owner's own earlier one (RFC 7530 section 16.16.5). */
static int get_share(struct nfs4_object *p, struct nfs4_opening *w, struct vfs_conflict *cf)
{
	struct nfs4_open *open = w->open;
	struct vfs_share *s = &open->share;

	if (!s->file) {
		const struct vfs_share_request r = { .holder = &w->owner->holder,
						     .access = w->access,
						     .deny = w->deny };

		return vfs_share_open(&p->ctx, p->node, s, &r, cf);
	}
	if ((w->access & s->deny) || (w->deny & s->access)) {
		cf->holder = NULL;
		return -RN_ESHARE;
	}
	w->old_access = s->access;
	w->old_deny = s->deny;
	return vfs_share_change(s, s->access | w->access, s->deny | w->deny, cf);
}

/* Minor version 0: an open of an unconfirmed owner is dropped with the owner. Reclaims need no
 * confirmation (RFC 7530 section 9.1.11). */
static void note_unconfirmed(struct nfs4_opening *w)
{
	struct nfs4_owner *o = w->owner;

	if (!o->unconfirmed)
		return;
	if (w->args->claim == NFS4_CLAIM_PREVIOUS) {
		TAILQ_REMOVE(&w->client->holdings->unconfirmed, o, link);
		o->unconfirmed = false;
		return;
	}
	w->confirm = true;
	if (!o->kept) {
		nfs4_state_ref(&w->open->st);
		o->kept = w->open;
	}
}

/* Notes the squashed uid of the caller, for whom OPEN has checked the permission. */
static void note_opener(struct nfs4_open *open, const struct nfs4_object *p)
{
	const uint64_t was = open->opener, uid = p->ctx.cred.uid;

	if (was == NFS4_OPENER_NONE)
		open->opener = uid;
	else if (was != uid)
		open->opener = NFS4_OPENER_SEVERAL;
}

static void got_share(struct nfs4_compound *c, struct nfs4_opening *w)
{
	const uint16_t how = combination(w->access, w->deny);
	struct nfs4_open *open = w->open;

	open->pending++;
	w->new_combination = !(open->combinations & how);
	open->combinations |= how;
	open->access = open->share.access;
	note_opener(open, nfs4_opened_object(c, w));
	pthread_mutex_lock(&w->client->lock);
	note_unconfirmed(w);
	pthread_mutex_unlock(&w->client->lock);
	nfs4_state_changed(c, &open->st, &w->sid);
}

/* True if no other OPEN has got its share since. */
static bool is_last(const struct nfs4_opening *w)
{
	bool last;

	pthread_mutex_lock(&w->client->lock);
	last = w->open->st.seqid == w->sid.seqid;
	pthread_mutex_unlock(&w->client->lock);
	return last;
}

/* Takes back a seqid that the client has not been given. */
static void take_back_seqid(struct nfs4_opening *w)
{
	struct nfs4_state *st = &w->open->st;

	pthread_mutex_lock(&w->client->lock);
	st->seqid = st->seqid > 1 ? st->seqid - 1 : UINT32_MAX;
	pthread_mutex_unlock(&w->client->lock);
}

/* Under busy. Undoes the share, but not what others rely on: a later OPEN may have been answered
 * with modes that include this one's. */
static void take_back(struct nfs4_opening *w)
{
	struct nfs4_open *open = w->open;

	if (!open->stateid_sent && open->pending == 0) {
		nfs4_open_end(open, false);
		return;
	}
	if (w->old_access == 0 || open->st.revoked || !is_last(w))
		return;
	if (w->new_combination)
		open->combinations &= (uint16_t)~combination(w->access, w->deny);
	vfs_share_change(&open->share, w->old_access, w->old_deny, NULL);
	open->access = w->old_access;
	take_back_seqid(w);
}

static void commit(struct nfs4_opening *w)
{
	w->open->pending--;
	w->open->stateid_sent = true;
}

static bool nfs4_open_is_served(struct nfs4_compound *c, struct nfs4_opening *w)
{
	return nfs_still_served(&c->server->cfg.exports, nfs4_opened_object(c, w)->export_id,
				c->req->conn);
}

/* Under busy. An OPEN with nothing left to do is settled at once: busy is not taken again, which a
 * event thread's worker might have to wait for. */
static int settle_share(struct nfs4_compound *c, struct nfs4_opening *w)
{
	if (w->truncate || w->sync_name)
		return 0;
	if (nfs4_open_is_served(c, w)) {
		commit(w);
		w->shared = true;
		return 0;
	}
	w->open->pending--;
	take_back(w);
	return -ESTALE;
}

struct sharing {
	struct nfs4_compound *c;
	struct nfs4_opening *w;
	struct vfs_file *f;
};

/* Under busy. */
static int share(struct nfs4_compound *c, struct nfs4_opening *w, struct vfs_conflict *cf)
{
	struct nfs4_open *open = w->open;
	int rc = get_share(nfs4_opened_object(c, w), w, cf);

	if (rc == 0) {
		got_share(c, w);
		return settle_share(c, w);
	}
	if (!open->share.file && open->pending == 0)
		nfs4_open_end(open, false);
	return rc;
}

static void leave_open(struct nfs4_opening *w)
{
	nfs4_state_unref(&w->open->st);
	w->open = NULL;
}

/* Status of a try that ended with rc. */
static int share_status(const struct sharing *s, int rc, struct vfs_conflict *cf)
{
	const bool reclaim = s->w->args->claim == NFS4_CLAIM_PREVIOUS;
	int status;

	if (rc != -RN_ESHARE)
		return nfs4_status(s->c->minor, rc);
	status = nfs4_conflict(s->c, cf, reclaim ? NFS4ERR_RECLAIM_CONFLICT : NFS4ERR_SHARE_DENIED);
	vfs_conflict_put(cf);
	return status;
}

/* Recalls the delegations and local leases that are in the way. An OPEN that is refused causes no
 * recalls, so the shares are looked at first. A file that was just made has neither. */
static int clear_way(const struct sharing *s, struct vfs_conflict *cf)
{
	struct nfs4_opening *w = s->w;
	struct nfs4_object *p = nfs4_opened_object(s->c, w);
	int rc;

	if (w->granted)
		return 0;
	rc = vfs_share_check(s->f, w->access, w->deny, cf);
	return rc == 0 ? vfs_open_breaks_leases(&p->ctx, p->node, nfs4_open_rights(w)) : rc;
}

/* NFS4_YIELDED: the open was closed or revoked in the meantime, or a conflict is gone. */
static int try_share(const struct sharing *s)
{
	struct nfs4_compound *c = s->c;
	struct nfs4_opening *w = s->w;
	struct vfs_conflict cf = { .holder = NULL };
	int rc = clear_way(s, &cf), status;
	struct nfs4_open *open;

	w->old_access = w->old_deny = 0;
	if (rc != 0)
		return share_status(s, rc, &cf);
	status = nfs4_open_enter(c, w, s->f);
	if (status != NFS4_OK)
		return status;
	open = w->open;
	rn_lock_take(&open->busy);
	const bool ended = open->st.gone || open->st.revoked;
	if (!ended)
		rc = share(c, w, &cf);
	rn_lock_give(&open->busy);
	if (rc == 0 && !ended)
		return NFS4_OK;
	leave_open(w);
	return ended ? NFS4_YIELDED : share_status(s, rc, &cf);
}

int nfs4_open_share(struct nfs4_compound *c, struct nfs4_opening *w)
{
	struct nfs4_object *p = nfs4_opened_object(c, w);
	struct sharing s = { .c = c, .w = w };
	int status;
	int rc = vfs_file_get(&p->ctx, p->node, &s.f);

	if (rc != 0)
		return nfs4_status(c->minor, rc);
	do
		status = try_share(&s);
	while (nfs4_try_again(c, status));
	vfs_file_put(s.f);
	return status == NFS4_OK && !w->shared && !nfs4_open_is_served(c, w) ? NFS4ERR_STALE
									     : status;
}

void nfs4_open_unshare(struct nfs4_opening *w)
{
	struct nfs4_open *open = w->open;

	rn_lock_take(&open->busy);
	open->pending--;
	if (!open->st.gone)
		take_back(w);
	rn_lock_give(&open->busy);
}

void nfs4_open_shared(struct nfs4_opening *w)
{
	rn_lock_take(&w->open->busy);
	commit(w);
	rn_lock_give(&w->open->busy);
}

/* The owner's open may be that of an earlier OPEN, or of a later one that was answered meanwhile. */
bool nfs4_open_yield(struct nfs4_opening *w)
{
	struct nfs4_open *open = w->open;
	bool ends;

	rn_lock_take(&open->busy);
	if (!w->shared)
		commit(w);
	w->shared = true;
	ends = w->old_access == 0 && open->pending == 0 && !open->st.gone && !open->st.revoked &&
	       is_last(w);
	if (ends)
		nfs4_open_end(open, false);
	rn_lock_give(&open->busy);
	return ends;
}

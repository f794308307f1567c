/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens, locks, delegations and layouts, for administrators: walks over the tables of stateids, whose entries never move, and
 * the end of single states. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "lib/error.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/nfs4_view.h"
#include "nfs4/state/nfs4_deleg.h"
#include "nfs4/state/nfs4_layout.h"
#include "nfs4/state/state.h"

#define PIECE 256u	/* entries looked at under one hold of the client's lock */
#define DONE UINT32_MAX /* nfs4_view_cursor.entry behind a client's last one */

/* A state that a piece has found, with a reference, and its members that the client's lock guards. */
struct found {
	struct nfs4_state *st;
	uint32_t entry;
	bool revoked, recalled;
	uint64_t recalled_at;
	unsigned iomodes; /* of a layout */
};

static const enum nfs4_state_kind kinds[] = {
	[NFS4_VIEW_OPENS] = NFS4_STATE_OPEN,
	[NFS4_VIEW_LOCKS] = NFS4_STATE_LOCK,
	[NFS4_VIEW_DELEGATIONS] = NFS4_STATE_DELEG,
	[NFS4_VIEW_LAYOUTS] = NFS4_STATE_LAYOUT,
};

/* Under the client's lock. */
static bool nfs4_state_view_is_shown(struct nfs4_state *st, enum nfs4_view_kind kind)
{
	if (!st || st->kind != kinds[kind] || st->gone || st->seqid == 0)
		return false;
	return kind != NFS4_VIEW_LOCKS || atomic_load(&nfs4_as_lock(st)->held);
}

static struct found nfs4_state_view_take(struct nfs4_state *st, uint32_t entry)
{
	struct found f = { .st = st, .entry = entry, .revoked = st->revoked != 0 };

	nfs4_state_ref(st);
	if (st->kind == NFS4_STATE_DELEG) {
		f.recalled = nfs4_as_deleg(st)->queued;
		f.recalled_at = nfs4_as_deleg(st)->recalled_at;
	}
	if (st->kind == NFS4_STATE_LAYOUT) {
		f.recalled = nfs4_as_layout(st)->recalled;
		f.recalled_at = nfs4_as_layout(st)->recalled_at;
		f.iomodes = nfs4_as_layout(st)->iomodes;
	}
	return f;
}

/* Looks at the next entries of a client from *entry on, which moves behind them. */
static unsigned nfs4_state_view_find(struct nfs4_client *cl, enum nfs4_view_kind kind,
				     uint32_t *entry, struct found found[PIECE])
{
	unsigned n = 0;

	pthread_mutex_lock(&cl->lock);
	const uint32_t end = nfs4_stateid_entries(cl->holdings);

	for (unsigned i = 0; i < PIECE && *entry < end; i++, ++*entry) {
		struct nfs4_state *st = nfs4_stateid_at(cl->holdings, *entry);

		if (nfs4_state_view_is_shown(st, kind))
			found[n++] = nfs4_state_view_take(st, *entry);
	}
	if (*entry >= end)
		*entry = DONE;
	pthread_mutex_unlock(&cl->lock);
	return n;
}

static void set_file(struct nfs4_view_state *v, uint32_t export_id, const uint8_t *fh,
		     uint8_t fh_len)
{
	v->export_id = export_id;
	v->fh.len = fh_len;
	memcpy(v->fh.data, fh, fh_len);
}

static void set_recalled(struct nfs4_view_state *v, const struct found *f)
{
	const uint64_t now = nfs4_clients_now(f->st->client->srv);

	v->recalled = f->recalled;
	v->recalled_s = f->recalled && now > f->recalled_at ? now - f->recalled_at : 0;
}

static void set_layout(struct nfs4_view_state *v, const struct found *f)
{
	const struct nfs4_layout *l = nfs4_as_layout(f->st);

	set_file(v, l->export_id, l->fh, l->fh_len);
	v->to_read = f->iomodes & LAYOUTIOMODE4_READ;
	v->to_write = f->iomodes & LAYOUTIOMODE4_RW;
	v->data_server = l->data_server;
	set_recalled(v, f);
}

static void set_deleg(struct nfs4_view_state *v, const struct found *f)
{
	const struct nfs4_deleg *d = nfs4_as_deleg(f->st);

	set_file(v, d->export_id, d->fh, d->fh_len);
	v->directory = d->type == NFS4_ANY_DIR;
	v->writing = d->vfs.type == VFS_DELEG_WRITE;
	set_recalled(v, f);
}

static void set_open(struct nfs4_view_state *v, struct nfs4_state *st)
{
	const struct nfs4_open *open = nfs4_open_of(st);
	struct vfs_share_request share = { 0 };

	set_file(v, open->export_id, open->fh, open->fh_len);
	if (st->kind == NFS4_STATE_OPEN)
		v->share_known = vfs_view_share(st->file, &open->share, &share);
	v->access = share.access;
	v->deny = share.deny;
}

static bool nfs4_state_view_show(const struct nfs4_view_query *q, const struct found *f)
{
	struct nfs4_state *st = f->st;
	const struct nfs4_client *cl = st->client;
	struct vfs_view_ranges ranges;
	struct nfs4_view_state v = {
		.id = nfs4_view_id(st),
		.clientid = cl->clientid,
		.sessions = cl->sessions,
		.client = cl->ownerid,
		.client_len = cl->ownerid_len,
		.owner = st->owner ? st->owner->name : NULL,
		.owner_len = st->owner ? st->owner->len : 0,
		.file = st->file,
		.age_s = (uint32_t)nfs4_clients_now(cl->srv) - st->since,
		.revoked = f->revoked,
		.ranges = &ranges,
	};

	if (st->kind == NFS4_STATE_DELEG)
		set_deleg(&v, f);
	else if (st->kind == NFS4_STATE_LAYOUT)
		set_layout(&v, f);
	else
		set_open(&v, st);
	if (st->kind == NFS4_STATE_LOCK)
		v.ranges_known = vfs_view_ranges(st->file, &nfs4_as_lock(st)->ranges, &ranges);
	return q->show(q->arg, &v);
}

/* Shows a piece of the client's states. False: nfs4_state_view_show() has ended the call. */
static bool show_piece(struct nfs4_client *cl, const struct nfs4_view_query *q,
		       struct nfs4_view_cursor *at)
{
	struct found found[PIECE];
	uint32_t entry = at->entry;
	const unsigned n = nfs4_state_view_find(cl, q->kind, &entry, found);
	bool more = true;

	for (unsigned i = 0; i < n; i++) {
		if (more) {
			more = nfs4_state_view_show(q, &found[i]);
			at->entry = found[i].entry + 1;
		}
		nfs4_state_unref(found[i].st);
	}
	if (more)
		at->entry = entry;
	return more;
}

/* The client to go on with, with a reference. NULL: there is none any more. */
static struct nfs4_client *nfs4_state_view_next_client(struct nfs4_server *s,
						       const struct nfs4_view_query *q,
						       struct nfs4_view_cursor *at)
{
	struct nfs4_client *cl = NULL;
	const bool begins = at->client == 0;

	if (!begins && at->entry != DONE)
		cl = nfs4_client_by_number(s, at->client);
	if (cl)
		return cl;
	if (q->clientid == 0)
		cl = nfs4_client_after(s, at->client);
	else if (begins)
		cl = nfs4_client_by_number(s, (uint32_t)q->clientid);
	if (cl)
		*at = (struct nfs4_view_cursor){ .client = cl->number };
	return cl;
}

bool nfs4_view(struct nfs4_server *s, const struct nfs4_view_query *q, struct nfs4_view_cursor *at,
	       unsigned pieces)
{
	struct nfs4_client *cl;
	bool more = true;

	for (; pieces > 0 && more; pieces--) {
		cl = nfs4_state_view_next_client(s, q, at);
		if (!cl)
			return true;
		if (q->clientid != 0 && cl->clientid != q->clientid)
			at->entry = DONE;
		else
			more = show_piece(cl, q, at);
		nfs4_client_put(cl);
	}
	return false;
}

/* Attempts to get an open that an operation has, and the pause between two of them. */
#define ATTEMPTS 200u
#define PAUSE_NS 5000000

struct nfs4_state *nfs4_state_by_view_id(struct nfs4_server *s, enum nfs4_view_kind kind,
					 uint64_t id)
{
	struct nfs4_client *cl = nfs4_client_by_number(s, (uint32_t)(id >> 32));
	struct nfs4_state *st;

	if (!cl)
		return NULL;
	pthread_mutex_lock(&cl->lock);
	st = nfs4_stateid_find(cl->holdings, (uint32_t)id);
	if (st && (st->kind != kinds[kind] || st->gone || st->revoked))
		st = NULL;
	if (st)
		nfs4_state_ref(st);
	pthread_mutex_unlock(&cl->lock);
	nfs4_client_put(cl);
	return st;
}

static bool nfs4_open_enter_soon(struct nfs4_open *open)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	for (unsigned i = 0; i < ATTEMPTS; i++) {
		if (rn_lock_try(&open->busy))
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

static int end_open_or_lock(struct nfs4_state *st)
{
	struct nfs4_open *open = nfs4_open_of(st);

	if (!nfs4_record_distrust(st->client->srv, &st->client->record))
		return -RN_ESOON;
	if (!nfs4_open_enter_soon(open))
		return -EBUSY;
	const bool ended = st->kind == NFS4_STATE_OPEN
				   ? nfs4_open_revoke(open, NFS4ERR_ADMIN_REVOKED)
				   : nfs4_lock_revoke(nfs4_as_lock(st), NFS4ERR_ADMIN_REVOKED);

	rn_lock_give(&open->busy);
	return ended ? 0 : -ENOENT;
}

static int end_deleg(struct nfs4_state *st)
{
	if (!nfs4_record_add(st->client->srv, &st->client->record, NFS4_RECORD_DELEG_LOST))
		return -RN_ESOON;
	nfs4_revoke(st, NFS4ERR_ADMIN_REVOKED);
	return 0;
}

int nfs4_end_state(struct nfs4_server *s, enum nfs4_view_kind kind, uint64_t id)
{
	struct nfs4_state *st = nfs4_state_by_view_id(s, kind, id);

	if (!st)
		return -ENOENT;
	const int rc = st->kind == NFS4_STATE_DELEG ? end_deleg(st) : end_open_or_lock(st);

	nfs4_state_unref(st);
	return rc;
}

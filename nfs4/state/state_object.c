/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens, locks, delegations and layouts as objects: made, ended, revoked, and freed with their last reference. */
#include "nfs4/state/state.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "nfs4/client/nfs4_client.h"
#include "nfs4/state/nfs4_deleg.h"
#include "nfs4/state/nfs4_layout.h"
#include "nfs4/state/owner.h"

void nfs4_state_ref(struct nfs4_state *st)
{
	atomic_fetch_add_explicit(&st->refs, 1, memory_order_relaxed);
}

void nfs4_state_init(struct nfs4_state *st, enum nfs4_state_kind kind, struct nfs4_client *cl,
		     struct nfs4_owner *o, struct vfs_file *f)
{
	st->refs = 1;
	st->since = (uint32_t)nfs4_clients_now(cl->srv);
	st->kind = (uint8_t)kind;
	st->client = cl;
	nfs4_client_ref(cl);
	st->owner = o;
	if (o)
		nfs4_owner_ref(o);
	st->file = f;
	vfs_file_ref(f);
}

struct nfs4_open *nfs4_open_new(struct nfs4_owner *o, struct vfs_file *f,
				const struct nfs4_object *p)
{
	const struct vfs_fh *fh = &p->fh;
	struct nfs4_open *open = calloc(1, sizeof(*open) + fh->len);

	if (!open)
		return NULL;
	nfs4_state_init(&open->st, NFS4_STATE_OPEN, o->client, o, f);
	rn_lock_init(&open->busy);
	LIST_INIT(&open->locks);
	atomic_init(&open->opener, NFS4_OPENER_NONE);
	open->export_id = p->export_id;
	open->fh_len = (uint8_t)fh->len;
	memcpy(open->fh, fh->data, fh->len);
	return open;
}

struct nfs4_lock *nfs4_lock_new(struct nfs4_owner *o, struct nfs4_open *open)
{
	struct nfs4_lock *lock = calloc(1, sizeof(*lock));

	if (!lock)
		return NULL;
	nfs4_state_init(&lock->st, NFS4_STATE_LOCK, o->client, o, open->st.file);
	lock->open = open;
	nfs4_state_ref(&open->st);
	vfs_lock_owner_init(&lock->ranges, open->st.file, &o->holder);
	return lock;
}

static void fini(struct nfs4_state *st)
{
	vfs_file_put(st->file);
	if (st->owner)
		nfs4_owner_unref(st->owner);
	nfs4_client_put(st->client);
}

/* Frees st after its last reference. Returns the state that it referred to, for the caller to put,
 * or NULL. */
static struct nfs4_state *free_state(struct nfs4_state *st)
{
	struct nfs4_open *open;

	switch ((enum nfs4_state_kind)st->kind) {
	case NFS4_STATE_LOCK:
		open = nfs4_as_lock(st)->open;
		vfs_lock_owner_end(&nfs4_as_lock(st)->ranges);
		fini(st);
		free(nfs4_as_lock(st));
		return &open->st;
	case NFS4_STATE_OPEN:
		vfs_share_close(&nfs4_as_open(st)->share);
		rn_lock_fini(&nfs4_as_open(st)->busy);
		fini(st);
		free(nfs4_as_open(st));
		return NULL;
	case NFS4_STATE_LAYOUT:
		fini(st);
		free(nfs4_as_layout(st));
		return NULL;
	default:
		nfs4_dir_notify_free(nfs4_as_deleg(st));
		fini(st);
		free(nfs4_as_deleg(st));
		return NULL;
	}
}

void nfs4_state_unref(struct nfs4_state *st)
{
	while (st && atomic_fetch_sub_explicit(&st->refs, 1, memory_order_acq_rel) == 1)
		st = free_state(st);
}

/* True if the handle is the one by which the client opened the file. */
static bool has_handle(struct nfs4_state *st, const struct vfs_fh *fh)
{
	const uint8_t *had;
	uint32_t len;

	if (st->kind == NFS4_STATE_DELEG) {
		had = nfs4_as_deleg(st)->fh;
		len = nfs4_as_deleg(st)->fh_len;
	} else if (st->kind == NFS4_STATE_LAYOUT) {
		had = nfs4_as_layout(st)->fh;
		len = nfs4_as_layout(st)->fh_len;
	} else {
		had = nfs4_open_of(st)->fh;
		len = nfs4_open_of(st)->fh_len;
	}
	return fh->len == len && memcmp(fh->data, had, len) == 0;
}

bool nfs4_state_is_of(struct nfs4_state *st, struct nfs4_object *p)
{
	struct vfs_file *f;
	bool same;

	if (p->kind != NFS4_FILE)
		return false;
	if (has_handle(st, &p->fh))
		return true;
	/* The file may be the same, reached by another export. */
	if ((p->type != S_IFREG && p->type != S_IFDIR) || vfs_file_get(&p->ctx, p->node, &f) != 0)
		return false;
	same = f == st->file;
	vfs_file_put(f);
	return same;
}

void nfs4_lock_end(struct nfs4_lock *lock)
{
	struct nfs4_client *cl = lock->st.client;
	struct nfs4_dead_owners dead = { NULL, NULL };

	nfs4_client_ref(cl);
	pthread_mutex_lock(&cl->lock);
	nfs4_state_remove(cl, &lock->st, false);
	nfs4_owner_maybe_idle(lock->st.owner, &dead);
	pthread_mutex_unlock(&cl->lock);
	vfs_lock_owner_end(&lock->ranges);
	nfs4_state_unref(&lock->st);
	nfs4_bury(&dead);
	nfs4_client_put(cl);
}

/*
 * The open's first lock. NULL: there is none, and the client's lock is held, so that none is added.
 */
static struct nfs4_lock *first_lock(struct nfs4_client *cl, struct nfs4_open *open)
{
	struct nfs4_lock *lock;

	pthread_mutex_lock(&cl->lock);
	lock = LIST_FIRST(&open->locks);
	if (lock)
		pthread_mutex_unlock(&cl->lock);
	return lock; /* busy is held: no other thread ends it */
}

void nfs4_open_end(struct nfs4_open *open, bool keep)
{
	struct nfs4_owner *o = open->st.owner;
	struct nfs4_client *cl = open->st.client;
	struct nfs4_dead_owners dead = { NULL, NULL };
	struct nfs4_lock *lock;

	nfs4_client_ref(cl);
	while ((lock = first_lock(cl, open)))
		nfs4_lock_end(lock);
	keep = keep && o->in_table && !o->kept;
	nfs4_state_remove(cl, &open->st, keep);
	if (keep)
		o->kept = open; /* with the table's reference */
	nfs4_owner_maybe_idle(o, &dead);
	pthread_mutex_unlock(&cl->lock);
	vfs_share_close(&open->share);
	if (!keep)
		nfs4_state_unref(&open->st);
	nfs4_bury(&dead);
	nfs4_client_put(cl);
}

void nfs4_open_drop(struct nfs4_open *open)
{
	nfs4_state_ref(&open->st);
	rn_lock_take(&open->busy);
	if (!open->st.gone)
		nfs4_open_end(open, false);
	rn_lock_give(&open->busy);
	nfs4_state_unref(&open->st);
}

void nfs4_lock_drop(struct nfs4_lock *lock)
{
	struct nfs4_open *open = lock->open;

	rn_lock_take(&open->busy);
	if (!lock->st.gone)
		nfs4_lock_end(lock);
	rn_lock_give(&open->busy);
}

/* Under the client's lock. */
static void note_time(struct nfs4_client *cl)
{
	cl->holdings->revoked_at = (uint32_t)nfs4_clients_now(cl->srv);
}

static void drop_ranges(struct nfs4_lock *lock)
{
	vfs_lock_drop_all(&lock->ranges);
	nfs4_ranges_changed(lock);
}

bool nfs4_open_revoke(struct nfs4_open *open, int status)
{
	struct nfs4_client *cl = open->st.client;
	struct nfs4_lock *lock;

	if (open->st.gone)
		return false;
	pthread_mutex_lock(&cl->lock);
	const bool mine = !open->st.revoked;

	note_time(cl);
	nfs4_state_revoke(cl, &open->st, status);
	LIST_FOREACH (lock, &open->locks, open_link)
		nfs4_state_revoke(cl, &lock->st, status);
	pthread_mutex_unlock(&cl->lock);
	/* Locks are added only to opens that are not revoked, and removed only under busy. */
	LIST_FOREACH (lock, &open->locks, open_link)
		drop_ranges(lock);
	vfs_share_close(&open->share);
	return mine;
}

bool nfs4_lock_revoke(struct nfs4_lock *lock, int status)
{
	struct nfs4_client *cl = lock->st.client;

	pthread_mutex_lock(&cl->lock);
	const bool mine = !lock->st.gone && !lock->st.revoked;

	if (mine) {
		note_time(cl);
		nfs4_state_revoke(cl, &lock->st, status);
	}
	pthread_mutex_unlock(&cl->lock);
	if (mine)
		drop_ranges(lock);
	return mine;
}

bool nfs4_revoke(struct nfs4_state *st, int status)
{
	struct nfs4_client *cl = st->client;
	struct nfs4_open *open;

	if (st->kind == NFS4_STATE_LAYOUT) {
		nfs4_layout_end(nfs4_as_layout(st));
		return false;
	}
	if (st->kind == NFS4_STATE_DELEG) {
		pthread_mutex_lock(&cl->lock);
		note_time(cl);
		pthread_mutex_unlock(&cl->lock);
		nfs4_deleg_revoke(nfs4_as_deleg(st), status);
		return false;
	}
	open = nfs4_as_open(st);
	rn_lock_take(&open->busy);
	const bool revoked = nfs4_open_revoke(open, status);

	rn_lock_give(&open->busy);
	return revoked;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens and locks as objects: made, ended, and freed with their last reference. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "nfs4/client/client.h"
#include "nfs4/state/owners.h"
#include "nfs4/state/state.h"

static void begin(struct nfs4_state *st, enum nfs4_state_kind kind, struct nfs4_owner *o,
		  struct vfs_file *f)
{
	st->refs = 1;
	st->kind = (uint8_t)kind;
	st->owner = o;
	nfs4_owner_ref(o);
	st->file = f;
	vfs_file_ref(f);
}

struct nfs4_open *nfs4_open_new(struct nfs4_owner *o, struct vfs_file *f,
				const struct nfs4_place *p)
{
	const struct vfs_fh *fh = &p->fh;
	struct nfs4_open *open = calloc(1, sizeof(*open) + fh->len);

	if (!open)
		return NULL;
	begin(&open->st, NFS4_STATE_OPEN, o, f);
	pthread_mutex_init(&open->busy, NULL);
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
	begin(&lock->st, NFS4_STATE_LOCK, o, open->st.file);
	lock->open = open;
	nfs4_state_ref(&open->st);
	vfs_lock_owner_init(&lock->ranges, open->st.file, &o->holder);
	return lock;
}

struct nfs4_state *nfs4_state_free(struct nfs4_state *st)
{
	struct nfs4_open *open = nfs4_open_of(st);
	const bool lock = st->kind == NFS4_STATE_LOCK;

	if (lock) {
		vfs_lock_owner_end(&nfs4_as_lock(st)->ranges);
	} else {
		vfs_share_close(&open->share);
		pthread_mutex_destroy(&open->busy);
	}
	vfs_file_put(st->file);
	nfs4_owner_unref(st->owner);
	if (lock)
		free(nfs4_as_lock(st));
	else
		free(open);
	return lock ? &open->st : NULL;
}

void nfs4_lock_end(struct nfs4_lock *lock)
{
	struct nfs4_client *cl = lock->st.owner->client;
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

/* The open's first lock; NULL: there is none, and the client's lock is held, so that none comes. */
static struct nfs4_lock *first_lock(struct nfs4_client *cl, struct nfs4_open *open)
{
	struct nfs4_lock *lock;

	pthread_mutex_lock(&cl->lock);
	lock = LIST_FIRST(&open->locks);
	if (lock)
		pthread_mutex_unlock(&cl->lock);
	return lock; /* busy is held: nobody ends it but us */
}

void nfs4_open_end(struct nfs4_open *open, bool keep)
{
	struct nfs4_owner *o = open->st.owner;
	struct nfs4_client *cl = o->client;
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
	pthread_mutex_lock(&open->busy);
	if (!open->st.gone)
		nfs4_open_end(open, false);
	pthread_mutex_unlock(&open->busy);
	nfs4_state_unref(&open->st);
}

bool nfs4_state_is_of(struct nfs4_state *st, struct nfs4_place *p)
{
	const struct nfs4_open *open = nfs4_open_of(st);
	struct vfs_file *f;
	bool same;

	if (p->kind != NFS4_FILE)
		return false;
	if (p->fh.len == open->fh_len && memcmp(p->fh.data, open->fh, open->fh_len) == 0)
		return true;
	/* The same file by another export? */
	if (p->type != S_IFREG || vfs_file_get(&p->ctx, p->node, &f) != 0)
		return false;
	same = f == st->file;
	vfs_file_put(f);
	return same;
}

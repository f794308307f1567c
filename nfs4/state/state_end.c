/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of opens and locks: removal from the tables, and from vfs/. */
#include "nfs4/client/nfs4_client.h"
#include "nfs4/state/owner.h"
#include "nfs4/state/state.h"

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

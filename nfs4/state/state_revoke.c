/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/state/state_revoke.h"

#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/registry.h"
#include "nfs4/state/nfs4_deleg.h"

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

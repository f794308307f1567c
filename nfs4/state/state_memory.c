/* SPDX-License-Identifier: BSD-2-Clause */
/* Accounting of the memory of opens, locks and owners. */
#include "nfs4/client/nfs4_client.h"
#include "nfs4/client/client_host.h"
#include "nfs4/state/state.h"

bool nfs4_state_charge(struct nfs4_client *cl, size_t bytes)
{
	return nfs4_host_take(cl->host, bytes, NFS4_TO_HOLD);
}

void nfs4_state_discharge(struct nfs4_client *cl, size_t bytes)
{
	nfs4_host_give(cl->host, bytes);
}

bool nfs4_ranges_fit(struct nfs4_lock *lock)
{
	return nfs4_host_fits(lock->st.client->host, 2 * (size_t)NFS4_RANGE_COST, NFS4_TO_HOLD);
}

/* Charges existing ranges as far as the budget goes: LOCKU, which may split a range, must not fail
 * for lack of memory. */
void nfs4_ranges_changed(struct nfs4_lock *lock)
{
	struct nfs4_client *cl = lock->st.client;

	lock->held = vfs_lock_held(&lock->ranges);
	pthread_mutex_lock(&cl->lock);
	nfs4_lock_count(lock);
	while (!lock->st.gone && lock->charged < lock->ranges.count &&
	       nfs4_state_charge(cl, NFS4_RANGE_COST))
		lock->charged++;
	if (lock->charged > lock->ranges.count) {
		nfs4_state_discharge(cl, (lock->charged - lock->ranges.count) *
						 (size_t)NFS4_RANGE_COST);
		lock->charged = lock->ranges.count;
	}
	pthread_mutex_unlock(&cl->lock);
}

int nfs4_state_no_memory(const struct nfs4_compound *c)
{
	return c->minor == 0 ? NFS4ERR_RESOURCE : NFS4ERR_DELAY;
}

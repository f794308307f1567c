/* SPDX-License-Identifier: BSD-2-Clause */
/* What opens, locks and owners cost, and how many there are. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "nfs4/client/client.h"
#include "nfs4/client/host.h"
#include "nfs4/server.h"
#include "nfs4/state/state.h"
#include "nfs4/state/states.h"

struct nfs4_states {
	_Atomic uint64_t owners, opens, locks;
};

int nfs4_states_new(struct nfs4_server *srv)
{
	srv->states = calloc(1, sizeof(*srv->states));
	return srv->states ? 0 : -ENOMEM;
}

void nfs4_states_free(struct nfs4_states *s)
{
	free(s);
}

void nfs4_states_held(struct nfs4_states *s, struct nfs4_held *out)
{
	out->owners = atomic_load(&s->owners);
	out->opens = atomic_load(&s->opens);
	out->locks = atomic_load(&s->locks);
}

static void add(_Atomic uint64_t *to, int n)
{
	if (n != 0)
		atomic_fetch_add_explicit(to, (uint64_t)(int64_t)n, memory_order_relaxed);
}

void nfs4_states_count(struct nfs4_server *srv, int owners, int opens, int locks)
{
	add(&srv->states->owners, owners);
	add(&srv->states->opens, opens);
	add(&srv->states->locks, locks);
}

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
	return nfs4_host_fits(lock->st.owner->client->host, 2 * (size_t)NFS4_RANGE_COST,
			      NFS4_TO_HOLD);
}

/* What is there already is charged as far as the budget goes: LOCKU, which may split one, does not
 * fail for that. */
void nfs4_ranges_changed(struct nfs4_lock *lock)
{
	struct nfs4_client *cl = lock->st.owner->client;

	lock->held = vfs_lock_held(&lock->ranges);
	pthread_mutex_lock(&cl->lock);
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

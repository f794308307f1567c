/* SPDX-License-Identifier: BSD-2-Clause */
/* What opens, locks and owners cost, and how many there are. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "lib/budget.h"
#include "nfs4/client/client.h"
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

/* As with payload (ARCHITECTURE.md, Shares): a client alone can have half, and there is always some
 * for whoever comes next. */
bool nfs4_state_charge(struct nfs4_client *cl, size_t bytes)
{
	struct rn_budget *b = cl->srv->cfg.budget;
	size_t used;

	if (b) {
		used = atomic_load_explicit(&b->used, memory_order_relaxed);
		if (used > b->max || cl->state.bytes + bytes > b->max - used)
			return false;
		if (!rn_budget_take(b, bytes))
			return false;
	}
	cl->state.bytes += bytes;
	return true;
}

void nfs4_state_discharge(struct nfs4_client *cl, size_t bytes)
{
	cl->state.bytes -= bytes;
	if (cl->srv->cfg.budget)
		rn_budget_give(cl->srv->cfg.budget, bytes);
}

int nfs4_state_no_memory(const struct nfs4_compound *c)
{
	return c->minor == 0 ? NFS4ERR_RESOURCE : NFS4ERR_DELAY;
}

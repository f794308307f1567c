/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/state/totals.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "nfs4/nfs4_private.h"

struct nfs4_totals {
	_Atomic uint64_t of[NFS4_TOTALS];
};

int nfs4_totals_new(struct nfs4_server *srv)
{
	srv->totals = calloc(1, sizeof(*srv->totals));
	return srv->totals ? 0 : -ENOMEM;
}

void nfs4_totals_free(struct nfs4_totals *s)
{
	free(s);
}

void nfs4_totals_held(struct nfs4_totals *s, struct nfs4_held *out)
{
	out->owners = atomic_load(&s->of[NFS4_TOTAL_OWNERS]);
	out->opens = atomic_load(&s->of[NFS4_TOTAL_OPENS]);
	out->locks = atomic_load(&s->of[NFS4_TOTAL_LOCKS]);
	out->delegations = atomic_load(&s->of[NFS4_TOTAL_DELEGS]);
}

void nfs4_totals_count(struct nfs4_server *srv, enum nfs4_total what, int by)
{
	atomic_fetch_add_explicit(&srv->totals->of[what], (uint64_t)(int64_t)by,
				  memory_order_relaxed);
}

uint64_t nfs4_total(const struct nfs4_server *srv, enum nfs4_total what)
{
	return atomic_load_explicit(&srv->totals->of[what], memory_order_relaxed);
}

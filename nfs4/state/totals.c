/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/state/totals.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "nfs4/server.h"

struct nfs4_totals {
	_Atomic uint64_t owners, opens, locks;
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
	out->owners = atomic_load(&s->owners);
	out->opens = atomic_load(&s->opens);
	out->locks = atomic_load(&s->locks);
}

static void add(_Atomic uint64_t *to, int n)
{
	if (n != 0)
		atomic_fetch_add_explicit(to, (uint64_t)(int64_t)n, memory_order_relaxed);
}

void nfs4_totals_count(struct nfs4_server *srv, int owners, int opens, int locks)
{
	add(&srv->totals->owners, owners);
	add(&srv->totals->opens, opens);
	add(&srv->totals->locks, locks);
}

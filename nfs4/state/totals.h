/* SPDX-License-Identifier: BSD-2-Clause */
/* Server-wide numbers of owners, opens, locks and delegations. The objects themselves belong to clients
 * (nfs4/state/holdings.h). */
#ifndef RN_NFS4_STATE_TOTALS_H
#define RN_NFS4_STATE_TOTALS_H

#include <stdint.h>

struct nfs4_server;
struct nfs4_totals;
struct nfs4_held;

/* Sets srv->totals. 0 or -ENOMEM. */
int nfs4_totals_new(struct nfs4_server *srv);
/* All clients must have been dropped. NULL is allowed. */
void nfs4_totals_free(struct nfs4_totals *s);
/* Fills owners, opens, locks, delegations. */
void nfs4_totals_held(struct nfs4_totals *s, struct nfs4_held *out);

enum nfs4_total {
	NFS4_TOTAL_OWNERS,
	NFS4_TOTAL_OPENS,
	NFS4_TOTAL_LOCKS,
	NFS4_TOTAL_DELEGS,
	NFS4_TOTALS
};
/* Adds to a number; a negative value subtracts. */
void nfs4_totals_count(struct nfs4_server *srv, enum nfs4_total what, int by);
uint64_t nfs4_total(const struct nfs4_server *srv, enum nfs4_total what);

#endif

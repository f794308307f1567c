/* SPDX-License-Identifier: BSD-2-Clause */
/* Server-wide numbers of owners, opens and locks. The objects themselves belong to clients
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
/* Fills owners, opens, locks. */
void nfs4_totals_held(struct nfs4_totals *s, struct nfs4_held *out);

/* Adds to the numbers; negative values subtract. */
void nfs4_totals_count(struct nfs4_server *srv, int owners, int opens, int locks);

#endif

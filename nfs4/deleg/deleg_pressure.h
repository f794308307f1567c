/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Too many delegations: clients are asked to return some (CB_RECALL_ANY), and from those that do not, single
 * ones are recalled, the least recently used first. nfs4/deleg/deleg_policy.h says when and how many.
 *
 * What can be short: descriptors for the kernel's leases, the bounds below, the memory of state. It is looked at
 * once a second. Clients whose lease has run out lose their state before others are asked.
 */
#ifndef RN_NFS4_DELEG_DELEG_PRESSURE_H
#define RN_NFS4_DELEG_DELEG_PRESSURE_H

#include "nfs4/deleg/deleg_policy.h"
#include "nfs4/state/nfs4_deleg.h"

/* Bounds besides the memory that a client may have. */
#define NFS4_DELEGS_OF_CLIENT 16384u
#define NFS4_DELEGS_MAX 131072u /* of all clients */

/* Sets srv->deleg_holders. 0 or -ENOMEM. */
int nfs4_deleg_holders_new(struct nfs4_server *srv);
/* All clients must have been dropped. NULL is allowed. */
void nfs4_deleg_holders_free(struct nfs4_deleg_holders *h);
/* From nfs4_tick. */
void nfs4_deleg_pressure_tick(struct nfs4_server *srv);

/* True if the client may have one more, as far as the bounds are concerned. Takes its lock. */
bool nfs4_deleg_has_room(struct nfs4_client *cl);

/* One more was given; or there was no memory for it. Under the client's lock. */
void nfs4_deleg_one_more(struct nfs4_client *cl);
void nfs4_deleg_refused(struct nfs4_client *cl);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Too many delegations: clients are asked to return some (CB_RECALL_ANY), and from those that do not, single
 * ones are recalled, the least recently used first.
 *
 * What can be short: descriptors for the kernel's leases, the bounds below, the memory of state. It is looked at
 * once a second. Clients whose lease has run out lose their state before others are asked.
 */
#ifndef RN_NFS4_DELEG_DELEG_PRESSURE_H
#define RN_NFS4_DELEG_DELEG_PRESSURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nfs4/state/holdings.h"
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

/*
 * When clients have to give delegations back because there are too many, and how many of them: numbers only.
 *
 * A resource is short before it is used up, so that new delegations can still be given meanwhile (RFC
 * 8881 section 20.6.3). Those clients give most that have most.
 */
#define NFS4_DELEG_ASKED_AT_ONCE 4u  /* clients that are asked in a second */
#define NFS4_DELEG_ASK_AGAIN_S 5u    /* a client is not asked more often, as in nfsd */
#define NFS4_DELEG_TAKEN_AT_ONCE 32u /* single delegations recalled from a client in a second */

/* Delegations that are to be returned when used of most units are in use, one for each. 0 up to seven
 * eighths; beyond, so many that three quarters are left. */
uint64_t nfs4_deleg_excess(uint64_t used, uint64_t most);

/* The memory of state, in bytes. Delegations are not blamed for it before they have a sixteenth. */
struct nfs4_deleg_memory {
	uint64_t used, most;
	uint64_t delegs; /* of all clients */
	uint64_t cost;	 /* of one */
};
uint64_t nfs4_deleg_memory_excess(const struct nfs4_deleg_memory *m);

/*
 * Shares excess among the n clients with most, which are sorted by has[], the largest first: sets give[].
 * next: what the first of all others has. Nobody goes below the next one by more than a quarter of what he
 * has, so it may be less than excess altogether; the others' turn comes later.
 */
void nfs4_deleg_divide(const uint32_t *has, unsigned n, uint32_t next, uint64_t excess,
		       uint32_t *give);

/* True if the client may be asked now to keep no more than that. */
bool nfs4_deleg_may_ask(const struct nfs4_deleg_asked *a, uint32_t keep, uint64_t now);
/* Delegations to recall one by one from a client that has n, without those being recalled: it had a lease's
 * time for what it was asked for (section 20.6.4), or cannot be asked. */
uint32_t nfs4_deleg_to_take(const struct nfs4_deleg_asked *a, uint32_t n, uint64_t now,
			    uint64_t lease);

#endif

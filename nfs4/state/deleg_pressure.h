/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Too many delegations: clients are asked to return some (CB_RECALL_ANY), and from those that do not, single
 * ones are recalled, the least recently used first. nfs4/state/deleg_policy.h says when and how many.
 *
 * What can be short: descriptors for the kernel's leases, the bounds below, the memory of state. It is looked at
 * once a second. Clients whose lease has run out lose their state before others are asked.
 */
#ifndef RN_NFS4_STATE_DELEG_PRESSURE_H
#define RN_NFS4_STATE_DELEG_PRESSURE_H

#include <pthread.h>

#include "lib/log_limit.h"
#include "nfs4/state/nfs4_deleg.h"

/* Bounds besides the memory that a client may have. */
#define NFS4_DELEGS_OF_CLIENT 16384u
#define NFS4_DELEGS_MAX 131072u /* of all clients */

/* Clients that have delegations. */
struct nfs4_deleg_holders {
	pthread_mutex_t lock; /* a leaf; taken under the locks of clients */
	TAILQ_HEAD(, nfs4_deleg_account) clients;
	uint32_t max, max_of_client; /* the bounds, which tests lower */
	_Atomic uint64_t given;	     /* delegations; those that were revoked are not counted */
	_Atomic uint64_t recalling;  /* of these, those that were recalled */
	_Atomic bool crowded;	     /* a client is near its own bound, or was refused memory */
	struct rn_log_limit told;    /* of messages about clients that are asked */
};

/* Sets srv->deleg_holders. 0 or -ENOMEM. */
int nfs4_deleg_holders_new(struct nfs4_server *srv);
/* All clients must have been dropped. NULL is allowed. */
void nfs4_deleg_holders_free(struct nfs4_deleg_holders *h);
/* From nfs4_tick. */
void nfs4_deleg_pressure_tick(struct nfs4_server *srv);

/* True if the client may have one more, as far as the bounds are concerned. Takes its lock. */
bool nfs4_deleg_has_room(struct nfs4_client *cl);
/* The client has used the delegation. Any thread. */
void nfs4_deleg_used(struct nfs4_deleg *d);

/* For nfs4_holdings_hooks.init. */
void nfs4_deleg_account_init(struct nfs4_deleg_account *a);

/* The functions below need the client's lock. */

/* Counts a delegation that was given, that is being recalled, and that has ended. */
void nfs4_deleg_count(struct nfs4_deleg *d);
void nfs4_deleg_count_recalled(struct nfs4_deleg *d);
void nfs4_deleg_uncount(struct nfs4_deleg *d);
/* There was no memory for one more. */
void nfs4_deleg_refused(struct nfs4_client *cl);

#endif

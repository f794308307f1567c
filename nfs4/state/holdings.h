/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client's holdings: its owners, opens and locks, and the table that finds them by stateid. They
 * lie behind struct nfs4_client, whose lock guards them; that lock is never held across a call into
 * vfs/. nfs4/client/ uses them through a table of calls (nfs4/client/holdings_hooks.h).
 *
 * References: each owner in the table holds one of the client (nfs4_client_ref). So a client's
 * memory stays until its holdings have been dropped and the operations under way have ended.
 */
#ifndef RN_NFS4_STATE_HOLDINGS_H
#define RN_NFS4_STATE_HOLDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "nfs4/client/holdings_hooks.h"

struct nfs4_owner;
struct nfs4_state;

struct nfs4_holdings {
	/* Set by drop, for good: nothing can be added any more. */
	bool dropped;

	uint32_t opens, locks, owners; /* in the tables */
	/* Number of revoked opens and locks by status: EXPIRED, ADMIN_REVOKED. */
	_Atomic uint32_t revoked[2];
	uint32_t revoked_at; /* time of the last revocation: seconds of nfs4_clients_now() */

	/* Stateids, in chunks (nfs4/state/stateid_table.h). */
	uint64_t **chunks;
	uint32_t nchunks;
	uint32_t free_first, free_last;

	/* Hash tables by {kind, owner's name} and by {owner, file}; sizes are powers of two. */
	struct nfs4_owner **owner_hash;
	struct nfs4_state **state_hash;
	uint32_t owner_buckets, state_buckets;

	/* Owners without state, kept for retransmissions (minor version 0), oldest first. */
	TAILQ_HEAD(nfs4_idle_owners, nfs4_owner) idle;
	uint32_t nidle;
	/* Open-owners whose OPEN has not been confirmed (minor version 0), oldest first. */
	TAILQ_HEAD(nfs4_unconfirmed_owners, nfs4_owner) unconfirmed;
	TAILQ_HEAD(nfs4_held_states, nfs4_state) states; /* opens and locks in the tables */
	/* Lock-owners that wait for a lock (nfs4/state/lock_waiter.h). */
	LIST_HEAD(, nfs4_lock_waiter) waiters;
	uint32_t nwaiters;
};

/* For nfs4/program.c. */
extern const struct nfs4_holdings_hooks nfs4_holdings_hooks;

#endif

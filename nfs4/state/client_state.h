/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a client holds: its owners, opens and locks, and the table by which a stateid finds them. It
 * lies in struct nfs4_client, whose lock guards it; that lock is never held across a call into
 * vfs/.
 *
 * References: each owner that is in the table holds one of the client (nfs4_client_ref), so a
 * client's memory stays until nfs4_client_state_drop was called and what was under way has ended.
 */
#ifndef RN_NFS4_STATE_CLIENT_STATE_H
#define RN_NFS4_STATE_CLIENT_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct nfs4_client;
struct nfs4_server;
struct nfs4_owner;
struct nfs4_state;

struct nfs4_client_state {
	/* By drop, for good: nothing can be added any more. */
	bool dropped;

	uint32_t opens, locks, owners; /* in the tables */
	/* Of opens and locks: see nfs4_client_state_revoke. By the status: EXPIRED, ADMIN_REVOKED.
	 */
	_Atomic uint32_t revoked[2];
	uint32_t revoked_at; /* the last: seconds of nfs4_clients_now() */

	/* Stateids: chunks of slots (nfs4/state/slots.h). */
	uint64_t **chunks;
	uint32_t nchunks;
	uint32_t free_first, free_last;

	/* By {kind, owner's name} and by {owner, file}; sizes are powers of two. */
	struct nfs4_owner **owner_hash;
	struct nfs4_state **state_hash;
	uint32_t owner_buckets, state_buckets;

	/* Owners without state: kept for replays (minor version 0), oldest first. */
	TAILQ_HEAD(nfs4_idle_owners, nfs4_owner) idle;
	uint32_t nidle;
	/* Open-owners whose OPEN has not been confirmed (minor version 0), oldest first. */
	TAILQ_HEAD(nfs4_unconfirmed_owners, nfs4_owner) unconfirmed;
	TAILQ_HEAD(nfs4_client_states, nfs4_state) states; /* opens and locks in the tables */
};

/* Allocates nothing; the client is not in any table yet. */
void nfs4_client_state_init(struct nfs4_client_state *cs);

/* Every open and lock is gone, and nothing can be added any more. Takes the client's lock by itself
 * and calls vfs/: the caller holds no lock, but a reference of cl. Idempotent. */
void nfs4_client_state_drop(struct nfs4_server *srv, struct nfs4_client *cl);

/* What is taken from a client that lives on. */
struct nfs4_revocation {
	int status;		 /* NFS4ERR_EXPIRED or NFS4ERR_ADMIN_REVOKED */
	const uint32_t *exports; /* what was opened by these; NULL: all */
	unsigned n;
};
/* These opens and their locks end. The stateids are answered the status until the client has freed
 * them by FREE_STATEID (an open's takes its locks along); in minor version 0, which has none, for a
 * lease. The number of opens. Locks as above. */
uint64_t nfs4_client_state_revoke(struct nfs4_client *cl, const struct nfs4_revocation *r);

/* Has it opens or locks (DESTROY_CLIENTID, courtesy)? Takes the client's lock. */
bool nfs4_client_has_state(struct nfs4_client *cl);
/* Are there stateids revoked so that it has not freed yet (SEQUENCE's flags)? Without a lock. */
bool nfs4_client_has_revoked(const struct nfs4_client *cl, int status);

/* About once a lease: forgets owners that are idle or unconfirmed for longer, and what has been
 * revoked for as long. Minor version 0 only.
 * Takes the client's lock; the caller holds none, but a reference. */
void nfs4_client_state_tick(struct nfs4_server *srv, struct nfs4_client *cl);

#endif

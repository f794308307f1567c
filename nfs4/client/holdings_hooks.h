/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client's holdings, its opens and locks, as the files of this folder know them: by a few calls,
 * which nfs4/state/ offers and nfs4/program.c hangs on the server. struct nfs4_holdings lies behind
 * struct nfs4_client, in the same memory.
 */
#ifndef RN_NFS4_CLIENT_HOLDINGS_HOOKS_H
#define RN_NFS4_CLIENT_HOLDINGS_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nfs4_client;
struct nfs4_holdings;

/* What is taken from a client that lives on. */
struct nfs4_revocation {
	int status;		 /* NFS4ERR_EXPIRED or NFS4ERR_ADMIN_REVOKED */
	const uint32_t *exports; /* what was opened by these; NULL: all */
	unsigned n;
};

struct nfs4_holdings_hooks {
	size_t size; /* of struct nfs4_holdings */

	/* Allocates nothing; the client is not in any table yet. The memory is zeroed. */
	void (*init)(struct nfs4_holdings *held);

	/* Every open and lock is gone, and nothing can be added any more. Takes the client's lock
	 * by itself and calls vfs/: the caller holds no lock, but a reference of cl. Idempotent. */
	void (*drop)(struct nfs4_client *cl);

	/* True if there are opens or locks. The client's lock is held. */
	bool (*busy)(const struct nfs4_holdings *held);

	/*
	 * These opens and their locks end. The stateids are answered the status until the client
	 * has freed them by FREE_STATEID (an open's takes its locks along); in minor version 0,
	 * which has none, for a lease. The number of opens. Locks as for drop.
	 */
	uint64_t (*revoke)(struct nfs4_client *cl, const struct nfs4_revocation *r);
	/* True if there are stateids revoked so that the client has not freed yet (SEQUENCE's
	 * flags). Without a lock. */
	bool (*has_revoked)(const struct nfs4_holdings *held, int status);

	/* About once a lease: forgets owners that are idle or unconfirmed for longer, and what has
	 * been revoked for as long. Minor version 0 only. Locks as for drop. */
	void (*tick)(struct nfs4_client *cl);
};

#endif

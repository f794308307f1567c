/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client's holdings, its opens, locks and delegations, as this folder sees them: a table of calls that
 * nfs4/state/ implements and nfs4/nfs4_program.c sets on the server. struct nfs4_holdings lies behind
 * struct nfs4_client, in the same allocation.
 */
#ifndef RN_NFS4_CLIENT_HOLDINGS_HOOKS_H
#define RN_NFS4_CLIENT_HOLDINGS_HOOKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nfs4_client;
struct nfs4_holdings;
struct nfs4_loss;

/* State to revoke from a client that stays registered. */
struct nfs4_revocation {
	int status;		 /* NFS4ERR_EXPIRED or NFS4ERR_ADMIN_REVOKED */
	const uint32_t *exports; /* ids of the exports whose state is revoked; NULL: all */
	unsigned n;
};

struct nfs4_holdings_hooks {
	size_t size; /* sizeof(struct nfs4_holdings) */

	/* Allocates nothing; the client is in no table yet, and its memory is zeroed. */
	void (*init)(struct nfs4_holdings *held);

	/* Ends every open, lock and delegation; none can be added any more. Takes the client's lock and calls
	 * vfs/: the caller holds a reference of cl and no lock. Idempotent. */
	void (*drop)(struct nfs4_client *cl);

	/* True if there are opens, locks or delegations. The client's lock is held. */
	bool (*busy)(const struct nfs4_holdings *held);
	/* True if there are delegations. The client's lock is held. */
	bool (*delegated)(const struct nfs4_holdings *held);

	/*
	 * Ends these opens with their locks, and delegations; returns the number of opens. Their stateids are
	 * answered with the status until the client frees them by FREE_STATEID, which for an open
	 * frees its locks too. In minor version 0, which has no FREE_STATEID, this lasts for a
	 * lease. Locks as for drop.
	 */
	uint64_t (*revoke)(struct nfs4_client *cl, const struct nfs4_revocation *r);
	/* Counts what revoke would end. Takes the client's lock. */
	void (*count)(struct nfs4_client *cl, const struct nfs4_revocation *r,
		      struct nfs4_loss *out);
	/* True if stateids revoked with that status have not been freed yet (for SEQUENCE's flags).
	 * Takes no lock. */
	bool (*has_revoked)(const struct nfs4_holdings *held, int status);

	/* Called about once a lease: frees owners that have been idle or unconfirmed for a lease,
	 * and state that was revoked a lease ago. Minor version 0 only. Locks as for drop. */
	void (*tick)(struct nfs4_client *cl);
};

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Eviction: frees memory for a client by removing clients that need theirs less. The caller holds
 * no lock, except for nfs4_client_overflow(). */
#ifndef RN_NFS4_SESSION_MAKE_ROOM_H
#define RN_NFS4_SESSION_MAKE_ROOM_H

#include "nfs4/client/client_table.h"
#include "nfs4/client/client_host.h"
#include "nfs4/state/holdings.h"

#define NFS4_EVICT_MOST 16u /* clients evicted in one call at most */

/* Takes memory for the clients of a host; evicts courtesy clients if there is not enough. */
bool nfs4_clients_take(struct nfs4_clients *all, struct nfs4_host *h, size_t bytes,
		       enum nfs4_use use);

/*
 * The oldest client of a queue, with a reference; NULL if there is none or it is younger than age.
 */
struct nfs4_client *nfs4_clients_oldest(struct nfs4_clients *all, struct nfs4_client_queue *queue,
					uint64_t age);
/* Evicts a courtesy client. NFS4_HOLDS: cl is NULL. Takes over the caller's reference. */
enum nfs4_expire nfs4_client_evict(struct nfs4_clients *all, struct nfs4_client *cl);
/* Evicts the oldest courtesy client. */
enum nfs4_expire nfs4_clients_evict(struct nfs4_clients *all);

/* Removes a client without state of the host with the largest number, if that is over mine. False:
 * no client was removed. */
bool nfs4_clients_shed(struct nfs4_clients *all, enum nfs4_measure what, size_t mine);
/* If too many clients are unconfirmed: detaches and returns the oldest of the host that has most of
 * them. all->lock is held. */
struct nfs4_client *nfs4_client_overflow(struct nfs4_clients *all);

#endif

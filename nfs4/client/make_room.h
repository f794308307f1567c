/* SPDX-License-Identifier: BSD-2-Clause */
/* Room for a client where there is none left: others that need it less go. The caller holds no
 * lock, but for nfs4_client_overflow(). */
#ifndef RN_NFS4_CLIENT_MAKE_ROOM_H
#define RN_NFS4_CLIENT_MAKE_ROOM_H

#include "nfs4/client/client_table.h"
#include "nfs4/client/host.h"

#define NFS4_EVICT_MOST 16u /* that one call lets go of for the sake of another client */

/* Memory for the clients of a host; to get it, those that are only there by courtesy go. */
bool nfs4_clients_take(struct nfs4_clients *all, struct nfs4_host *h, size_t bytes,
		       enum nfs4_use use);

/* The oldest of a queue, with a reference; NULL: it is empty, or that one is younger than age. */
struct nfs4_client *nfs4_clients_oldest(struct nfs4_clients *all, struct nfs4_client_queue *queue,
					uint64_t age);
/* Lets go of one that is only there by courtesy. NFS4_HOLDS: there is none (NULL). Takes over the
 * caller's reference. */
enum nfs4_expire nfs4_client_evict(struct nfs4_clients *all, struct nfs4_client *cl);
/* The same for the one that has been there by courtesy for longest. */
enum nfs4_expire nfs4_clients_evict(struct nfs4_clients *all);

/* A client without state of the host that has most goes, if that has more than mine. False: none
 * does. */
bool nfs4_clients_shed(struct nfs4_clients *all, enum nfs4_measure what, size_t mine);
/* Too many wait to be confirmed: the oldest of the host that has most of them, detached.
 * all->lock is held. */
struct nfs4_client *nfs4_client_overflow(struct nfs4_clients *all);

#endif

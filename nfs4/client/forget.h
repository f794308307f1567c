/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a client that is in no table any more. The caller holds no lock. */
#ifndef RN_NFS4_CLIENT_FORGET_H
#define RN_NFS4_CLIENT_FORGET_H

#include "nfs4/client/client_table.h"

/* What a detached client has is dropped: sessions, opens, locks, and the reference. */
void nfs4_client_destroy(struct nfs4_client *cl); /* NULL is allowed */
/* All of a queue of them, linked by `aging`, and what would let them reclaim: a restart or another
 * owner has taken their place. */
void nfs4_clients_forget(struct nfs4_server *srv, struct nfs4_client_queue *old);
/* Forgets cl if it still has that status. Takes over the caller's reference. */
void nfs4_client_forget(struct nfs4_clients *all, struct nfs4_client *cl,
			enum nfs4_client_status status);

#endif

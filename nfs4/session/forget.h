/* SPDX-License-Identifier: BSD-2-Clause */
/* Destruction of clients that have left the tables. The caller holds no lock. */
#ifndef RN_NFS4_SESSION_FORGET_H
#define RN_NFS4_SESSION_FORGET_H

#include "nfs4/client/client_table.h"

/* Drops all that a detached client holds: sessions, opens, locks, and its reference. */
void nfs4_client_destroy(struct nfs4_client *cl); /* NULL is allowed */
/* Destroys a queue of clients, linked by `aging`, and their records on disk: a restart or another
 * owner has replaced them. */
void nfs4_clients_forget(struct nfs4_server *srv, struct nfs4_client_queue *old);
/* Removes cl if it still has that status. Takes over the caller's reference. */
void nfs4_client_forget(struct nfs4_clients *all, struct nfs4_client *cl,
			enum nfs4_client_status status);

#endif

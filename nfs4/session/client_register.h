/* SPDX-License-Identifier: BSD-2-Clause */
/* Registration of clients: SETCLIENTID, EXCHANGE_ID, and their confirmation. */
#ifndef RN_NFS4_SESSION_CLIENT_REGISTER_H
#define RN_NFS4_SESSION_CLIENT_REGISTER_H

#include "nfs4/client/client_table.h"

/* Makes an unconfirmed client, in no table, for the caller of c; NULL: no memory. */
struct nfs4_client *nfs4_client_new(struct nfs4_compound *c, const struct nfs4_client_init *init);

/* Gives cl its id and takes over the caller's reference. Returns the client that it displaces,
 * detached, or NULL. all->lock is held. */
struct nfs4_client *nfs4_client_enter(struct nfs4_clients *all, struct nfs4_client *cl);

/*
 * Confirms cl. Every other client of its owner is detached and linked into *old by `aging`.
 * NFS4_OK, or the result of nfs4_client_contest() for the confirmed one, which may have come back
 * since cl was made. all->lock is held.
 */
int nfs4_client_confirm(struct nfs4_compound *c, struct nfs4_client *cl,
			struct nfs4_client_queue *old);
/* Afterwards, without all->lock: tells the administrator. */
void nfs4_client_log_confirmed(struct nfs4_compound *c, const struct nfs4_client *cl);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends of leases; nfs4/client/nfs4_client.h has what other parts ask. */
#ifndef RN_NFS4_CLIENT_CLIENT_LEASE_H
#define RN_NFS4_CLIENT_CLIENT_LEASE_H

#include "nfs4/client/nfs4_client.h"

struct nfs4_clients;

/* True if the lease of a confirmed client has run out. */
bool nfs4_client_has_lapsed(struct nfs4_client *cl);
/* Makes the active client cl a courtesy client if its lease has run out. all->lock is held. */
bool nfs4_client_lapse(struct nfs4_clients *all, struct nfs4_client *cl);

#endif

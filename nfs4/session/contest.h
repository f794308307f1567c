/* SPDX-License-Identifier: BSD-2-Clause */
/* The right of callers to an owner string that a client has; private to this folder. */
#ifndef RN_NFS4_SESSION_CONTEST_H
#define RN_NFS4_SESSION_CONTEST_H

#include "nfs4/client/nfs4_client.h"

/*
 * Decides whether the caller may take the owner string of the confirmed client cl and end its
 * state. NFS4_OK, NFS4ERR_CLID_INUSE, or NFS4ERR_DELAY until it is known whether cl is alive.
 * all->lock is held.
 */
int nfs4_client_contest(struct nfs4_client *cl, const struct nfs4_compound *c);
/* Decides whether fresh may be registered while a client with its owner string may reclaim. NFS4_OK
 * or NFS4ERR_DELAY. all->lock is held. */
int nfs4_client_contest_record(struct nfs4_client *fresh, const struct nfs4_compound *c);

#endif

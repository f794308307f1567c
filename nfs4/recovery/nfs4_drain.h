/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exports that an administrator drains: clients keep what they have, and get nothing new. They are answered NFS4ERR_DELAY,
 * and come again. It is no grace period: reclaims go on as before, and so does what ends state.
 */
#ifndef RN_NFS4_RECOVERY_NFS4_DRAIN_H
#define RN_NFS4_RECOVERY_NFS4_DRAIN_H

#include "nfs4/place.h"
#include "nfs4/nfs4_private.h"

/* NFS4_OK, or NFS4ERR_DELAY: the place is in an export that is drained. */
int nfs4_drain_check(const struct nfs4_place *p);
/* The same for the registration of a client that the server does not know yet: all exports are drained. During grace
 * clients come back whom the server has forgotten. */
int nfs4_drain_check_client(struct nfs4_server *srv);

#endif

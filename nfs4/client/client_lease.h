/* SPDX-License-Identifier: BSD-2-Clause */
/* Leases, private to this folder; nfs4/client/nfs4_client.h has the public part. */
#ifndef RN_NFS4_CLIENT_CLIENT_LEASE_H
#define RN_NFS4_CLIENT_CLIENT_LEASE_H

#include "nfs4/client/nfs4_client.h"

/* True if the lease of a confirmed client has run out. */
bool nfs4_client_has_lapsed(struct nfs4_client *cl);
/* Deletes the record of a client that has closed everything, so that grace does not wait for it
 * after a restart. */
void nfs4_client_retire_record(struct nfs4_client *cl);
/* For nfs4_wheel_tick(): a lease timer has fired. ctx is struct nfs4_clients. */
void nfs4_lease_fire(void *ctx, struct nfs4_timer *t);

#endif

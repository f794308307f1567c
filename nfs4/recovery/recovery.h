/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * State that survives a restart of the server: records of the clients with state
 * (nfs4/recovery/client_records.h), and the grace period in which they reclaim it (nfs4/recovery/grace.h).
 * RFC 7530 section 9.6, RFC 8881 section 8.4.
 */
#ifndef RN_NFS4_RECOVERY_H
#define RN_NFS4_RECOVERY_H

#include "nfs4/nfs4_private.h"

/*
 * Sets srv->recovery from srv->cfg: reads the records, and begins the grace period if there are
 * any. 0 or -ENOMEM. Unusable records are no error: the cause is logged, and no client can reclaim.
 */
int nfs4_recovery_new(struct nfs4_server *srv);
/* Writes pending changes, and none behind that, and closes the database. False: some could not be written. The second time it does nothing. */
bool nfs4_recovery_stop(struct nfs4_server *srv);
/* Stops it. The records stay for the next start. */
void nfs4_recovery_free(struct nfs4_server *srv);
/* About once a second: may end the grace period. True: the records of this run were removed, and
 * nfs4_record_again() is to be called for each client. */
bool nfs4_recovery_tick(struct nfs4_server *srv);
/* True if client records could not be written at the last attempt. */
bool nfs4_recovery_is_failing(const struct nfs4_server *srv);

#endif

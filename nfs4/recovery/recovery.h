/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What survives a restart of the server: records of the clients that hold state
 * (nfs4/recovery/records.h), and the time after a start in which they get it back
 * (nfs4/recovery/grace.h). RFC 7530 section 9.6, RFC 8881 section 8.4.
 */
#ifndef RN_NFS4_RECOVERY_H
#define RN_NFS4_RECOVERY_H

#include "nfs4/server.h"

/*
 * Sets srv->recovery from srv->cfg: reads the records, and begins the grace period if there are
 * any. 0 or -ENOMEM. Records that cannot be used are no error: what is wrong is logged, and nobody
 * can reclaim.
 */
int nfs4_recovery_new(struct nfs4_server *srv);
/* Writes out what is under way. The records stay: a restart finds them. */
void nfs4_recovery_free(struct nfs4_server *srv);
/* About once a second: may end the grace period. */
void nfs4_recovery_tick(struct nfs4_server *srv);

#endif

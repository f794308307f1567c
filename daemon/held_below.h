/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RN_DAEMON_HELD_BELOW_H
#define RN_DAEMON_HELD_BELOW_H

#include "daemon/exports/export_set.h"

struct nfs3_server;
struct nfs4_server;

/* Counts what clients hold below exports, by client. The caller has the lock under which clients' state is ended. The
 * servers may be NULL; out is zeroed, and its list is the caller's to free. */
void held_below(struct nfs4_server *nfs4, struct nfs3_server *nfs3,
		const struct vfs_exports_lost *below, struct exports_revoked *out);

#endif

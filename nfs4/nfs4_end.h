/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of what one client holds, at the administrator's request; nfs4_forget_client ends a whole client. */
#ifndef RN_NFS4_NFS4_END_H
#define RN_NFS4_NFS4_END_H

#include "nfs4/nfs4_view.h"

/*
 * Takes a state with that id (nfs4_view_state.id) from its client. Others may have it at once; its stateid is answered
 * NFS4ERR_ADMIN_REVOKED until the client has freed it (minor version 0: for a lease), and SEQUENCE says so. An open
 * goes with its locks. Afterwards the client may not reclaim after a restart what it still holds beside it, as a client
 * that has not noticed would also reclaim this. 0, or
 * -ENOENT: there is none of that kind, or it was revoked before.
 * -RN_ESOON: its record is being written: call again in some milliseconds.
 * -EBUSY: an operation with it does not end, perhaps because of its file system.
 * Call it from one thread at a time with nfs4_revoke_exports; it may wait for the file system that closes the file.
 */
int nfs4_end_state(struct nfs4_server *s, enum nfs4_view_kind kind, uint64_t id);
/* Asks the client to return a delegation. It is revoked if the client does not within a lease. 0 or -ENOENT. */
int nfs4_recall_delegation(struct nfs4_server *s, uint64_t id);

#endif

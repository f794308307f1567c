/* SPDX-License-Identifier: BSD-2-Clause */
/* Revocation of single states: what a client held is free for others at once, and its stateid is answered with the
 * reason until the client has freed it. The caller holds a reference of the state, and no lock but as said. */
#ifndef RN_NFS4_STATE_STATE_REVOKE_H
#define RN_NFS4_STATE_STATE_REVOKE_H

#include "nfs4/state/state.h"

/* Revokes an open with its locks, or a delegation. True if it was an open that was not closed meanwhile. */
bool nfs4_revoke(struct nfs4_state *st, int status);

/* The caller holds the open's busy lock. False: it has gone, or was revoked before. */
bool nfs4_open_revoke(struct nfs4_open *open, int status);
bool nfs4_lock_revoke(struct nfs4_lock *lock, int status);

#endif

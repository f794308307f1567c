/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Conflicts with what other clients hold: shares, locks, delegations. A client whose lease has run out gives way, and others are
 * waited for. A caller makes its step in a loop, as long as nfs_await() says so.
 */
#ifndef RN_NFS_CONFLICT_H
#define RN_NFS_CONFLICT_H

#include "rpc/wait.h"
#include "vfs/file_state.h"

/* Result of a step that failed with rc because of c's holder, who is asked to give way: -RN_EYIELDED, -RN_EYIELDS,
 * or rc if the conflict remains. */
int nfs_conflict(struct vfs_conflict *c, int rc);

/*
 * True if the caller makes its step, which has failed with rc, again. -RN_EYIELDED: at once, as long as rpc_has_time(). -RN_EUNNAMED,
 * -RN_EDELEG, -RN_EYIELDS: after a wait for the name, or for the other client, as rpc_try_later does; no lock may be held.
 * False: the call has waited long enough, or rc is something else.
 */
bool nfs_await(struct rpc_request *req, int rc, uint64_t patience_ns);

#endif

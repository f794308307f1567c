/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attempts to get a lock or a share that another holder's conflicts with: repeated as long as the
 * holder gives way, as a client does whose lease has run out. And waits for what others are about to give back.
 */
#ifndef RN_NFS_ATTEMPT_H
#define RN_NFS_ATTEMPT_H

#include <limits.h>

#include "rpc/wait.h"
#include "vfs/file_state.h"

/* Result of an attempt that must be repeated; neither an -errno nor a status. */
#define NFS_TRY_AGAIN INT_MIN

/* Calls attempt(arg) as long as it returns NFS_TRY_AGAIN, within reason; returns its last result. */
int nfs_attempt(int (*attempt)(void *arg), void *arg);

/* Result of an attempt that failed with rc because of c's holder: NFS_TRY_AGAIN if the holder has
 * given way or begun to, -RN_EYIELDS if all in the way will soon have, rc if it does not. */
int nfs_conflict(struct vfs_conflict *c, int rc);

/* In a call that holds no lock: waits, as rpc_try_later does, until the name or the delegation or lock of another client may be out of the
 * way for which a step has failed with rc (-RN_EUNNAMED, -RN_EDELEG, -RN_EYIELDS). True: the caller makes its step again. False: it has
 * waited long enough, or rc is something else. */
bool nfs_await(struct rpc_request *req, int rc, uint64_t patience_ns);

#endif

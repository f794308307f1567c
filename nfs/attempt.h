/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attempts to get a lock or a share that another holder's conflicts with: repeated as long as the
 * holder gives way, as a client does whose lease has run out.
 */
#ifndef RN_NFS_ATTEMPT_H
#define RN_NFS_ATTEMPT_H

#include <limits.h>

#include "vfs/file_state.h"

/* Result of an attempt that must be repeated; neither an -errno nor a status. */
#define NFS_TRY_AGAIN INT_MIN

/* Calls attempt(arg) as long as it returns NFS_TRY_AGAIN, within reason; returns its last result. */
int nfs_attempt(int (*attempt)(void *arg), void *arg);

/* Result of an attempt that failed with rc because of c's holder: NFS_TRY_AGAIN if the holder has
 * given way or begun to, -RN_EYIELDS if all in the way will soon have, rc if it does not. */
int nfs_conflict(struct vfs_conflict *c, int rc);

#endif

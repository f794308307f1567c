/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attempts at what a lock or a share of somebody else is in the way of: each is made again as long
 * as the holder gives way, as a client does whose lease has run out.
 */
#ifndef RN_NFS_ATTEMPT_H
#define RN_NFS_ATTEMPT_H

#include <limits.h>

#include "vfs/file_state.h"

/* Result of an attempt that is to be made again; neither an -errno nor a status. */
#define NFS_TRY_AGAIN INT_MIN

/* Calls attempt(arg) until its result is another than NFS_TRY_AGAIN, at most `most` times. Its last
 * result. */
int nfs_attempt(int (*attempt)(void *arg), void *arg, unsigned most);

/* The result of an attempt that failed with rc because of c's holder: NFS_TRY_AGAIN if it has given
 * way, -EAGAIN if it is about to, rc if it stays. */
int nfs_conflict(struct vfs_conflict *c, int rc);

#endif

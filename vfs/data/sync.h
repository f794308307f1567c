/* SPDX-License-Identifier: BSD-2-Clause */
/* Steps that sync.c and group.c share. */
#ifndef RN_VFS_SYNC_H
#define RN_VFS_SYNC_H

#include "vfs/node/node.h"
#include "vfs/worker/worker_state.h"

/* True if node[i] has changes that are to become durable. */
bool vfs_sync_wanted(const struct vfs_sync *s, unsigned i);
/* Makes the changes of each node durable by itself. */
void vfs_sync_each(struct vfs_sync *s);
/* Records how the fsync that node[i] waited for has ended. */
void vfs_sync_seen(struct vfs_sync *s, unsigned i, int res);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Before a node with uncommitted data can be closed, it is flushed: fsync of the whole file, whose
 * failure changes the write verifier. That has a thread and a ring of its own, so that no worker
 * and no timer waits for a disk; the node stays open until it is done. Without the thread (a test,
 * or the end of the daemon) whoever closes waits.
 *
 * Lock order: vfs_flusher.lock is a leaf.
 */
#ifndef RN_VFS_FLUSH_H
#define RN_VFS_FLUSH_H

#include <stdbool.h>

struct vfs_flusher;
struct vfs_node;

struct vfs_flusher *vfs_flusher_new(void);     /* NULL: no memory */
void vfs_flusher_free(struct vfs_flusher *fl); /* NULL is allowed */

/* The hook of nodes: vfs/node/hooks.h. */
bool vfs_flush(struct vfs_node *n);

#endif

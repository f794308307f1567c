/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Group commit. Changes of metadata that wait at a worker for the same file system share one fsync,
 * where the file system has one log (vfs/fs/file_system.h). The rule: a flush covers the changes that were
 * made before it was started. One that is under way covers no change that comes later; such a change
 * waits for the next flush. Flushes that wait in the kernel, of several workers too, are joined by
 * it: it commits its journal once for all who wait.
 *
 * A group of changes is flushed by the inode that all of them are about, else by one that is
 * changed last of all (vfs_log_last).
 */
#ifndef RN_VFS_GROUP_H
#define RN_VFS_GROUP_H

#include "vfs/io.h"

/* True if the sync is one of metadata only, on a file system with one log. */
bool vfs_group_takes(const struct vfs_sync *s);
/* Starts it; it ends as vfs_sync says. */
void vfs_group_add(struct vfs_sync *s);

/* True if the worker may itself wait for the disk with the node's file system: it has nothing else
 * under way, and flushes there usually end soon. */
bool vfs_group_may_wait(const struct vfs_worker *w, const struct vfs_node *n);
/* Such a wait took so many nanoseconds. */
void vfs_group_waited(struct vfs_worker *w, const struct vfs_node *n, uint64_t ns);

#endif

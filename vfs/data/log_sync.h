/* SPDX-License-Identifier: BSD-2-Clause */
/* Durability of inodes that cannot be synced through a descriptor of their own. */
#ifndef RN_VFS_LOG_SYNC_H
#define RN_VFS_LOG_SYNC_H

#include "vfs/vfs.h"

struct vfs_mount;

/* A new file without a name, the last thing that the log of a file system with one log
 * (vfs/fs/file_system.h) has: an fsync of it covers all earlier changes of metadata. To be closed by
 * vfs_fd_close. -1: the file system takes none now (full, read-only, a file is exported), or has
 * more than one log. */
int vfs_log_last(struct vfs_ctx *ctx, const struct vfs_mount *mnt);

/*
 * Makes all changes of inodes and directories durable that were made on the mount's file system
 * before the call; with data, the data of all files, too. 0: done, or begun: *fd (-1: none) is a
 * descriptor that is left to fsync and to close by vfs_fd_close. It needs no descriptor where there
 * is none to be had. May wait for the disk.
 */
int vfs_log_sync(struct vfs_ctx *ctx, const struct vfs_mount *mnt, bool data, int *fd);

#endif

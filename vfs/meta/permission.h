/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Permission checks of operations, beside vfs_may_read and vfs_may_write (vfs/vfs.h). The thread
 * may be the caller afterwards, or root: switch to what the next step needs.
 */
#ifndef RN_VFS_PERMISSION_H
#define RN_VFS_PERMISSION_H

#include "vfs/io.h"

struct statx;

/* vfs_may_read and vfs_may_write for an operation on data, which may be on a file that was opened
 * before. */
/* Sets io->attr if it looks at them. */
int vfs_io_may_read(struct vfs_io *io);
int vfs_io_may_write(const struct vfs_io *io);
/* -EPERM if the file is immutable or for appending only (chattr(1)), else 0. The kernel asks that when a file is
 * opened, and not all file systems ask again: descriptors that are kept for later calls must not outlast it.
 * Whoever changes data asks before each change. */
int vfs_check_unsealed(const struct statx *sx);

/* True if gid is the credential's group or one of its supplementary groups. */
bool vfs_cred_has_group(const struct vfs_cred *cred, uint32_t gid);

/* faccessat2 of R_OK, W_OK, X_OK under the caller's identity; 0 or -errno. A prompt worker decides by
 * the mode and asks as root for what does not depend on the caller: a read-only file system, an
 * immutable file. */
int vfs_access_check(struct vfs_ctx *ctx, struct vfs_node *n, int amode);

#endif

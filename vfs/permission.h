/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * May the caller read or write a file's data? NFSv3 has no open, so a file's owner may whatever the
 * mode says (RFC 1813 section 4.4), and who may execute a file may read it; otherwise the kernel
 * decides under the caller's identity, ACLs included.
 */
#ifndef RN_VFS_PERMISSION_H
#define RN_VFS_PERMISSION_H

#include "vfs/io.h"
#include "vfs/node/node.h"

/* 0; -EISDIR, -EINVAL: not a regular file; -EACCES, -EROFS, -EPERM; -ESTALE: the last link is gone.
 * The thread may be the caller afterwards, or root: switch to what the next step needs. */
int vfs_may_read(struct vfs_ctx *ctx, struct vfs_node *n);
int vfs_may_write(struct vfs_ctx *ctx, struct vfs_node *n);
/* The same for an operation on data, which may be on a file that was opened before. */
int vfs_io_may_read(const struct vfs_io *io);
int vfs_io_may_write(const struct vfs_io *io);

/* faccessat2 of R_OK, W_OK, X_OK under the caller's identity; 0 or -errno. */
int vfs_access_check(struct vfs_ctx *ctx, struct vfs_node *n, int amode);

#endif

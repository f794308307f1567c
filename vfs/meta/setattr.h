/* SPDX-License-Identifier: BSD-2-Clause */
/* Setting attributes, also of what was just made. */
#ifndef RN_VFS_SETATTR_H
#define RN_VFS_SETATTR_H

#include "vfs/node/node.h"

#define VFS_MODE_BITS 07777u

/* Values that no file system takes: -EINVAL, -EFBIG. */
int vfs_setattr_check(const struct vfs_setattr *sa);

/* Applies sa to a file that the caller has just created, the mode excepted, which it was created
 * with. Ids are set for root only, as others would only be told that the file is theirs. Does
 * nothing to what sa does not name. */
int vfs_setattr_created(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_setattr *sa);

/* Sets the size of an existing file that the caller may write. */
int vfs_set_size(struct vfs_ctx *ctx, struct vfs_node *n, uint64_t size);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* News of a directory's attributes, for those who have its delegation (vfs/hold/deleg_table.h). */
#ifndef RN_VFS_DIR_NEWS_H
#define RN_VFS_DIR_NEWS_H

#include "vfs/node/node.h"

/* Attributes of n have changed, between vfs_dir_attrs_begin and the end of that change. Nothing for what is no
 * directory. */
void vfs_dir_tell_attrs(struct vfs_ctx *ctx, struct vfs_node *n);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Permission by owner, groups and mode, without becoming the caller. */
#ifndef RN_VFS_MODE_CHECK_H
#define RN_VFS_MODE_CHECK_H

#include "vfs/vfs.h"

/*
 * *rc: 0 if the mode grants R_OK, W_OK and X_OK as far as asked, else -EACCES, by the rules of
 * path_resolution(7); or -errno. For root always 0. The owner's rights are in the mode whatever the ACL. False: an ACL may say
 * otherwise.
 */
bool vfs_mode_check(const struct vfs_ctx *ctx, struct vfs_node *n, int amode, int *rc);

#endif

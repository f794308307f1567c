/* SPDX-License-Identifier: BSD-2-Clause */
/* Mounts of files that are shown to administrators. */
#ifndef RN_VFS_PATH_MOUNT_H
#define RN_VFS_PATH_MOUNT_H

#include "vfs/export/mounts.h"

/* The mount of exp that a handle names, with a reference. NULL: there is none, or another thread searches for one. */
struct vfs_mount *vfs_view_mount(struct vfs_export *exp, const struct vfs_fh *fh);

#endif

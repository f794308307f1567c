/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes out of what statx shows. */
#ifndef RN_VFS_ATTR_H
#define RN_VFS_ATTR_H

#include <stdint.h>

#include "vfs/types.h"

struct statx;
struct vfs_look;
struct vfs_mount;

/* clock: vfs_change_clock(vfs_changes_of()), from before the statx. */
void vfs_attr_from_statx(const struct vfs_mount *mnt, const struct vfs_fh *fh,
			 const struct statx *sx, int64_t clock, struct vfs_attr *out);
/* The same with what was known before the statx (vfs/fs/change.h). */
void vfs_attr_from_look(const struct vfs_mount *mnt, const struct vfs_fh *fh,
			const struct statx *sx, const struct vfs_look *look, struct vfs_attr *out);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes of a directory's entries, and the delegations of the directory (vfs/deleg.h). */
#ifndef RN_VFS_ENTRY_CHANGE_H
#define RN_VFS_ENTRY_CHANGE_H

#include "vfs/io.h"
#include "vfs/names/name.h"

enum vfs_entry {
	VFS_ENTRY_NEW,	 /* it is made: there must be none yet */
	VFS_ENTRY_THERE, /* it is taken away */
	VFS_ENTRY_ANY,	 /* it is made, or replaced */
};

/*
 * Begins the change of an entry, which vfs_file_change_end ends. 0, or nothing has begun:
 * -VFS_EDELEG; or, if others have delegations of the directory and the change would fail anyway, so
 * that they need not be asked to return them: -EEXIST, -ENOENT, -EACCES and the like. The thread acts
 * as the caller before, and may be root afterwards.
 */
int vfs_entry_change_begin(struct vfs_ctx *ctx, struct vfs_node *dir, const struct vfs_name *name,
			   enum vfs_entry entry, struct vfs_file_change *out);

#endif

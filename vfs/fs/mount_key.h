/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The key of the MACs of a mount's handles: a hash, under the server's secret, of the export's id
 * and of what the mount's root is: the identity of its file system (vfs/fs/fs_id.h) and the root's
 * own handle of the kernel. A submount's key is made of its export's in the same way.
 */
#ifndef RN_VFS_MOUNT_KEY_H
#define RN_VFS_MOUNT_KEY_H

#include "vfs/fs/fs_id.h"
#include "vfs/fs/handle.h"

/* above: the key that it is derived from, the server's secret or the export's key; id: the export's
 * or the submount's. */
void vfs_mount_key(const uint8_t above[VFS_HANDLE_KEY_LEN], uint32_t id, const struct vfs_fs_id *fs,
		   const struct vfs_handle *root, uint8_t key[VFS_HANDLE_KEY_LEN]);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kernel handles that are made of the inode's number and generation: those of ext4, XFS and btrfs.
 * Such a handle follows from the inode, whatever its name is.
 */
#ifndef RN_VFS_INODE_HANDLE_H
#define RN_VFS_INODE_HANDLE_H

#include "vfs/fs/handle.h"

struct vfs_inode_handle {
	uint64_t ino;
	uint32_t volume; /* btrfs: id of the subvolume; others: 0 */
	uint32_t generation;
	int32_t type; /* the kernel's type of the handle */
};

/* True if the handles of fd's file system are made so. Others use the same types for other
 * contents. */
bool vfs_handles_by_inode(int fd);

/* The parts of a handle of such a file system. False: the handle has another layout, or parts that
 * do not fit. */
bool vfs_handle_split(const struct vfs_handle *h, struct vfs_inode_handle *out);
/* The inverse: sets type, len and bytes of out as the kernel would. */
void vfs_handle_join(const struct vfs_inode_handle *in, struct vfs_handle *out);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one descriptor of a file that clients have open or locked: it keeps the inode when the last
 * link goes (vfs/hold/unlinked.h), and carries the mirror of its locks (vfs/hold/lock_mirror.h). It
 * is counted in the budget of descriptors, which must remain one for nodes: precautions may have a
 * quarter of it, what is needed half.
 */
#ifndef RN_VFS_FILE_FD_H
#define RN_VFS_FILE_FD_H

#include "vfs/hold/file.h"

#define VFS_PART_LOCKS 2u
#define VFS_PART_PRECAUTION 4u

/* True if one more file may hold a descriptor, out of 1/part of the budget. */
bool vfs_file_may_hold(struct vfs *vfs, unsigned part);
/* Under f->lock: gives fd (counted, from vfs_fd_openat) to the file, and returns the file's former
 * one for the caller to close, or -1. */
int vfs_file_hold(struct vfs_file *f, enum vfs_held held, int fd);
/* Under f->lock: takes the descriptor away if it is no longer needed, for the caller to close; -1:
 * none. */
int vfs_file_release(struct vfs_file *f);

#endif

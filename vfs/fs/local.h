/* SPDX-License-Identifier: BSD-2-Clause */
/* File systems that only this machine changes. */
#ifndef RN_VFS_LOCAL_H
#define RN_VFS_LOCAL_H

#include <stdbool.h>

/* True if fd (O_PATH will do) lies on a file system of this machine's own: ext4, XFS, btrfs, F2FS or
 * tmpfs. False for others, and if the kernel does not say. */
bool vfs_fs_is_local(int fd);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* How file systems keep their metadata through a power failure. */
#ifndef RN_VFS_LOG_H
#define RN_VFS_LOG_H

#include <stdbool.h>

/*
 * True if all changes of metadata on fd's file system go into one log that is written in their
 * order. An fsync of an inode then covers everything that was changed before that inode's last
 * change: ext4 with a journal, XFS. The thread must be root; where it cannot find out, false.
 */
bool vfs_has_one_log(int fd);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* How file systems keep their metadata through a power failure. */
#ifndef RN_VFS_FS_FS_LOG_H
#define RN_VFS_FS_FS_LOG_H

#include <stdbool.h>

/*
 * True if all changes of metadata on fd's file system go into one log that is written in their
 * order. An fsync of an inode then covers everything that was changed before that inode's last
 * change: ext4 with a journal, XFS. The thread must be root; where it cannot find out, false.
 */
bool vfs_has_one_log(int fd);
/*
 * True if a file that was made without a name (O_TMPFILE) and then linked is there after a power failure once it was synced: XFS, btrfs,
 * tmpfs, and ext4 without fast commits, whose records leave out that such a file was made. The thread must be root; where it cannot
 * find out, false.
 */
bool vfs_keeps_linked(int fd);

#endif

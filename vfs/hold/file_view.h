/* SPDX-License-Identifier: BSD-2-Clause */
/* Shares and locks of a file, for vfs/view.h. */
#ifndef RN_VFS_FILE_VIEW_H
#define RN_VFS_FILE_VIEW_H

#include "vfs/view.h"

/* Calls each(arg, fd) with the descriptor that clients' state keeps of f, under its lock. Nothing happens if there is
 * none, or the lock is not had soon. */
void vfs_view_file_fd(struct vfs_file *f, void (*each)(void *arg, int fd), void *arg);

#endif

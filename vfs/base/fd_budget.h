/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening and closing on the budget of descriptors (vfs_config.max_fds). The budget is kept by
 * evicting an unreferenced node (vfs.evict) before a descriptor is opened; it is exceeded only by
 * what requests in flight hold at this moment, up to max_fds_most.
 */
#ifndef RN_VFS_FD_BUDGET_H
#define RN_VFS_FD_BUDGET_H

#include <sys/types.h>

struct vfs;
struct vfs_handle;

/* openat(2) on the budget: evicts first when the budget is used up, and again as long as the
 * process or the system is out of descriptors; -EAGAIN when even that did not help. The descriptor
 * or -errno. */
int vfs_fd_openat(struct vfs *vfs, int dirfd, const char *path, int flags, mode_t mode);
/* Opens fd's file again with other flags, whatever became of its name. */
int vfs_fd_reopen(struct vfs *vfs, int fd, int flags);
/* The same to read or write a regular file, or to read a directory. Never waits for a local process
 * that has a lease (fcntl(2), F_SETLEASE): the kernel asks for it back, and the answer is
 * -VFS_ELEASE until it is given up or lease-break-time is over. */
int vfs_fd_reopen_data(struct vfs *vfs, int fd, int flags);
/* A second descriptor of what fd has open; -EAGAIN without trying hard: there are none left. */
int vfs_fd_dup(struct vfs *vfs, int fd);
int vfs_fd_open_handle(struct vfs *vfs, int mount_fd, const struct vfs_handle *h);
void vfs_fd_close(struct vfs *vfs, int fd); /* negative: nothing */

#endif

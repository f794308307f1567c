/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening and closing on the budget of descriptors (vfs_config.max_fds). The budget is kept by
 * evicting an unreferenced node (vfs.evict) before a descriptor is opened; it is exceeded only by
 * what requests in flight hold at this moment, up to max_fds_most.
 */
#ifndef RN_VFS_FD_BUDGET_H
#define RN_VFS_FD_BUDGET_H

#include <stdbool.h>
#include <sys/types.h>

struct vfs;
struct vfs_handle;

/*
 * openat(2) on the budget. Evicts first when the budget is used up, and again as long as the
 * process or the system is out of descriptors; -RN_EFULL if even that does not help. The descriptor
 * or -errno.
 */
int vfs_fd_openat(struct vfs *vfs, int dirfd, const char *path, int flags, mode_t mode);
/* Opens fd's file again with other flags; its name does not matter. */
int vfs_fd_reopen(struct vfs *vfs, int fd, int flags);
/*
 * As above, to read or write a regular file, or to read a directory. Never waits for a local
 * process that has a lease (fcntl(2), F_SETLEASE): the kernel asks for it back, and the result is
 * -RN_ELEASE until it is given up or lease-break-time is over.
 */
int vfs_fd_reopen_data(struct vfs *vfs, int fd, int flags);
/* True if the budget has room for a descriptor without an eviction. */
bool vfs_fd_has_room(const struct vfs *vfs);
/* A second descriptor of fd's open file; -RN_EFULL at once if there are none left. */
int vfs_fd_dup(struct vfs *vfs, int fd);
int vfs_fd_open_handle(struct vfs *vfs, int mount_fd, const struct vfs_handle *h);
/* Takes open descriptors out of the budget, which has others for their use; a negative number gives them back. */
void vfs_fd_set_aside(struct vfs *vfs, int n);
void vfs_fd_close(struct vfs *vfs, int fd); /* negative: nothing */

#endif

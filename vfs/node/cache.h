/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The node cache from inside vfs/: finding and making nodes, and the budget of descriptors. The
 * budget (vfs_config.max_fds) is kept by evicting unreferenced nodes before a descriptor is opened;
 * it is exceeded only by what requests in flight hold at this moment, up to max_fds_most.
 */
#ifndef RN_VFS_CACHE_H
#define RN_VFS_CACHE_H

#include "vfs/node/node.h"

/* A reference of the node with that handle, or NULL. */
struct vfs_node *vfs_cache_find(struct vfs *vfs, struct vfs_mount *mnt, const struct vfs_fh *fh);

/* What a new node is made of; path_fd is counted already and is the cache's from here on. */
struct vfs_node_parts {
	struct vfs_export *exp;
	struct vfs_mount *mnt;
	const struct vfs_fh *fh;
	uint32_t type;
	uint64_t dev, ino;
	bool unlinked; /* has no link, and is open */
	int path_fd;
};
/* A reference of the node of these parts: the one in the cache if there is one by now (path_fd is
 * closed then), or a new one. -ENOMEM: path_fd is closed too. */
int vfs_cache_add(struct vfs *vfs, const struct vfs_node_parts *parts, struct vfs_node **out);

/* Frees one unreferenced node, an old one. false: all are in use. */
bool vfs_cache_evict(struct vfs *vfs);
/* Closes every unreferenced node that was last used before (in vfs_now() seconds) and has no
 * uncommitted data. */
void vfs_cache_close_idle(struct vfs *vfs, int64_t before);
/* Has those that have such data flushed, so that they can be closed. */
void vfs_cache_flush_idle(struct vfs *vfs, int64_t before);
/* Nodes without a reference. */
uint64_t vfs_cache_idle(struct vfs *vfs);
/* Takes every node of an export out of the cache; those in use go with their last reference. */
void vfs_cache_drop_export(struct vfs *vfs, uint32_t export_id);

/* The same for a mount that is not where it was. */
void vfs_cache_drop_mount(struct vfs *vfs, const struct vfs_mount *mnt);

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
struct vfs_handle;
int vfs_fd_open_handle(struct vfs *vfs, int mount_fd, const struct vfs_handle *h);
void vfs_fd_close(struct vfs *vfs, int fd); /* negative: nothing */

/* "/proc/self/fd/N": for calls that take no descriptor of an O_PATH file. */
struct vfs_proc_path {
	char s[32];
};
struct vfs_proc_path vfs_proc_path(int fd);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The node cache from inside vfs/: finding and making nodes, and closing those that nobody uses. */
#ifndef RN_VFS_CACHE_H
#define RN_VFS_CACHE_H

#include "vfs/node/node.h"

struct vfs_cache *vfs_cache_new(void);	  /* NULL: no memory */
void vfs_cache_free(struct vfs_cache *c); /* NULL is allowed */

/* A reference of the node with that handle, or NULL. */
struct vfs_node *vfs_cache_find(struct vfs *vfs, struct vfs_mount *mnt, const struct vfs_fh *fh);

/* Calls peek(arg, fd) with the O_PATH descriptor of the node with that handle, if there is one, under a lock of the
 * cache: peek may read what the kernel has in memory, and nothing more. The node is used no more than before. */
void vfs_cache_peek_fd(struct vfs *vfs, const struct vfs_mount *mnt, const struct vfs_fh *fh,
		       void (*peek)(void *arg, int fd), void *arg);

/* The parts of a new node; path_fd is counted already, and the cache owns it from here on. */
struct vfs_node_parts {
	struct vfs_export *exp;
	struct vfs_mount *mnt;
	const struct vfs_fh *fh;
	uint32_t type;
	uint64_t dev, ino;
	enum vfs_link_state link; /* vfs/hold/unlinked.h */
	int path_fd;
};
/* A reference of the node of these parts: the one in the cache if there is one by now (path_fd is
 * closed then), or a new one. -ENOMEM: path_fd is closed too. */
int vfs_cache_add(struct vfs *vfs, const struct vfs_node_parts *parts, struct vfs_node **out);

/* Frees one unreferenced node, an old one. false: all are in use. */
bool vfs_cache_evict(struct vfs *vfs);
/* Closes every unreferenced node that was last used before (in rn_now_coarse_seconds() seconds) and
 * has no uncommitted data. */
void vfs_cache_close_idle(struct vfs *vfs, int64_t before);
/* Starts to flush such nodes that have uncommitted data, so that they can be closed. */
void vfs_cache_flush_idle(struct vfs *vfs, int64_t before);
/* Closes the node's data descriptors of those kinds (bits: 1u << enum vfs_fd_kind), if nobody but the
 * caller uses the node, and all that was written by it is on disk. */
void vfs_cache_close_data(struct vfs_node *n, unsigned kinds);
/* Like vfs_cache_close_data(), for descriptors to write by. */
void vfs_cache_close_written(struct vfs_node *n);
/*
 * Called about once a second, by a thread that may wait for a disk: lets regular files go that a local process has removed, so that
 * their space is free, and closes descriptors for writing that nobody has used for two seconds, so that the server can run a program that
 * was stored. An NFSv3 client never says that it has closed a file, nor one whose lease has ended. Descriptors stay while
 * data are not on disk, or a client has the file open to write. Bounded: in a cache of very many nodes the oldest come first.
 */
void vfs_cache_sweep(struct vfs *vfs);
/* Fills the numbers of nodes and of what was found. */
void vfs_cache_stats(struct vfs *vfs, struct vfs_stats *out);
/* Takes every node of an export out of the cache; those in use go with their last reference. */
void vfs_cache_drop_export(struct vfs *vfs, uint32_t export_id);

/* Like vfs_cache_drop_export(), for a mount that was moved or unmounted. */
void vfs_cache_drop_mount(struct vfs *vfs, const struct vfs_mount *mnt);

#endif

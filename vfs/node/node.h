/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes: one per {mount of an export, file handle} that is in use or cached. A node holds an O_PATH
 * descriptor, and on demand descriptors for data. All of them stay open as long as anybody holds a
 * reference of the node: eviction and idle closing touch unreferenced nodes only. A node of a
 * removed file is doomed: out of the cache at once, gone with its last reference. Nothing that may
 * change is remembered here, attributes least of all.
 */
#ifndef RN_VFS_NODE_H
#define RN_VFS_NODE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "vfs/node/uncommitted.h"
#include "vfs/vfs.h"

struct vfs_mount;
struct vfs_dir_stream;

/* Kinds of data descriptors. A WRITE descriptor is O_RDWR. */
enum vfs_fd_kind {
	VFS_FD_READ,
	VFS_FD_WRITE,
	VFS_FD_READ_DIRECT,
	VFS_FD_WRITE_DIRECT,
	VFS_FD_WITNESS, /* to read; never read from or synced: vfs/node/uncommitted.h */
	VFS_FD_KINDS,
};

struct vfs_node {
	struct vfs *vfs;
	struct vfs_export *exp; /* one reference */
	struct vfs_mount *mnt;	/* one reference */
	struct vfs_fh fh;
	uint64_t hash;
	uint32_t type;	       /* S_IFMT bits: an inode never changes them */
	uint64_t dev, ino;     /* the kernel's, of this boot */
	int path_fd;	       /* O_PATH */
	_Atomic bool unlinked; /* has no link, and was spared because it is open */

	pthread_mutex_t open_lock;	   /* guards the opening of data_fd, and streams */
	_Atomic int data_fd[VFS_FD_KINDS]; /* -1: not open */
	struct vfs_dir_stream *streams;	   /* idle ones of a directory */
	struct vfs_uncommitted uncommitted;

	/* Guarded by the shard's lock. */
	unsigned refs;
	bool hashed;	 /* in the cache; a doomed node is not */
	bool doomed;	 /* the file is gone, and what was written to it */
	int64_t used_at; /* vfs_now() at the last put */
	LIST_ENTRY(vfs_node) bucket_link;
	TAILQ_ENTRY(vfs_node) lru_link;
};

/* The file was changed through us: after the change, before it is acknowledged (vfs/fs/change.h). */
void vfs_node_changed(struct vfs_node *n);

/* Takes the node out of the cache: the file is gone. The caller's reference stays. */
void vfs_node_doom(struct vfs_node *n);

/*
 * The cached data descriptor of that kind, opened as root through /proc/self/fd when it is asked
 * for first (the thread is root afterwards). It is valid as long as the caller holds its reference
 * of the node; nobody but the node closes it. No permission is checked here: see vfs/meta/permission.h.
 * Regular files, and directories for VFS_FD_READ (fsync of entries); others -EINVAL. A file system
 * without O_DIRECT: -EINVAL for the DIRECT kinds of a regular file too. Returns the descriptor or
 * -errno; never -EMFILE or -ENFILE. -EAGAIN: there are none left, or a local process is being asked
 * to give up its lease of the file, and the client may come again.
 */
int vfs_node_fd(struct vfs_ctx *ctx, struct vfs_node *n, enum vfs_fd_kind kind);

#endif

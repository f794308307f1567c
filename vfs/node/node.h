/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Nodes: one per {mount of an export, file handle} that is in use or cached. A node holds an O_PATH
 * descriptor, and on demand descriptors for data. All of them stay open as long as anybody holds a
 * reference of the node: eviction and idle closing touch unreferenced nodes only. Nothing that may
 * change is remembered here, attributes least of all, but two states: enum vfs_link_state and enum
 * vfs_data_state.
 */
#ifndef RN_VFS_NODE_H
#define RN_VFS_NODE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "vfs/vfs.h"

struct statx;
struct vfs_dir_stream;
struct vfs_mount;
struct vfs_sharer;

/* Kinds of data descriptors. A WRITE descriptor is O_RDWR. */
enum vfs_fd_kind {
	VFS_FD_READ,
	VFS_FD_WRITE,
	VFS_FD_READ_DIRECT,
	VFS_FD_WRITE_DIRECT,
	VFS_FD_ERRORS, /* to read; never read from or synced: vfs/node/uncommitted.h */
	VFS_FD_KINDS,
};

/* A node's file and its last link; vfs/hold/unlinked.h describes the transitions. */
enum vfs_link_state {
	VFS_LINKED,	   /* the file has a link, or it was not seen yet that it has none */
	VFS_UNLINKED_OPEN, /* no link, and spared as a client has it open */
	VFS_GONE,	   /* the file is gone, and what was written to it */
};

/* A node's data and the disk; vfs/node/uncommitted.h describes the transitions. */
enum vfs_data_state {
	VFS_COMMITTED,	 /* all that was acknowledged is on disk, as far as anybody knows */
	VFS_WRITING,	 /* unstable writes are under way */
	VFS_UNCOMMITTED, /* some were acknowledged that no fsync has covered */
};

#define VFS_BUFFERED (1u << 31)

struct vfs_uncommitted {
	pthread_mutex_t lock;
	unsigned writing; /* unstable writes under way */
	unsigned failed;  /* losses seen so far */
	uint64_t written; /* unstable writes that were acknowledged */
	uint64_t synced;  /* of these: covered by an fsync, or lost and told */
	_Atomic enum vfs_data_state state;
	struct vfs_sharer *syncs; /* vfs/data/write.c: makes the fsync that is under way */
};

struct vfs_node {
	struct vfs *vfs;
	struct vfs_export *exp; /* one reference */
	struct vfs_mount *mnt;	/* one reference */
	struct vfs_fh fh;
	uint64_t hash;
	uint32_t type;	   /* S_IFMT bits: an inode never changes them */
	uint64_t dev, ino; /* the kernel's, of this boot */
	int path_fd;	   /* O_PATH */
	_Atomic enum vfs_link_state link;
	_Atomic bool watched; /* a directory that mnt->watch has marked */
	/* A ctime, in nanoseconds, with which the node has no ACL: setting one changes the ctime. 0: none is known. */
	_Atomic int64_t without_acl;

	pthread_mutex_t open_lock;	   /* guards the opening of data_fd, and streams */
	_Atomic int data_fd[VFS_FD_KINDS]; /* -1: not open */
	struct vfs_dir_stream *streams;	   /* idle ones of a directory */
	/* Caller (vfs_ctx.caller) whose pattern of access the data descriptors have; 0: none. */
	_Atomic uint64_t advised_by;
	struct vfs_uncommitted uncommitted;
	/* Direct writes under way, and VFS_BUFFERED once a write of a direct export was buffered. */
	_Atomic uint32_t direct;

	/* Guarded by the shard's lock. */
	unsigned refs;
	bool hashed;	 /* in the cache; a node whose file is gone is not */
	int64_t used_at; /* rn_now_coarse_seconds() at the last put */
	LIST_ENTRY(vfs_node) bucket_link;
	TAILQ_ENTRY(vfs_node) lru_link;
};

/* statx of the node: 0, or -ESTALE when its last link is gone and nobody has it open (the node is
 * doomed then). */
int vfs_node_stat(struct vfs_node *n, struct statx *out);

/* The error for -ENOENT from an operation within dir: -ESTALE if the directory itself was removed.
 */
int vfs_dir_error(struct vfs_node *dir, int error);

/* Dooms the node if its last link is gone, and puts it; NULL is allowed. For the victims of remove
 * and rename. */
void vfs_node_drop_removed(struct vfs_node *n);

/* The file was changed through us: after the change, before it is acknowledged (vfs/fs/change.h).
 */
void vfs_node_changed(struct vfs_node *n);

static inline enum vfs_link_state vfs_node_link(const struct vfs_node *n)
{
	return atomic_load_explicit(&n->link, memory_order_relaxed);
}

/* Takes the node out of the cache: the file is gone. The caller's reference stays. */
void vfs_node_doom(struct vfs_node *n);

/*
 * The cached data descriptor of that kind, opened as root through /proc/self/fd when it is asked
 * for first (the thread is root afterwards). It is valid as long as the caller holds its reference
 * of the node; nobody but the node closes it. No permission is checked here: see vfs_may_read.
 * Regular files, and directories for VFS_FD_READ (fsync of entries); others -EINVAL. A file system
 * without O_DIRECT: -EINVAL for the DIRECT kinds of a regular file too. Returns the descriptor or
 * -errno; never -EMFILE or -ENFILE. -RN_EFULL: there are none left; -RN_ELEASE.
 */
int vfs_node_fd(struct vfs_ctx *ctx, struct vfs_node *n, enum vfs_fd_kind kind);
/* To read and fsync: the WRITE descriptor, which is O_RDWR, if it is open, so that a file that was
 * written takes no second one. */
int vfs_node_readable_fd(struct vfs_ctx *ctx, struct vfs_node *n);
/* Gives the node a data descriptor that is open already; it is closed if the node has one. */
void vfs_node_adopt_fd(struct vfs_node *n, enum vfs_fd_kind kind, int fd);

/*
 * Directories and files of an export that other mounts lie over. An export without crossmnt reaches its files through a clone of the
 * mount, which shows what is beneath. Clients would write there where nobody looks for it, so nothing beneath is shown or changed.
 *
 * Which they are is looked up by the first call that has to know it after a change of the mount table: it waits for the export's own
 * file system alone, and so does nobody else.
 */

/* Checks that the caller may change the node: 0; -EROFS: not by the export's options; -EACCES: it is covered. As
 * vfs_node_is_covered() otherwise. */
int vfs_check_writable(struct vfs_ctx *ctx, const struct vfs_node *n);

/*
 * Open directory streams. A stream is a descriptor whose position is its owner's alone while it is
 * in use; between calls it waits at its node with the position it stands at, so that the reader
 * that goes on from there needs no search. Two readers of a directory have two streams.
 */

struct vfs_dir_stream {
	struct vfs_dir_stream *next;
	uint64_t pos; /* the cookie where the next read goes on */
	int fd;
};

/* A stream of the node at cookie. The thread must be root. */
int vfs_dir_stream_get(struct vfs_node *n, uint64_t cookie, struct vfs_dir_stream **out);
/* Gives it back; it stays open if the node has not too many. */
void vfs_dir_stream_put(struct vfs_node *n, struct vfs_dir_stream *s);
/* Closes the idle ones. */
void vfs_dir_streams_close(struct vfs_node *n);

#endif

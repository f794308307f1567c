/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * struct vfs_file from inside, and the table of them. A file is found and referenced under its
 * shard's lock; all that clients hold of it is under its own.
 *
 * Lock order: vfs_file.lock and vfs_file_shard.lock are leaves, never held together with each other
 * or with a lock of vfs/base/instance.h. Under vfs_file.lock the kernel's byte-range lock calls are
 * made, which on the file systems of disks only touch memory, and holders' ref.
 */
#ifndef RN_VFS_FILE_H
#define RN_VFS_FILE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "vfs/file_state.h"
#include "vfs/hold/lock_wait.h"
#include "vfs/node/node.h"
#include "vfs/hold/range.h"
#include "vfs/share.h"

#define VFS_FILE_SHARDS 64u
#define VFS_FILE_BUCKETS 1024u /* per shard */
#define VFS_MAX_LOCKS 1000000u
#define VFS_LOCK_WAIT_SECONDS 90u

/* What a file's descriptor is good for. */
enum vfs_held {
	VFS_HELD_NONE,
	VFS_HELD_PIN,  /* O_PATH: keeps the inode */
	VFS_HELD_READ, /* carries the mirror of locks; read locks only */
	VFS_HELD_WRITE /* of all locks */
};

/*
 * The kernel keeps the locks of a file in a list, and walks it for each call. So when the mirror
 * has many pieces, it is made coarser: locks are widened to the next multiples of a size. The
 * pieces are counted as far as they are known.
 */
struct vfs_grain {
	uint8_t shift; /* of the size; 0: exact */
	uint32_t pieces;
	uint32_t coarser_at; /* pieces; 0: not yet determined */
};

LIST_HEAD(vfs_share_list, vfs_share);

struct vfs_file {
	struct vfs *vfs;
	LIST_ENTRY(vfs_file) link; /* of a bucket */
	unsigned refs;		   /* under the shard's lock */
	uint64_t hash;

	pthread_mutex_t lock; /* of all below */
	struct vfs_share_list shares;
	uint32_t nshares;
	uint32_t accessing[2], denying[2]; /* shares that have the bit: read, write */
	struct vfs_ranges ranges;
	struct vfs_waiters waiters;
	enum vfs_held held;
	int fd;	     /* -1: held is NONE */
	bool unheld; /* locked, and not mirrored */
	struct vfs_grain grain;

	uint64_t dev;
	uint8_t key_len;
	uint8_t key[]; /* the kernel's handle and its type */
};

LIST_HEAD(vfs_file_list, vfs_file);

struct vfs_file_shard {
	pthread_mutex_t lock;
	struct vfs_file_list bucket[VFS_FILE_BUCKETS];
};

struct vfs_files {
	struct vfs_file_shard shard[VFS_FILE_SHARDS];
	_Atomic uint64_t files, shares, denying, locks, waiters, held, unheld;
};

struct vfs_files *vfs_files_new(void);
void vfs_files_free(struct vfs_files *files);

/* A reference of the node's file if it is in the table, or NULL. */
struct vfs_file *vfs_file_find(struct vfs_node *n);
/* Has anybody a share of the file with that handle, on that device? */
bool vfs_file_is_open(struct vfs *vfs, uint64_t dev, const struct vfs_fh *fh);
/* Has anybody a share of anything? */
bool vfs_file_any_open(struct vfs *vfs);
/* The file of n has lost its last link: true, and its inode is pinned, if somebody has it open. */
bool vfs_file_keep(struct vfs_node *n);

/* A node is about to be freed: true if its file, which is open, takes over its path_fd, which pins
 * the inode from then on. Not if the budget of precautions is used up. No lock is held. */
bool vfs_file_inherit(struct vfs_node *n);
/* Is there room in that budget? */
bool vfs_file_will_inherit(struct vfs *vfs);
/* Under f->lock: makes fd (counted, as vfs_fd_openat gives it) the file's, and returns the one that
 * it had for the caller to close, or -1. */
int vfs_file_hold(struct vfs_file *f, enum vfs_held held, int fd);
/* Under f->lock: takes the descriptor away if nothing needs it any more; to be closed by the
 * caller; -1: none. */
int vfs_file_release(struct vfs_file *f);
/* May one more file hold a descriptor: of a fraction 1/part of the budget? */
bool vfs_file_may_hold(struct vfs *vfs, unsigned part);

/* Fills c, if it is not NULL; takes the reference. Under f->lock. */
void vfs_conflict_share(struct vfs_conflict *c, const struct vfs_share *s);
void vfs_conflict_range(struct vfs_conflict *c, const struct vfs_range *r);

/* The mirror of locks: vfs/hold/lock_mirror.c. */

/* Gives the file the descriptor that a lock of that type needs, if it can; before f->lock is taken.
 * 0, or -VFS_ELEASE: it can as soon as a local process has given up its lease. */
int vfs_mirror_prepare(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_file *f,
		       enum vfs_lock_type type);
/* The others are called under f->lock. Locks span for all: 0, -VFS_EDENIED with c filled: a local
 * lock is in the way, or -ENOLCK. */
int vfs_mirror_lock(struct vfs_file *f, enum vfs_lock_type type, const struct vfs_span *span,
		    struct vfs_conflict *c);
/* Somebody gave span up: unlocks what nobody else has of it. */
void vfs_mirror_unlock(struct vfs_file *f, const struct vfs_span *span);
/* Would a local lock be in the way? fd: the file's own, or any of the same file. */
int vfs_mirror_test(int fd, enum vfs_lock_type type, const struct vfs_span *span,
		    struct vfs_conflict *c);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
* State that clients of all protocol versions have on a file: shares (vfs/share.h) and byte-range
 * locks (vfs/lock.h). A struct vfs_file is the file itself (its file system and the kernel's
 * handle), whatever the export, the mount or the name by which a client came to it. There is one
 * for each file that has shares, locks, or a reference; two references of one file are equal
 * pointers for as long as either is held.
 *
 * All functions of the three headers are thread-safe and return 0 or -errno. None of them waits for
 * another holder; each takes the file's own lock for the time of a tree operation and, for locks,
 * of the kernel's byte-range lock call.
 */
#ifndef RN_VFS_FILE_STATE_H
#define RN_VFS_FILE_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/error.h"
#include "vfs/vfs.h"

struct vfs_file;

/* The file of a node, with a reference; -ENOMEM. */
int vfs_file_get(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_file **out);
void vfs_file_ref(struct vfs_file *f);
void vfs_file_put(struct vfs_file *f); /* NULL is allowed */
/* True if f is the file of that node. Takes no lock, since each READ and WRITE with a stateid asks.
 */
bool vfs_file_is(const struct vfs_file *f, const struct vfs_node *n);

/* The holder of a share or a lock: embedded in the protocol's object (a client, an owner). vfs/
 * never looks inside; it reports the holder in conflicts. */
struct vfs_holder;
enum vfs_yield {
	VFS_HOLDS,    /* the conflict remains */
	VFS_YIELDED,  /* the holder gave way: try again */
	VFS_BEGUN,    /* the holder has begun to give way: try again, as others may be in the way */
	VFS_YIELDING, /* the holder will have given way in a moment; from vfs_conflict_yield: and so will all others in the way */
};
struct vfs_holder_ops {
	/* Takes a reference for the refused caller. Called under the file's lock: it may only
	 * count, and take no lock under which vfs/ is called. */
	void (*ref)(struct vfs_holder *h);
	void (*put)(struct vfs_holder *h); /* called without locks */
	/* Another client conflicts, of whatever protocol: gives way if its client is a courtesy client. Called
	 * without locks; NULL: never gives way. Once it has returned VFS_YIELDING, the holder gives
	 * way for good. */
	enum vfs_yield (*yield)(struct vfs_holder *h);
};
struct vfs_holder {
	const struct vfs_holder_ops *ops;
	/* True if it has begun to give way. Conflicts name it only if all holders in the way have,
	 * so that one call finds them all. */
	_Atomic bool yielding;
};
bool vfs_holder_is_yielding(const struct vfs_holder *h); /* NULL: false */

enum vfs_lock_type { VFS_LOCK_READ = 1, VFS_LOCK_WRITE = 2 };

/* The share or lock in the way. Filled on -RN_ESHARE and -RN_EDENIED only (or by vfs_lock_test).
 */
struct vfs_conflict {
	/* With a reference; NULL: a local process, or the place kept for a waiting caller */
	struct vfs_holder *holder;
	/* access and deny bits of a share */
	uint8_t access, deny;
	/* type and range of a lock */
	enum vfs_lock_type type;
	uint64_t offset, length; /* length UINT64_MAX: to the end of the file, whatever that is */
	bool kept;		 /* the range of a lock is kept for an earlier waiter */
};
/* Puts the holder's reference, if there is one. */
void vfs_conflict_put(struct vfs_conflict *c);
/* Asks the holder to give way, and puts the reference unless it keeps its hold. */
enum vfs_yield vfs_conflict_yield(struct vfs_conflict *c);

/* Counts for the daemon's counters. */
struct vfs_file_stats {
	uint64_t files, shares, locks, waiters;
	uint64_t held;	 /* descriptors that open or locked files hold */
	uint64_t unheld; /* files whose locks local processes do not see, for want of descriptors */
	uint64_t
		surplus; /* files of which the kernel has not unlocked what clients have given up */
};
void vfs_file_stats(struct vfs *vfs, struct vfs_file_stats *out);

#endif

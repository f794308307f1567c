/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles of inodes that statx(2) has just shown. A listing asks for the handle of each name, and
 * name_to_handle_at(2) costs as much as statx. On file systems whose handles are made of the
 * inode's number and generation, the cache gives the generation of an inode that it has seen
 * before, so that a name costs one system call.
 *
 * An inode is known by its number and its ctime together. A number that is used again belongs to a
 * file whose ctime is later, as ctime can be set to the present only; so does an inode whose
 * generation is changed (EXT4_IOC_SETVERSION). A handle is kept only if the ctime was over when it
 * was read: no later change can have the same ctime then, however coarse the clock of ctimes is.
 *
 * The cache holds no attributes, no names and no permissions: the caller has made statx under the
 * client's identity each time, and the answer says of which inode the handle is. A wrong handle
 * would be stale, as the kernel compares the generation when a handle is opened.
 *
 * Buckets are guarded by locks that are leaves.
 */
#ifndef RN_VFS_HANDLE_CACHE_H
#define RN_VFS_HANDLE_CACHE_H

#include "lib/budget.h"
#include "vfs/fs/handle.h"

struct vfs_handle_cache;

/* An inode as statx shows it. */
struct vfs_inode_key {
	uint64_t ino;
	int64_t ctime;	 /* nanoseconds */
	uint32_t mount;	 /* vfs_mount.serial: never used again, and not 0 */
	uint32_t volume; /* btrfs: subvolume; others: 0 */
};

/* Bytes that the cache takes of a budget of `whole` bytes, if they are there. */
size_t vfs_handle_cache_memory(size_t whole);
/* Takes a part of budget; NULL: a small table that nobody counts. NULL if there is no memory. */
struct vfs_handle_cache *vfs_handle_cache_new(struct rn_budget *budget);
void vfs_handle_cache_free(struct vfs_handle_cache *c); /* NULL is allowed */

/* Sets type, len and bytes of *out. False: the inode is not known. */
bool vfs_handle_cache_find(struct vfs_handle_cache *c, const struct vfs_inode_key *key,
			   struct vfs_handle *out);
/* Keeps the handle of the inode if it may be kept. clock: the time in nanoseconds before the handle
 * was read. */
void vfs_handle_cache_add(struct vfs_handle_cache *c, const struct vfs_inode_key *key,
			  const struct vfs_handle *h, int64_t clock);
/* Has the processor fetch what a search for the inode reads; the key's ctime is not looked at. */
void vfs_handle_cache_prefetch(const struct vfs_handle_cache *c, const struct vfs_inode_key *key);
/* Counts how often an inode was found in the cache, and how often it was not. */
void vfs_handle_cache_stats(struct vfs_handle_cache *c, uint64_t *found, uint64_t *missed);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A node with uncommitted data: acknowledged, and perhaps not yet on disk. Its descriptors stay
 * open until an fsync has covered them, since the kernel tells of a failed
 * write-back only once for each open file description, and of none after the inode has left memory.
 *
 * Several operations at a time can sync one file by one descriptor, and only one of them is told of
 * an error. So each node that is written has an error descriptor (VFS_FD_ERRORS): a description from before the first write,
 * which is never synced. When an operation ends, the error descriptor is asked, without waiting for
 * anything, under the lock below: whoever is the first to see an error changes the verifier before
 * anybody who could have missed it reads it.
 *
 * States (enum vfs_data_state), and what leads from one to the next, all of it in uncommitted.c:
 *
 *      VFS_COMMITTED    -> VFS_WRITING      vfs_uncommitted_write
 *      VFS_WRITING      -> VFS_UNCOMMITTED  vfs_uncommitted_wrote of the last write under way, if
 *                                           any since the last fsync was acknowledged
 *                       -> VFS_COMMITTED    the same, if none was
 *      VFS_UNCOMMITTED  -> VFS_WRITING      vfs_uncommitted_write
 *                       -> VFS_COMMITTED    vfs_syncing_end of an fsync that has covered all of
 *                                           them, or found them lost: then the verifier changes
 *
 * A node that is not in VFS_COMMITTED is counted in vfs.uncommitted and at its export's verifier,
 * and waits for a flush where other idle nodes wait to be closed (vfs/node/cache.c). The end of the
 * file (VFS_GONE) or of the daemon needs no flush.
 *
 * Lock order: vfs_uncommitted.lock -> vfs.verifiers_lock.
 */
#ifndef RN_VFS_UNCOMMITTED_H
#define RN_VFS_UNCOMMITTED_H

#include <stdbool.h>

#include "vfs/io.h"
#include "vfs/node/node.h"

void vfs_uncommitted_init(struct vfs_uncommitted *u);
/* Called when the node is freed. */
void vfs_uncommitted_fini(struct vfs_node *n);

/* True if the node has uncommitted data. Exact while nobody else uses it. */
bool vfs_uncommitted_any(const struct vfs_node *n);
/* True if the node must be flushed before it can be closed. Nobody misses data of a file that is
 * gone, and after the end of this run every client sends again what it has not committed. Nobody
 * else uses the node. */
bool vfs_uncommitted_must_flush(const struct vfs_node *n);
/* True if idle closing and eviction may have one more node of its export flushed: an export whose
 * disk does not answer must not take all of the flusher's threads. */
bool vfs_uncommitted_may_flush(const struct vfs_node *n);
/* True if the node has uncommitted data, or may have some: the budget of descriptors must not be
 * used up by nodes that cannot be closed. */
bool vfs_uncommitted_fits(struct vfs_node *n);

/* Around each unstable write. wrote: something was, and will be acknowledged. */
void vfs_uncommitted_write(struct vfs_node *n);
void vfs_uncommitted_wrote(struct vfs_node *n, bool wrote);

/* Around each operation that waits for a regular file's data to reach the disk. */
void vfs_syncing_begin(struct vfs_syncing *s, struct vfs_node *n, enum vfs_syncing_kind kind);
/* res: result of the operation, 0 or more, or -errno. After a failure of the disk the write verifier changes. */
void vfs_syncing_end(struct vfs_syncing *s, struct vfs_node *n, int64_t res);

/* The descriptor to write by, opened before the first write together with the error descriptor; -errno as
 * vfs_node_fd. */
int vfs_writing_fd(struct vfs_ctx *ctx, struct vfs_node *n);

/*
 * Before a node with uncommitted data can be closed, it is flushed: fsync of the whole file, whose
 * failure changes the write verifier. That has a thread and a ring of its own, so that no worker
 * and no timer waits for a disk; the node stays open until it is done. Without the thread (a test,
 * or the end of the daemon) whoever closes waits.
 *
 * Lock order: vfs_flusher.lock is a leaf.
 */

struct vfs_flusher;
struct vfs_node;

struct vfs_flusher *vfs_flusher_new(void);     /* NULL: no memory */
void vfs_flusher_free(struct vfs_flusher *fl); /* NULL is allowed */

/* Flushes the node. False: a thread does so, and puts the caller's reference afterwards;
 * true: it is done, and the reference is still the caller's. No lock is held. */
bool vfs_flush(struct vfs_node *n);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looking ahead in a listing. A worker goes through a piece of a directory from its first name on.
 * Helper threads meanwhile look at the same names by statx(2) from the last one back, so that the
 * two meet. A name is looked at by whoever comes to it first.
 *
 * - A helper has the identity of the caller while it looks, so it sees what the caller may see.
 * - A worker never waits for a helper. A name that a helper has begun and not finished is looked at
 *   by the worker, too, and a helper that hangs in a file system that does not answer keeps its
 *   piece to itself.
 * - Names are looked at after the call has come, and what was found is for this call alone.
 *
 * Helpers and pieces are few: listings that find none do without. The lock is a leaf.
 */
#ifndef RN_VFS_AHEAD_H
#define RN_VFS_AHEAD_H

#include "vfs/names/shown.h"
#include "vfs/vfs.h"

#define VFS_AHEAD_BYTES 8192u /* room for entries of getdents64(2) */

#define VFS_AHEAD_NAMES 64u /* fewer are looked at sooner than a thread is woken */

struct vfs_ahead;
struct vfs_ahead_piece;

/* NULL: no helpers, or no memory. The threads start with the first listing that is long enough. */
struct vfs_ahead *vfs_ahead_new(unsigned helpers, struct rn_budget *budget);
/* Waits for the helpers to end; NULL is allowed. */
void vfs_ahead_free(struct vfs_ahead *a);

/* A piece for a listing of dir by the caller; NULL: there is none. a may be NULL. */
struct vfs_ahead_piece *vfs_ahead_take(struct vfs_ahead *a, const struct vfs_ctx *ctx,
				       struct vfs_node *dir);
/* Memory of the piece: VFS_AHEAD_BYTES. */
char *vfs_ahead_buffer(struct vfs_ahead_piece *p);
/* Has helpers look at the first n entries of the buffer, which has so many bytes of entries. They
 * are left as they are from here on. */
void vfs_ahead_offer(struct vfs_ahead *a, struct vfs_ahead_piece *p, long bytes, unsigned n);
/* The result of a helper's look at entry i, which the worker has come to; NULL: the worker is to look itself. Valid until
 * the piece is given back. */
const struct vfs_shown *vfs_ahead_shown(struct vfs_ahead_piece *p, unsigned i);
/* Gives the piece back. Helpers leave it at their next name. */
void vfs_ahead_give(struct vfs_ahead *a, struct vfs_ahead_piece *p);

#endif

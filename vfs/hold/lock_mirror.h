/* SPDX-License-Identifier: BSD-2-Clause */
/* The mirror of clients' locks in the kernel (vfs/lock.h). */
#ifndef RN_VFS_LOCK_MIRROR_H
#define RN_VFS_LOCK_MIRROR_H

#include "vfs/hold/file.h"

/* Gives the file the descriptor that a lock of that type needs, if possible; called before f->lock
 * is taken. 0, or -RN_ELEASE: possible as soon as a local process has given up its lease. What has to be
 * opened is opened on a thread that may block. */
int vfs_mirror_prepare(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_file *f,
		       enum vfs_lock_type type);
/* The functions below are called under f->lock. Locks span for all clients: 0, -RN_EDENIED with c
 * filled: a local lock conflicts, or -ENOLCK. */
int vfs_mirror_lock(struct vfs_file *f, enum vfs_lock_type type, const struct vfs_span *span,
		    struct vfs_conflict *c);
/* Unlocks the parts of span, which an owner has given up, that no other owner has locked. */
void vfs_mirror_unlock(struct vfs_file *f, const struct vfs_span *span);
/* Tests for a local lock in the way. fd: the file's own, or any of the same file. */
int vfs_mirror_test(int fd, enum vfs_lock_type type, const struct vfs_span *span,
		    struct vfs_conflict *c);

#endif

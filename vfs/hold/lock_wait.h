/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who waits for a lock of a file by asking again and again (RFC 7530 section 9.4, RFC 8881 section
 * 9.6), in order of arrival. Clients back off: between two questions of one that waits the lock may
 * be free many times, and taken by those who ask more often. So one that has asked
 * VFS_WAIT_PATIENCE times has its range kept for it, once it is free, until it should have asked
 * again; those who have just come and would take it are refused. Before that nobody is held up for
 * its sake: a lock that lies idle until a client remembers to ask costs everybody more than the
 * order is worth.
 *
 * A waiter may have a notice (vfs/lock.h). All that have one and could have their range are told at
 * the same time, and race for it. So the range of a waiter that has been told is not kept from others
 * that wait, only from those that do not, and only for a moment. It is kept from later waiters, too, if the
 * notice says so (in_order).
 *
 * All under the file's lock. The list is bounded, as is their number altogether.
 */
#ifndef RN_VFS_LOCK_WAIT_H
#define RN_VFS_LOCK_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#define VFS_WAIT_PATIENCE 3u
#define VFS_WAITERS_MAX 64u /* waiters of one file */
#define VFS_WAITERS_TOTAL 65536u

struct vfs_conflict;
struct vfs_file;
struct vfs_lock_notice;
struct vfs_lock_request;
struct vfs_span;

/* True if the range of r is kept for an earlier waiter. Then c, if not NULL, has what that one
 * wants. */
bool vfs_wait_kept(struct vfs_file *f, const struct vfs_lock_request *r,
		   const struct vfs_span *span, struct vfs_conflict *c);
/* Records that r was refused: it is queued behind the present waiters, or keeps its place. Only if
 * r waits. */
void vfs_wait_remember(struct vfs_file *f, const struct vfs_lock_request *r,
		       const struct vfs_span *span, struct vfs_lock_notice *n);
void vfs_wait_forget(struct vfs_file *f, uint64_t waiter);
void vfs_wait_forget_all(struct vfs_file *f);
/* Locks were given up: the notices of waiters whose range is free now are due. */
void vfs_wait_freed(struct vfs_file *f);
/* The notice of one waiter is due. */
void vfs_wait_tell(struct vfs_file *f, uint64_t waiter);
/* Gives up the file's lock, and makes the calls that are due. */
void vfs_wait_unlock(struct vfs_file *f);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The locked ranges of a file, first and last byte included. Each hangs in two trees by its start:
 * that of the file (one for each type: ranges to write overlap with nothing of another owner, those
 * to read with each other only), and that of its owner, whose ranges never overlap.
 *
 * Nodes of the file's trees know of all below them the largest end, whose it is, and the largest
 * end of anybody else's. So the question "is there a range of another owner in the way?" is
 * answered in one descent, however many of the asker's own ranges lie there.
 */
#ifndef RN_VFS_RANGE_H
#define RN_VFS_RANGE_H

#include <stdint.h>

#include "vfs/lock.h"

/*
 * A balanced binary tree whose shape is that of a treap: ordered by the caller's key, a heap by
 * random priorities. The caller finds the place of an insertion itself. Where nodes sum up what is
 * below them, a function that updates them is called for each node whose children have changed, the lower ones first;
 * NULL where they do not. Nothing here allocates, recurses or locks.
 */
struct vfs_treap {
	struct vfs_treap *left, *right, *parent;
	uint32_t priority;
};

struct vfs_range {
	struct vfs_treap by_file, by_owner;
	uint64_t start, end;
	struct vfs_lock_owner *owner;
	/* In this subtree of by_file: the largest end and whose it is, and the largest end of
	 * anybody else (NULL: there is nobody else). */
	uint64_t top_end, other_end;
	const struct vfs_lock_owner *top_owner, *other_owner;
	uint8_t type;
};

struct vfs_span {
	uint64_t start, end;
};

/* Length as in the protocols: a range up to the largest offset has length UINT64_MAX. */
static inline uint64_t vfs_span_length(const struct vfs_span *s)
{
	return s->end == UINT64_MAX ? UINT64_MAX : s->end - s->start + 1;
}

/* The file's trees, by type. */
struct vfs_ranges {
	struct vfs_treap *tree[2];
	_Atomic uint32_t count; /* changed under the file's lock */
	uint64_t random;	/* state of the generator of priorities; not 0, and secret */
};

/* Adds start..end for r->owner, and counts it. */
void vfs_range_insert(struct vfs_ranges *all, struct vfs_range *r);
void vfs_range_remove(struct vfs_ranges *all, struct vfs_range *r);

/* The range with the lowest start that overlaps span, does not belong to owner (which may be NULL),
 * and conflicts with a lock of that type; or NULL. */
struct vfs_range *vfs_range_conflict(const struct vfs_ranges *all,
				     const struct vfs_lock_owner *owner, enum vfs_lock_type type,
				     const struct vfs_span *span);
/* Like vfs_range_conflict, but prefers a range whose holder does not give way (vfs_holder_is_yielding). */
struct vfs_range *vfs_range_lasting_conflict(const struct vfs_ranges *all,
					     const struct vfs_lock_owner *owner,
					     enum vfs_lock_type type, const struct vfs_span *span);

/* The owner's range with the lowest start among those that end at or after at; or NULL. */
struct vfs_range *vfs_range_own(const struct vfs_lock_owner *o, uint64_t at);
struct vfs_range *vfs_range_own_next(struct vfs_range *r);

/* The lowest start, and the highest; the file has a range. */
uint64_t vfs_range_first_start(const struct vfs_ranges *all);
uint64_t vfs_range_last_start(const struct vfs_ranges *all);

#endif

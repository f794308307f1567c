/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Advice about the use of a range of a regular file, as posix_fadvise(2) takes it. Whoever may read
 * the file may give it. Exports in direct mode follow none, as they pass the page cache by.
 *
 * A pattern of access belongs to the file's descriptors, which all callers share. So it is kept for
 * reads of the caller that gave it, and ends with another caller's first READ. The page cache is
 * shared, too: pages are dropped only if nobody else has the file open.
 */
#ifndef RN_VFS_ADVISE_H
#define RN_VFS_ADVISE_H

#include "vfs/io.h"

enum vfs_advice {
	VFS_ADVICE_SEQUENTIAL = 1, /* reads go from lower to higher offsets: more is read ahead */
	VFS_ADVICE_RANDOM = 2,	   /* nothing is read ahead */
	VFS_ADVICE_WILLNEED = 4,   /* starts to read VFS_PREFETCH_MAX bytes of the range at most */
	VFS_ADVICE_DONTNEED = 8,   /* drops pages of the range that are on disk already */
};

#define VFS_PREFETCH_MAX (4u << 20)

struct vfs_advise {
	struct vfs_ctx *ctx;
	struct vfs_node *node; /* the caller has a reference */
	/* enum vfs_advice. Without a pattern, the pattern that the same caller gave before ends. */
	unsigned advice;
	uint64_t offset, length; /* bytes; length 0: to the end */
	unsigned own_shares;	 /* shares (vfs/share.h) of the file that are the caller's */
};

/* Returns the bits of the advice that are followed. The fiber waits for the disk. Advice that cannot be followed is not
 * followed; nothing else fails. */
unsigned vfs_advise(struct vfs_advise *a);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/advise.h"

#include <fcntl.h>

#include "vfs/data/vfs_advise.h"
#include "vfs/data/operation.h"
#include "vfs/export/mounts.h"
#include "vfs/share.h"

#define PATTERNS (VFS_ADVICE_SEQUENTIAL | VFS_ADVICE_RANDOM)
#define RANGES (VFS_ADVICE_WILLNEED | VFS_ADVICE_DONTNEED)
/* Most bytes to drop with one call: the ring's length has 32 bits. */
#define DROP_MAX (1ull << 31)

/* A pattern is a flag and a number of pages in the open file: set without waiting. */
static void set_pattern(struct vfs_node *n, int advice)
{
	static const enum vfs_fd_kind kinds[] = { VFS_FD_READ, VFS_FD_WRITE };

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int fd = atomic_load_explicit(&n->data_fd[kinds[i]], memory_order_acquire);

		if (fd >= 0)
			(void)posix_fadvise(fd, 0, 0, advice);
	}
}

void vfs_advise_no_more(struct vfs_node *n)
{
	if (atomic_exchange(&n->advised_by, 0) != 0)
		set_pattern(n, POSIX_FADV_NORMAL);
}

/* Returns the pattern that is followed. A caller that is unknown cannot be told from others. */
static unsigned follow_pattern(struct vfs_advise *a)
{
	const uint64_t caller = a->ctx->caller;
	const unsigned pattern = a->advice & PATTERNS;

	if (pattern == 0 || pattern == PATTERNS || caller == 0) {
		if (atomic_load(&a->node->advised_by) == caller)
			vfs_advise_no_more(a->node);
		return 0;
	}
	atomic_store(&a->node->advised_by, caller);
	set_pattern(a->node,
		    pattern == VFS_ADVICE_RANDOM ? POSIX_FADV_RANDOM : POSIX_FADV_SEQUENTIAL);
	return pattern;
}

/* True if the range, cut to what one call takes, is one of a file. */
static bool range_of(const struct vfs_advise *a, struct vfs_ring_fadvise *f)
{
	const uint64_t left = VFS_OFFSET_MAX - a->offset;
	const bool drop = f->advice == POSIX_FADV_DONTNEED;
	const uint64_t most = drop ? DROP_MAX : VFS_PREFETCH_MAX;

	if (a->offset >= VFS_OFFSET_MAX)
		return false;
	f->offset = a->offset;
	f->len = a->length < left ? a->length : left;
	if (f->len > most || (f->len == 0 && !drop))
		f->len = most < left ? most : left;
	return true;
}

/* Follows what is advised about the range: that, or 0. */
static unsigned follow_range(struct vfs_advise *a, int fd)
{
	const unsigned range = a->advice & RANGES;
	struct vfs_ring_fadvise f = {
		.fd = fd,
		.advice = range == VFS_ADVICE_DONTNEED ? POSIX_FADV_DONTNEED : POSIX_FADV_WILLNEED,
	};

	if (range == 0 || range == RANGES || !range_of(a, &f) ||
	    (range == VFS_ADVICE_DONTNEED && !vfs_share_is_only(a->ctx, a->node, a->own_shares)))
		return 0;
	return vfs_ring_fadvise(a->ctx, &f) < 0 ? 0 : range;
}

unsigned vfs_advise(struct vfs_advise *a)
{
	unsigned followed;
	int fd = -1;

	if (a->ctx->exp->mode == VFS_IO_BUFFERED && vfs_may_read(a->ctx, a->node) == 0)
		fd = vfs_node_readable_fd(a->ctx, a->node);
	if (fd < 0)
		return 0;
	followed = follow_pattern(a);
	return followed | follow_range(a, fd);
}

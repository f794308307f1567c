/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks that a file shares with others are found by FIEMAP, which XFS and btrfs answer without
 * reading data. */
#include <errno.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include "lib/util.h"
#include "vfs/data/operation.h"
#include "vfs/space.h"
#include "vfs/vfs_worker.h"

#define EXTENTS 64u /* of one call */
#define CALLS 128u

struct sharing {
	uint64_t own, shared; /* bytes of the extents that were looked at */
	bool whole;	      /* all were */
};

/* A struct fiemap with room for its extents. */
union extents {
	struct fiemap head;
	uint8_t room[sizeof(struct fiemap) + EXTENTS * sizeof(struct fiemap_extent)];
};

/* Adds the extents of a call, and returns where the next one begins. */
static uint64_t sharing_add_extents(const union extents *e, struct sharing *s)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < rn_min(e->head.fm_mapped_extents, EXTENTS); i++) {
		const struct fiemap_extent *x = &e->head.fm_extents[i];

		if (x->fe_flags & FIEMAP_EXTENT_SHARED)
			s->shared += x->fe_length;
		else
			s->own += x->fe_length;
		s->whole = x->fe_flags & FIEMAP_EXTENT_LAST;
		next = x->fe_logical + x->fe_length;
	}
	return next;
}

/* -EOPNOTSUPP: the file system shares no blocks, as far as the kernel tells. */
static int sharing_measure(int fd, struct sharing *s)
{
	uint64_t at = 0;

	*s = (struct sharing){ 0 };
	for (unsigned i = 0; i < CALLS && !s->whole; i++) {
		union extents e;

		memset(&e.head, 0, sizeof(e.head));
		e.head.fm_start = at;
		e.head.fm_length = UINT64_MAX - at;
		e.head.fm_extent_count = EXTENTS;
		if (ioctl(fd, FS_IOC_FIEMAP, &e.head) != 0)
			return -errno;
		if (e.head.fm_mapped_extents == 0)
			s->whole = true;
		else
			at = sharing_add_extents(&e, s);
	}
	return 0;
}

int vfs_space_freed(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_attr *attr,
		    uint64_t *out)
{
	struct sharing s;
	int fd, rc;

	*out = attr->used;
	if (n->type != S_IFDIR && attr->nlink > 1)
		*out = 0;
	if (n->type != S_IFREG || *out == 0)
		return 0;
	rn_fiber_move(ctx->fiber);
	fd = vfs_node_readable_fd(ctx, n);
	if (fd < 0)
		return (int)vfs_io_answer(fd);
	rc = sharing_measure(fd, &s);
	if (rc < 0) /* extents are unknown here: none is shared */
		return rc == -EOPNOTSUPP || rc == -ENOTTY || rc == -EINVAL ? 0 : rc;
	*out -= rn_min(*out, s.shared);
	if (!s.whole)
		*out = rn_min(*out, s.own);
	return 0;
}

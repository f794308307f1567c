/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include "vfs/data/copy_range.h"
#include "vfs/data/operation.h"
#include "vfs/hold/file_change.h"

static bool overlaps(const struct vfs_copy *c, uint64_t count)
{
	return vfs_copy_is_within(c) && c->from.offset < c->offset + count &&
	       c->offset < c->from.offset + count;
}

/* A count of 0 is left to the kernel, which takes the end of the source as it is then. */
static int clone_range(const struct vfs_copy *c, const struct vfs_copy_range *r)
{
	const struct file_clone_range range = {
		.src_fd = r->from_fd,
		.src_offset = c->from.offset,
		.src_length = c->count,
		.dest_offset = c->offset,
	};
	int rc;

	for (unsigned tries = 0; tries < VFS_IO_TRIES; tries++) {
		rc = ioctl(r->to_fd, FICLONERANGE, &range) == 0 ? 0 : -errno;
		if (rc != -EINTR && rc != -EAGAIN)
			break;
	}
	/* File systems that do not know the call at all */
	return rc == -ENOTTY || rc == -ENOSYS ? -EOPNOTSUPP : rc;
}

int vfs_clone(const struct vfs_copy *c)
{
	struct vfs_copy_range r;
	int rc = vfs_copy_range_open(c, &r);

	if (rc == 0 && overlaps(c, r.count))
		rc = -EINVAL;
	if (rc == 0)
		rc = vfs_copy_act(c);
	if (rc == 0)
		rc = clone_range(c, &r);
	if (rc == 0)
		vfs_node_changed(c->node);
	vfs_file_change_end(&r.change);
	return (int)vfs_io_answer(rc);
}

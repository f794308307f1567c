/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/data/copy_range.h"

#include <errno.h>
#include <sys/stat.h>

#include "vfs/data/operation.h"
#include "vfs/hold/file_change.h"
#include "vfs/meta/permission.h"
#include "vfs/node/uncommitted.h"
#include "vfs/worker/worker_state.h"

static int check_permission(const struct vfs_copy *c)
{
	struct vfs_io in = { .ctx = c->from.ctx, .node = c->from.node, .opened = c->from.opened };
	const struct vfs_io out = { .ctx = c->ctx, .node = c->node, .opened = c->opened };
	int rc = vfs_io_may_read(&in);

	return rc == 0 ? vfs_io_may_write(&out) : rc;
}

/* The size of the source decides, before anything is written (RFC 7862 sections 15.2.3 and
 * 15.13.3). */
static int copy_range_check(const struct vfs_copy *c, struct vfs_copy_range *r)
{
	struct stat st;
	uint64_t size;

	if (fstat(r->from_fd, &st) < 0)
		return -errno;
	size = (uint64_t)st.st_size;
	r->count = size > c->from.offset ? size - c->from.offset : 0;
	if (!c->cut && (c->from.offset > size || c->count > r->count))
		return -EINVAL;
	if (c->count > 0 && c->count < r->count)
		r->count = c->count;
	return c->offset > VFS_OFFSET_MAX || r->count > VFS_OFFSET_MAX - c->offset ? -EFBIG : 0;
}

static int copy_range_open_fds(const struct vfs_copy *c, struct vfs_copy_range *out)
{
	/* The destination first: if both are one file, its descriptor is for the source, too. */
	out->to_fd = vfs_writing_fd(c->ctx, c->node);
	if (out->to_fd < 0)
		return out->to_fd;
	out->from_fd = vfs_node_readable_fd(c->from.ctx, c->from.node);
	return out->from_fd < 0 ? out->from_fd : copy_range_check(c, out);
}

int vfs_copy_range_open(const struct vfs_copy *c, struct vfs_copy_range *out)
{
	int rc = check_permission(c);

	out->change.count = NULL;
	if (rc == 0)
		rc = vfs_file_change_begin(c->ctx, c->node, &out->change);
	if (rc == 0)
		rc = copy_range_open_fds(c, out);
	if (rc < 0)
		vfs_file_change_end(&out->change);
	return rc;
}

bool vfs_copy_is_within(const struct vfs_copy *c)
{
	return c->from.node->dev == c->node->dev && c->from.node->ino == c->node->ino;
}

int vfs_copy_act(const struct vfs_copy *c)
{
	if (c->ctx->cred.uid == 0)
		return vfs_act_as_root(c->ctx);
	return vfs_identity_become(&vfs_worker_of(c->ctx)->identity, &vfs_nobody);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * COMMIT: FSYNC through the ring. Not fdatasync: other clients believe in the times of a file,
 * which must not go back when the server restarts. Not sync_file_range: it leaves the device's
 * cache and the block maps as they are.
 *
 * An error means that unstable data is gone, and that nobody will be told again: the verifier
 * changes (vfs/node/uncommitted.h).
 */
#include "vfs/data/operation.h"

#include <errno.h>
#include <sys/stat.h>

#include "vfs/meta/permission.h"
#include "vfs/node/uncommitted.h"

static void commit_next(struct vfs_io *io)
{
	uint64_t offset = io->offset;
	uint32_t len = io->count;
	/* Written through the WRITE descriptor, asked about errors through it: as long as anything is
	 * uncommitted, it is open. To open it again would break the lease of a delegation, and is not
	 * possible for a program that runs. */
	int fd = vfs_node_readable_fd(io->ctx, io->node);

	if (fd < 0) {
		vfs_io_finish_later(io, fd);
		return;
	}
	if (offset > VFS_OFFSET_MAX - len)
		len = 0;
	vfs_syncing_begin(&io->priv.syncing, io->node, len ? VFS_SYNCING_PART : VFS_SYNCING_ALL);
	vfs_ring_fsync(io->ctx->w, &io->priv.op, fd, offset, len);
}

static void commit_complete(struct vfs_ring_op *op, int res)
{
	struct vfs_io *io = op->owner;

	if (vfs_io_again(io, res)) {
		commit_next(io);
		return;
	}
	vfs_syncing_end(&io->priv.syncing, io->node, res);
	vfs_io_finish(io, res);
}

void vfs_commit(struct vfs_io *io)
{
	int rc;

	vfs_io_init(io, commit_complete);
	rc = vfs_io_may_write(io);
	if (rc == -EPERM) /* immutable by now: what was written before may be made durable */
		rc = 0;
	if (rc < 0 || io->ctx->access.flags & VFS_ASYNC)
		vfs_io_finish_later(io, rc);
	else
		commit_next(io);
}

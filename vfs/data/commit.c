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

/* Once: 0 or -errno. */
static int commit_once(struct vfs_io *io, bool *began)
{
	uint64_t offset = io->offset;
	uint32_t len = io->count;
	/* Written through the WRITE descriptor, asked about errors through it: as long as anything is
	 * uncommitted, it is open. To open it again would break the lease of a delegation, and is not
	 * possible for a program that runs. */
	int fd = vfs_node_readable_fd(io->ctx, io->node);

	*began = fd >= 0;
	if (fd < 0)
		return fd;
	if (offset > VFS_OFFSET_MAX - len)
		len = 0;
	vfs_syncing_begin(&io->priv.syncing, io->node, len ? VFS_SYNCING_PART : VFS_SYNCING_ALL);
	return vfs_ring_fsync(io->ctx, fd, &(struct vfs_ring_sync){ .offset = offset, .len = len });
}

int vfs_commit(struct vfs_io *io)
{
	unsigned tries = 0;
	bool began;
	int rc = vfs_io_may_write(io);

	if (rc == -EPERM) /* immutable by now: what was written before may be made durable */
		rc = 0;
	if (rc < 0 || io->ctx->access.flags & VFS_ASYNC)
		return (int)vfs_io_answer(rc);
	do
		rc = commit_once(io, &began);
	while (began && vfs_io_again(&tries, rc));
	if (began)
		vfs_syncing_end(&io->priv.syncing, io->node, rc);
	return (int)vfs_io_answer(rc);
}

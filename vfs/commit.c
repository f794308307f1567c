/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * COMMIT and the durability of metadata: FSYNC through the ring. Not fdatasync: other clients
 * believe in the times of a file, which must not go back when the server restarts. Not
 * sync_file_range: it leaves the device's cache and the block maps as they are.
 *
 * An error means that unstable data is gone, and that nobody will be told again: the verifier
 * changes, so that every client sends what it has not committed.
 */
#include "vfs/io_private.h"

#include <errno.h>
#include <sys/stat.h>

#include "vfs/permission.h"

static void commit_next(struct vfs_io *io)
{
	uint64_t offset = io->offset;
	uint32_t len = io->count;
	/* Written through the WRITE descriptor, asked about errors through it. A program that runs
	 * cannot be opened for writing, but may have been written before. */
	int fd = vfs_node_fd(io->ctx, io->node, VFS_FD_WRITE);

	if (fd == -ETXTBSY)
		fd = vfs_node_fd(io->ctx, io->node, VFS_FD_READ);
	if (fd < 0) {
		vfs_io_finish_later(io, fd);
		return;
	}
	if (offset > VFS_OFFSET_MAX - len)
		len = 0;
	vfs_ring_fsync(io->ctx->w, &io->priv.op, fd, offset, len);
}

static void commit_complete(struct vfs_ring_op *op, int res)
{
	struct vfs_io *io = op->owner;

	if (vfs_io_again(io, res)) {
		commit_next(io);
		return;
	}
	if (res < 0 && vfs_io_lost_data(res))
		vfs_verifier_change(io->ctx->vfs);
	vfs_io_finish(io, res);
}

void vfs_commit(struct vfs_io *io)
{
	int rc;

	vfs_io_init(io, commit_complete);
	rc = vfs_io_may_write(io);
	if (rc < 0 || io->ctx->access.flags & VFS_ASYNC)
		vfs_io_finish_later(io, rc);
	else
		commit_next(io);
}

/* A file system that cannot fsync a directory (-EINVAL) has no durability to offer there. */
static void sync_complete(struct vfs_ring_op *op, int res)
{
	struct vfs_sync *s = op->owner;

	if (res < 0 && vfs_io_lost_data(res))
		vfs_verifier_change(s->ctx->vfs);
	if (res < 0 && res != -EINVAL && s->result == 0)
		s->result = (int)vfs_io_answer(res);
	if (--s->priv.pending == 0)
		s->done(s);
}

/* Symbolic links, devices, pipes and sockets cannot be opened for fsync; a new one becomes durable
 * with its directory's entry, of which it is a part in the file system's log. */
static bool sync_wanted(const struct vfs_sync *s, unsigned i)
{
	const struct vfs_node *n = s->node[i];

	if (!n || (s->ctx->access.flags & VFS_ASYNC) || (!S_ISREG(n->type) && !S_ISDIR(n->type)))
		return false;
	for (unsigned j = 0; j < i; j++) {
		if (s->node[j] == n)
			return false;
	}
	return true;
}

static void sync_start(struct vfs_sync *s, unsigned i)
{
	struct vfs_ring_op *op = &s->priv.op[i];
	int fd = vfs_io_readable_fd(s->ctx, s->node[i]);

	op->complete = sync_complete;
	op->owner = s;
	if (fd < 0)
		vfs_ring_finish(s->ctx->w, op, fd);
	else
		vfs_ring_fsync(s->ctx->w, op, fd, 0, 0);
}

/* done() is never called before vfs_sync returns. */
static void sync_none(struct vfs_sync *s)
{
	struct vfs_ring_op *op = &s->priv.op[0];

	op->complete = sync_complete;
	op->owner = s;
	s->priv.pending = 1;
	vfs_ring_finish(s->ctx->w, op, 0);
}

void vfs_sync(struct vfs_sync *s)
{
	bool wanted[VFS_SYNC_NODES];

	s->result = 0;
	s->priv.pending = 0;
	for (unsigned i = 0; i < VFS_SYNC_NODES; i++) {
		wanted[i] = sync_wanted(s, i);
		s->priv.pending += wanted[i];
	}
	if (s->priv.pending == 0) {
		sync_none(s);
		return;
	}
	/* Nothing else: an operation that has ended at once keeps the worker from waiting. */
	for (unsigned i = 0; i < VFS_SYNC_NODES; i++) {
		if (wanted[i])
			sync_start(s, i);
	}
}

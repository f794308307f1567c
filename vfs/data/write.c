/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WRITE: the pieces, in order, until all is written. Each system call or ring request carries the
 * stability that was asked for, so that what is acknowledged of a short write is durable too.
 *
 * In direct mode whole granules go past the page cache if offset and pieces lie on the granule;
 * what follows the last whole granule, and any write that does not lie on it, is buffered. The
 * kernel keeps the two coherent as long as they do not meet in a page at the same time: a direct write that
 * finds a page dirtied meanwhile reports EIO for the file, which looks like a loss of data. So a node that
 * was once written buffered is always written buffered, and a buffered write does not begin while a direct
 * one is under way: the client comes again.
 */
#include "vfs/data/operation.h"

#include <errno.h>

#include "lib/clock.h"
#include "vfs/data/group.h"
#include "vfs/export/mounts.h"
#include "vfs/hold/file_change.h"
#include "vfs/meta/permission.h"
#include "vfs/node/uncommitted.h"
#include "vfs/worker.h"

/* A longer write to disk keeps a worker busy too long, however fast the disk is. */
#define WAIT_MAX (64u << 10)

static bool on_granule(const struct vfs_io *io)
{
	if (io->offset % VFS_DIRECT_ALIGN || io->count < VFS_DIRECT_ALIGN)
		return false;
	for (unsigned i = 0; i < io->npieces; i++) {
		if ((uintptr_t)io->piece[i].iov_base % VFS_DIRECT_ALIGN)
			return false;
		if (i + 1 < io->npieces && io->piece[i].iov_len % VFS_DIRECT_ALIGN)
			return false;
	}
	return true;
}

static bool enter_direct(struct vfs_node *n)
{
	uint32_t now = atomic_load(&n->direct);

	while (!(now & VFS_BUFFERED)) {
		if (atomic_compare_exchange_weak(&n->direct, &now, now + 1))
			return true;
	}
	return false;
}

static void leave_direct(struct vfs_io *io)
{
	if (io->priv.direct)
		atomic_fetch_sub(&io->node->direct, 1);
	io->priv.direct = false;
}

/* False: direct writes are under way. No further one begins. */
static bool enter_buffered(const struct vfs_io *io)
{
	if (io->ctx->exp->mode != VFS_IO_DIRECT)
		return true;
	return (atomic_fetch_or(&io->node->direct, VFS_BUFFERED) & ~VFS_BUFFERED) == 0;
}

/* The rest of the pieces, at most max bytes of it. *payload: that of the first piece taken. */
static unsigned write_gather(struct vfs_io *io, uint32_t max, struct rn_payload **payload)
{
	size_t skip = io->priv.moved;
	unsigned n = 0;

	for (unsigned i = 0; i < io->npieces && max; i++) {
		size_t len = io->piece[i].iov_len;

		if (skip >= len) {
			skip -= len;
			continue;
		}
		len = len - skip < max ? len - skip : max;
		if (n == 0)
			*payload = io->piece_payload[i];
		io->priv.iov[n].iov_base = (char *)io->piece[i].iov_base + skip;
		io->priv.iov[n++].iov_len = len;
		max -= (uint32_t)len;
		skip = 0;
	}
	return n;
}

static int write_flags(const struct vfs_io *io)
{
	if (!io->priv.synced)
		return 0;
	return io->stable == VFS_FILE_SYNC ? RWF_SYNC : RWF_DSYNC;
}

/* Another operation may have been told that what this one wrote is lost. */
static int64_t write_synced(struct vfs_io *io, int64_t of_disk, int64_t result)
{
	vfs_syncing_end(&io->priv.syncing, io->node, of_disk);
	if (!io->priv.syncing.lost)
		return result;
	if (of_disk < 0)
		return of_disk;
	return result < 0 ? result : -EIO;
}

/* All or a part is written, which an error met later does not change: the client's next WRITE meets
 * it again. of_disk: the error if it may tell of data that were written before. */
static void write_end(struct vfs_io *io, int64_t error, int64_t of_disk)
{
	int64_t result = io->priv.moved ? (int64_t)io->priv.moved : error;

	leave_direct(io);
	if (io->priv.moved)
		vfs_node_changed(io->node);
	vfs_file_change_end(&io->priv.change);
	if (io->priv.synced)
		result = write_synced(io, of_disk, result);
	else if (!(io->ctx->access.flags & VFS_ASYNC))
		vfs_uncommitted_wrote(io->node, io->priv.moved > 0);
	vfs_io_moved(io, 0, io->priv.moved);
	vfs_io_finish(io, result);
}

/* The file could not be opened, or direct writes are in the way: nothing was written that could have failed. */
static void write_without_fd(struct vfs_ring_op *op, int res)
{
	write_end(op->owner, res, 0);
}

/* True if a short write waits for the disk on this thread: the ring would cost two switches of
 * threads more, which is a good part of such a wait. */
static bool waits_here(struct vfs_io *io)
{
	if (!io->priv.synced || io->priv.direct || io->count > WAIT_MAX ||
	    !vfs_group_may_wait(io->ctx->w, io->node))
		return false;
	io->priv.began_ns = rn_now_ns();
	return true;
}

static void write_next(struct vfs_io *io)
{
	struct rn_payload *payload = NULL;
	struct vfs_ring_rw rw = { .fd = -EINVAL,
				  .offset = io->offset + io->priv.moved,
				  .iov = io->priv.iov,
				  .flags = write_flags(io),
				  .as_user = io->ctx->cred.uid != 0,
				  .in_place = !io->priv.synced || waits_here(io) };
	uint32_t left = io->count - io->priv.moved;
	int buffered = vfs_writing_fd(io->ctx, io->node); /* before any other */

	if (io->priv.moved % VFS_DIRECT_ALIGN || left < VFS_DIRECT_ALIGN)
		leave_direct(io);
	if (io->priv.direct && buffered >= 0)
		rw.fd = vfs_node_fd(io->ctx, io->node, VFS_FD_WRITE_DIRECT);
	if (rw.fd == -EINVAL) {
		leave_direct(io);
		rw.fd = buffered < 0 || enter_buffered(io) ? buffered : -EAGAIN;
	}
	if (io->priv.direct) {
		left -= left % VFS_DIRECT_ALIGN;
		rw.in_place = false;
	}
	rw.niov = write_gather(io, left, &payload);
	rw.payload = payload;
	if (rw.fd < 0) {
		io->priv.op.complete = write_without_fd;
		vfs_ring_finish(io->ctx->w, &io->priv.op, rw.fd);
	} else {
		vfs_ring_write(io->ctx->w, &io->priv.op, &rw);
	}
}

static void write_error(struct vfs_io *io, int error)
{
	if (io->priv.direct && error == -EINVAL) {
		leave_direct(io);
		write_next(io);
		return;
	}
	if (vfs_io_again(io, error)) {
		write_next(io);
		return;
	}
	write_end(io, error, error);
}

static void write_complete(struct vfs_ring_op *op, int res)
{
	struct vfs_io *io = op->owner;

	if (io->priv.began_ns != 0)
		vfs_group_waited(io->ctx->w, io->node, rn_now_ns() - io->priv.began_ns);
	io->priv.began_ns = 0;
	if (res == 0)
		res = -EIO;
	if (res < 0) {
		write_error(io, res);
		return;
	}
	io->priv.moved += (uint32_t)res;
	if (io->priv.moved < io->count)
		write_next(io);
	else
		write_end(io, 0, 0);
}

static int write_check(const struct vfs_io *io)
{
	uint64_t sum = 0;

	if (io->npieces > VFS_IO_PIECES)
		return -EINVAL;
	for (unsigned i = 0; i < io->npieces; i++) {
		if (io->piece[i].iov_len > io->count)
			return -EINVAL;
		sum += io->piece[i].iov_len;
	}
	if (sum != io->count || io->count > INT32_MAX)
		return -EINVAL;
	return io->offset > VFS_OFFSET_MAX - io->count ? -EFBIG : 0;
}

/* Data written to one node too many are made durable at once: there is a budget of nodes with
 * uncommitted data. Who asked for less gets more than that. */
static void write_begin(struct vfs_io *io)
{
	const bool sync = !(io->ctx->access.flags & VFS_ASYNC);

	io->priv.synced = sync && (io->stable != VFS_UNSTABLE || !vfs_uncommitted_room(io->node));
	if (io->priv.synced)
		vfs_syncing_begin(&io->priv.syncing, io->node, VFS_SYNCING_WRITE);
	else if (sync)
		vfs_uncommitted_write(io->node);
}

/* A prompt worker writes only into the page cache, as root, and to a file that is open already. */
static int write_promptly(const struct vfs_io *io)
{
	const bool sync = !(io->ctx->access.flags & VFS_ASYNC);

	if (io->ctx->cred.uid != 0 || io->ctx->exp->mode == VFS_IO_DIRECT ||
	    (sync && (io->stable != VFS_UNSTABLE || !vfs_uncommitted_room(io->node))))
		return vfs_worker_decline(io->ctx->w);
	return vfs_writing_fd(io->ctx, io->node) < 0 ? -EAGAIN : 0; /* it has declined */
}

void vfs_write(struct vfs_io *io)
{
	int rc;

	vfs_io_init(io, write_complete);
	rc = write_check(io);
	if (rc == 0)
		rc = vfs_io_may_write(io);
	if (rc == 0 && vfs_worker_is_prompt(io->ctx->w))
		rc = write_promptly(io);
	if (rc == 0 && io->count > 0)
		rc = vfs_file_change_begin(io->ctx, io->node, &io->priv.change);
	if (rc < 0 || io->count == 0) {
		vfs_io_finish_later(io, rc);
		return;
	}
	write_begin(io);
	io->priv.direct =
		io->ctx->exp->mode == VFS_IO_DIRECT && on_granule(io) && enter_direct(io->node);
	write_next(io);
}

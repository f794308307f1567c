/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WRITE: the pieces, in order, until all is written. What is acknowledged of a short write is as stable as was asked for, too.
 *
 * In direct mode whole granules go past the page cache if offset and pieces lie on the granule;
 * what follows the last whole granule, and any write that does not lie on it, is buffered. The
 * kernel keeps the two coherent as long as they do not meet in a page at the same time: a direct write that
 * finds a page dirtied meanwhile reports EIO for the file, which looks like a loss of data. So a node that
 * was once written buffered is always written buffered, and a buffered write does not begin while a direct
 * one is under way: the client comes again.
 */
#include "lib/error.h"
#include "vfs/data/operation.h"

#include <errno.h>

#include "vfs/data/write_sync.h"
#include "vfs/export/mounts.h"
#include "vfs/hold/file_change.h"
#include "vfs/meta/permission.h"
#include "vfs/node/uncommitted.h"

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

/* Flags of a direct write. A buffered one has none, as sync_buffered() makes it durable when all is written. */
static int write_flags(const struct vfs_io *io)
{
	if (!io->priv.synced || !io->priv.direct)
		return 0;
	return io->stable == VFS_FILE_SYNC ? RWF_SYNC : RWF_DSYNC;
}

/* 0, or -errno: what was written may not be on disk. */
static int sync_buffered(struct vfs_io *io)
{
	const struct vfs_written what = { .from = io->offset,
					  .to = io->offset + io->priv.moved,
					  .bytes = io->priv.moved,
					  .metadata = io->stable != VFS_DATA_SYNC };
	int fd = vfs_writing_fd(io->ctx, io->node);

	return fd < 0 ? fd : vfs_write_sync(io->ctx, io->node, fd, &what);
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
static int64_t write_end(struct vfs_io *io, int64_t error, int64_t of_disk)
{
	int64_t result = io->priv.moved ? (int64_t)io->priv.moved : error;
	int rc = 0;

	leave_direct(io);
	if (io->priv.synced && io->priv.buffered)
		rc = sync_buffered(io);
	if (rc < 0)
		result = of_disk = rc;
	if (io->priv.moved)
		vfs_node_changed(io->node);
	vfs_file_change_end(&io->priv.change);
	if (io->priv.synced)
		result = write_synced(io, of_disk, result);
	else if (!(io->ctx->access.flags & VFS_ASYNC))
		vfs_uncommitted_wrote(io->node, io->priv.moved > 0);
	vfs_io_moved(io, 0, io->priv.moved);
	return vfs_io_answer(result);
}

/* Opens what is to be written through. -RN_ESOON: direct writes are in the way. */
static int writing_fd(struct vfs_io *io)
{
	const int buffered = vfs_writing_fd(io->ctx, io->node); /* before any other */
	int fd = -EINVAL;

	if (io->priv.moved % VFS_DIRECT_ALIGN || io->count - io->priv.moved < VFS_DIRECT_ALIGN)
		leave_direct(io);
	if (io->priv.direct && buffered >= 0)
		fd = vfs_node_fd(io->ctx, io->node, VFS_FD_WRITE_DIRECT);
	if (fd != -EINVAL)
		return fd;
	leave_direct(io);
	return buffered < 0 || enter_buffered(io) ? buffered : -RN_ESOON;
}

/* Writes on: bytes or -errno. *of_disk: 0 if nothing was written that could have failed. */
static int write_next_part(struct vfs_io *io, int *of_disk)
{
	struct rn_payload *payload = NULL;
	struct vfs_ring_rw rw = { .fd = writing_fd(io),
				  .offset = io->offset + io->priv.moved,
				  .iov = io->priv.iov,
				  .as_user = io->ctx->cred.uid != 0 };
	uint32_t left = io->count - io->priv.moved;
	int n;

	*of_disk = 0;
	if (rw.fd < 0)
		return rw.fd;
	if (io->priv.direct)
		left -= left % VFS_DIRECT_ALIGN;
	rw.flags = write_flags(io);
	rw.in_place = !io->priv.direct && (!io->priv.synced || io->node->mnt->local);
	rw.niov = write_gather(io, left, &payload);
	rw.payload = payload;
	n = vfs_ring_write(io->ctx, &rw);
	n = n == 0 ? -EIO : n;
	io->priv.buffered |= !io->priv.direct && n > 0;
	*of_disk = n;
	return n;
}

static bool write_may_retry(struct vfs_io *io, int error)
{
	if (!io->priv.direct || error != -EINVAL)
		return vfs_io_again(&io->priv.tries, error);
	leave_direct(io);
	return true;
}

static int64_t write_all_parts(struct vfs_io *io)
{
	int n, of_disk;

	while (io->priv.moved < io->count) {
		n = write_next_part(io, &of_disk);
		if (n < 0 && of_disk < 0 && write_may_retry(io, n))
			continue;
		if (n < 0)
			return write_end(io, n, of_disk);
		io->priv.moved += (uint32_t)n;
	}
	return write_end(io, 0, 0);
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

/* A thread that must not block writes only into the page cache, as root, and to a file that is open already. */
static void leave_if_it_blocks(const struct vfs_io *io)
{
	const bool sync = !(io->ctx->access.flags & VFS_ASYNC);

	if (io->ctx->cred.uid != 0 || io->ctx->exp->mode == VFS_IO_DIRECT ||
	    (sync && (io->stable != VFS_UNSTABLE || !vfs_uncommitted_room(io->node))))
		rn_fiber_move(io->ctx->fiber);
}

int64_t vfs_write(struct vfs_io *io)
{
	int rc = write_check(io);

	io->priv.moved = 0;
	io->priv.tries = 0;
	io->priv.direct = io->priv.buffered = false;
	if (rc == 0)
		rc = vfs_io_may_write(io);
	if (rc == 0)
		leave_if_it_blocks(io);
	if (rc == 0 && io->count > 0)
		rc = vfs_file_change_begin(io->ctx, io->node, &io->priv.change);
	if (rc < 0 || io->count == 0)
		return vfs_io_answer(rc);
	write_begin(io);
	io->priv.direct =
		io->ctx->exp->mode == VFS_IO_DIRECT && on_granule(io) && enter_direct(io->node);
	return write_all_parts(io);
}

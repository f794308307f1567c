/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READ without a copy: pages of the page cache go into a pipe, and from there to a socket. The
 * result says how many bytes are in the pipe, so a file that shrinks afterwards changes nothing
 * about the reply's length.
 *
 * The calling thread, which may be an event thread, must not wait for a disk, so this is for data
 * that are in the page cache. Neither splice(2) nor the ring can be told not to wait; the cache is
 * asked before. A page that leaves it in between costs a wait for that page. File systems that cannot say whether a read would
 * wait (FUSE, NFS, Ceph, and others without RWF_NOWAIT) are never read in this way.
 */
#include <errno.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/pipe.h"
#include "lib/util.h"
#include "vfs/data/operation.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/file_system.h"
#include "vfs/meta/permission.h"
#include "vfs/worker/worker_state.h"

/* Distance between the bytes that are tried where the kernel has no cachestat. */
#define TRY_EVERY (64 << 10)

/* True if the byte can be read without a wait. */
static bool page_is_cached(int fd, uint64_t offset)
{
	uint8_t byte;
	struct iovec iov = { &byte, 1 };

	return preadv2(fd, &iov, 1, (off_t)offset, RWF_NOWAIT) == 1;
}

/* True if all bytes, one or more, are in the page cache as far as the kernel can tell. The last one
 * is tried, too, since it comes last when the disk is being read ahead. Where it cannot be known of each
 * page, the READ moves from a thread that must not block. */
static bool is_cached(const struct vfs_io *io, int fd, uint64_t offset, uint32_t len)
{
	const int64_t page = sysconf(_SC_PAGESIZE);
	const int64_t first = (int64_t)offset, last = first + len - 1;

	if (!page_is_cached(fd, (uint64_t)last))
		return false;
	const int64_t cached = vfs_cached_pages(fd, offset, len);
	if (cached != -ENOSYS)
		return cached >= last / page - first / page + 1;
	rn_fiber_move(io->ctx->fiber);
	for (int64_t at = first; at < last; at += TRY_EVERY)
		if (!page_is_cached(fd, (uint64_t)at))
			return false;
	return true;
}

/* True if the file has enough bytes there to be worth it. */
static bool is_worth_it(const struct vfs_io *io)
{
	struct statx sx;

	return io->count >= VFS_PAGES_LEAST && io->offset <= VFS_OFFSET_MAX - io->count &&
	       vfs_node_stat(io->node, &sx) == 0 && sx.stx_size >= io->offset + VFS_PAGES_LEAST;
}

/*
 * Fills the pipe with up to io->count bytes. False: it does not hold what an answer needs. As in
 * vfs_read, whether the end was reached is decided by the size after the last byte was read.
 */
static bool pipe_fill_pages(struct vfs_io *io, struct rn_pipe *pipe, int fd)
{
	struct stat st;

	for (;;) {
		const uint64_t at = io->offset + pipe->bytes;
		if (fstat(fd, &st) < 0)
			return false;
		const uint64_t size = (uint64_t)st.st_size;
		const uint64_t left = at < size ? size - at : 0;
		const uint32_t want = (uint32_t)rn_min(left, io->count - pipe->bytes);

		io->eof = left == 0;
		if (want == 0)
			return pipe->bytes > 0;
		/* Fewer bytes than were asked for are an answer, too. */
		if (!is_cached(io, fd, at, want) || rn_pipe_fill(pipe, fd, at, want) <= 0)
			return pipe->bytes > 0;
	}
}

static bool read_pages_to_pipe(struct vfs_io *io, struct rn_pipe *pipe)
{
	/* The permission comes before the file is opened, which may break a lease. */
	if (io->ctx->exp->mode == VFS_IO_DIRECT || !is_worth_it(io) || vfs_io_may_read(io) != 0)
		return false;
	const int fd = vfs_node_readable_fd(io->ctx, io->node);

	/* cachestat(2) answers those only who may write the file. */
	return fd >= 0 && vfs_act_as_root(io->ctx) == 0 && pipe_fill_pages(io, pipe, fd);
}

bool vfs_read_pages(struct vfs_io *io, struct rn_pipe *pipe)
{
	if (!read_pages_to_pipe(io, pipe))
		return false;
	vfs_io_moved(io, pipe->bytes, 0);
	io->has_attr = false; /* the end was looked for again */
	return true;
}

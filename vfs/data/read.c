/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps that all operations on data share, advice, and READ.
 *
 * READ. The window of the file that starts at offset - data_off is read into the payload until it
 * is full or the file ends. Buffered, the window is what was asked for; in direct mode it is
 * widened to the granule on both sides, and the caller finds its bytes data_off into the payload.
 * A direct read that is refused, or stops off the granule, goes on buffered in the same window.
 *
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
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/pipe.h"
#include "lib/util.h"
#include "vfs/base/instance.h"
#include "vfs/data/operation.h"
#include "vfs/export/mounts.h"
#include "vfs/fs/file_system.h"
#include "vfs/meta/attr.h"
#include "vfs/share.h"
#include "vfs/space.h"
#include "vfs/worker/worker_state.h"

void vfs_io_moved(const struct vfs_io *io, uint64_t read, uint64_t written)
{
	const struct vfs_config *cfg = &io->ctx->vfs->cfg;

	if (cfg->moved && (read || written))
		cfg->moved(cfg->moved_ctx, io->ctx->exp->id, read, written);
}

int64_t vfs_io_answer(int64_t result)
{
	switch (result) {
	case -EBADF:
		return -EIO;
	default:
		return result;
	}
}

bool vfs_io_again(unsigned *tries, int res)
{
	return (res == -EINTR || res == -EAGAIN) && (*tries)++ < VFS_IO_TRIES;
}

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

/* Gives the node's descriptors the usual pattern of access. Does not wait. */
static void vfs_advise_no_more(struct vfs_node *n)
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

/* Before ctx's caller reads. */
static void vfs_advise_reads(const struct vfs_ctx *ctx, struct vfs_node *n)
{
	const uint64_t by = atomic_load_explicit(&n->advised_by, memory_order_relaxed);

	if (by != 0 && by != ctx->caller)
		vfs_advise_no_more(n);
}

/* Bytes from the granule of offset to the end of the granule of the last byte. */
static uint64_t direct_window(uint64_t offset, uint32_t count)
{
	uint64_t end = offset % VFS_DIRECT_ALIGN + count;

	return (end + VFS_DIRECT_ALIGN - 1) / VFS_DIRECT_ALIGN * VFS_DIRECT_ALIGN;
}

uint32_t vfs_read_buffer_size(const struct vfs_export *exp, uint64_t offset, uint32_t count)
{
	uint64_t window = direct_window(offset, count);

	if (exp->mode != VFS_IO_DIRECT || window > RN_PAYLOAD_MAX)
		return count;
	return (uint32_t)window;
}

static void read_plan(struct vfs_io *io)
{
	uint64_t left = io->offset < VFS_OFFSET_MAX ? VFS_OFFSET_MAX - io->offset : 0;
	uint64_t window = direct_window(io->offset, io->count);

	io->data_off = 0;
	io->priv.window = left < io->count ? (uint32_t)left : io->count;
	if (io->ctx->exp->mode != VFS_IO_DIRECT || io->priv.window == 0 ||
	    window > io->payload->size || window > left)
		return;
	io->priv.direct = true;
	io->priv.window = (uint32_t)window;
	io->data_off = (uint32_t)(io->offset % VFS_DIRECT_ALIGN);
}

/* Bytes that the caller asked for and has, out of what was read from the window. */
static uint32_t read_have(const struct vfs_io *io)
{
	uint32_t got = io->priv.moved > io->data_off ? io->priv.moved - io->data_off : 0;

	return got < io->count ? got : io->count;
}

/* Reads on in the window: bytes or -errno. */
static int read_next_window(struct vfs_io *io)
{
	struct vfs_ring_rw rw = { .fd = -EINVAL,
				  .offset = io->offset - io->data_off + io->priv.moved,
				  .iov = io->priv.iov,
				  .niov = 1,
				  .payload = io->payload,
				  .remote = !io->node->mnt->fs.local };

	if (io->priv.moved % VFS_DIRECT_ALIGN)
		io->priv.direct = false;
	if (io->priv.direct)
		rw.fd = vfs_node_fd(io->ctx, io->node, VFS_FD_READ_DIRECT);
	if (rw.fd == -EINVAL) {
		io->priv.direct = false;
		rw.fd = vfs_node_readable_fd(io->ctx, io->node);
	}
	io->priv.iov[0].iov_base = io->payload->data + io->priv.moved;
	io->priv.iov[0].iov_len = io->priv.window - io->priv.moved;
	return rw.fd < 0 ? rw.fd : vfs_ring_read(io->ctx, &rw);
}

/* True if what failed with that error may be tried again: buffered, or as the kernel broke it off. */
static bool read_may_retry(struct vfs_io *io, int error)
{
	if (!io->priv.direct || error != -EINVAL)
		return vfs_io_again(&io->priv.tries, error);
	io->priv.direct = false;
	return true;
}

/* The file's size: that of its attributes, unless the res bytes that were read up to the offset at
 * show that the file has grown or shrunk since. 0 or -errno. */
static int read_file_size(struct vfs_io *io, int res, uint64_t at, uint64_t *size)
{
	struct stat st;
	int fd;

	*size = io->attr.size;
	if (io->has_attr && (res > 0 ? at <= *size : at >= *size))
		return 0;
	io->has_attr = false;
	fd = vfs_node_readable_fd(io->ctx, io->node);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	*size = (uint64_t)st.st_size;
	return 0;
}

/*
 * Fills the window. Whether the end was reached is decided by the file's size, not by a short read: the file may be
 * growing. Where nothing was read the file ended, though it may have grown since: clients take no bytes before the
 * end for an error (Linux: EIO). 0 or -errno.
 */
static int read_window(struct vfs_io *io)
{
	uint64_t size, at;
	int res, rc;

	for (;;) {
		/* Without bytes that are wanted, only the end is looked for. */
		res = io->priv.window > 0 ? read_next_window(io) : 0;
		if (res < 0 && read_may_retry(io, res))
			continue;
		if (res < 0)
			return res;
		io->priv.moved += (uint32_t)res;
		at = io->offset - io->data_off + io->priv.moved;
		rc = read_file_size(io, res, at, &size);
		if (rc < 0)
			return rc;
		if (res == 0 || io->priv.moved >= io->priv.window || at >= size)
			break;
	}
	io->eof = io->offset >= size || read_have(io) >= size - io->offset ||
		  (io->priv.window > 0 && read_have(io) == 0);
	return 0;
}

int64_t vfs_read(struct vfs_io *io)
{
	int rc = vfs_io_may_read(io);

	io->eof = false;
	io->data_off = 0;
	io->priv.moved = 0;
	io->priv.window = 0;
	io->priv.tries = 0;
	io->priv.direct = false;
	if (rc == 0 && io->count > io->payload->size)
		rc = -EINVAL;
	if (rc < 0)
		return vfs_io_answer(rc);
	/* O_DIRECT waits for the disk, whatever is in memory. */
	if (io->ctx->exp->mode == VFS_IO_DIRECT)
		rn_fiber_move(io->ctx->fiber);
	vfs_advise_reads(io->ctx, io->node);
	read_plan(io);
	rc = read_window(io);
	/* The client's next READ meets an error behind what was read. */
	if (rc < 0 && read_have(io) == 0)
		return vfs_io_answer(rc);
	vfs_io_moved(io, read_have(io), 0);
	return read_have(io);
}

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

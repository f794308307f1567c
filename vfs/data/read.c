/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READ. The window of the file that starts at offset - data_off is read into the payload until it
 * is full or the file ends. Buffered, the window is what was asked for; in direct mode it is
 * widened to the granule on both sides, and the caller finds its bytes data_off into the payload.
 * A direct read that is refused, or stops off the granule, goes on buffered in the same window.
 */
#include "vfs/data/operation.h"

#include <errno.h>
#include <sys/stat.h>

#include "vfs/data/vfs_advise.h"
#include "vfs/export/mounts.h"
#include "vfs/meta/permission.h"

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
				  .payload = io->payload };

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

/* Fills the window. Whether the end was reached is decided by the file's size, not by a short read: the file may be
 * growing. 0 or -errno. */
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
	io->eof = io->offset >= size || read_have(io) >= size - io->offset;
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

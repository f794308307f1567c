/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of a range of a file: data, and holes that are worth telling of. Where it is in doubt, a
 * part is data, which is always true: the reader finds the zeros itself.
 *
 * Nothing stops others from changing the file meanwhile. A hole was one when the file system was
 * asked, and data are read after that, so a reader sees each part as it was at some moment of the
 * call.
 */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/util.h"
#include "vfs/data/operation.h"
#include "vfs/meta/permission.h"
#include "vfs/space.h"
#include "vfs/vfs_worker.h"

/* Most holes that are looked for in one range. A range of so many small ones is told as data. */
#define LOOKS_MAX 32u

/* False: with as many blocks as bytes the file is taken for one without holes, so that reading it
 * costs no search. */
static bool may_have_holes(const struct stat *st)
{
	return st->st_size >= (off_t)VFS_HOLE_LEAST &&
	       (uint64_t)st->st_blocks * 512 <= (uint64_t)st->st_size - VFS_HOLE_LEAST;
}

/* A position that was found at or behind `at`: within the range. */
static uint64_t within(off_t pos, uint64_t at, uint64_t end)
{
	return rn_min(rn_max((uint64_t)pos, at), end);
}

/*
 * Where the next data begins, or the end if there is none. Then the file is asked for its end again:
 * it may have become shorter, and what is no longer there is no hole. False: the file system does not
 * say.
 */
static bool find_data(int fd, uint64_t at, uint64_t *end, uint64_t *data)
{
	const off_t pos = lseek(fd, (off_t)at, SEEK_DATA);
	struct stat st;

	if (pos >= 0) {
		*data = within(pos, at, *end);
		return true;
	}
	if (errno != ENXIO || fstat(fd, &st) < 0)
		return false;
	*end = within(st.st_size, at, *end);
	*data = *end;
	return true;
}

/* Where the data at `at` ends. Whoever reads them notices if there are fewer by then. */
static uint64_t end_of_data(int fd, uint64_t at, uint64_t end)
{
	const off_t pos = lseek(fd, (off_t)at, SEEK_HOLE);

	return pos < 0 ? end : within(pos, at, end);
}

static void parts_add(struct vfs_parts *p, uint64_t from, uint64_t to, bool hole)
{
	struct vfs_part *last = p->n > 0 ? &p->part[p->n - 1] : NULL;

	if (from == to)
		return;
	if (last && last->hole == hole)
		last->length += to - from;
	else
		p->part[p->n++] = (struct vfs_part){ from, to - from, hole };
}

/* True if a hole that ends before `end` or there can be told of: it needs a part, and so do the data
 * behind it. */
static bool parts_has_room(const struct vfs_parts *p, bool is_last)
{
	return p->n + (is_last ? 1 : 2) <= p->most;
}

/* Splits offset..end, which is within the file. Returns the end, which may have come nearer. */
static uint64_t parts_split(int fd, struct vfs_parts *p, uint64_t end)
{
	uint64_t at = p->offset, data;

	for (unsigned looks = 0; at < end && looks < LOOKS_MAX; looks++) {
		if (!find_data(fd, at, &end, &data))
			break;
		const bool tell = data - at >= VFS_HOLE_LEAST;
		if (tell && !parts_has_room(p, data == end))
			break;
		parts_add(p, at, data, tell);
		at = data < end ? end_of_data(fd, data, end) : end;
		parts_add(p, data, at, false);
	}
	parts_add(p, at, end, false);
	return end;
}

static void all_data(struct vfs_parts *p)
{
	p->part[0] = (struct vfs_part){ p->offset, p->count, false };
	p->n = 1;
	p->eof = false;
}

int vfs_parts(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_parts *p)
{
	struct vfs_io io = { .ctx = ctx, .node = n, .opened = p->opened };
	struct stat st;
	int rc, fd;

	all_data(p);
	if (p->count < VFS_HOLE_LEAST)
		return 0;
	rc = vfs_io_may_read(&io);
	if (rc < 0)
		return rc;
	fd = vfs_node_readable_fd(ctx, n);
	if (fd < 0)
		return (int)vfs_io_answer(fd);
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!may_have_holes(&st))
		return 0;
	/* The file system may have to read where its blocks are. */
	rn_fiber_move(ctx->fiber);
	const uint64_t size = (uint64_t)st.st_size;
	const uint64_t end = rn_min(p->offset + p->count, size);
	p->n = 0;
	p->eof = p->offset + p->count >= size;
	if (p->offset < end && parts_split(fd, p, end) < end)
		p->eof = true;
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Space of files: where data and holes are, reserving and giving back, and what a removal frees. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/util.h"
#include "vfs/data/operation.h"
#include "vfs/hold/file_change.h"
#include "vfs/meta/attr.h"
#include "vfs/space.h"
#include "vfs/vfs_worker.h"

/*
 * The parts of a range of a file: data, and holes that are worth telling of. Where it is in doubt, a
 * part is data, which is always true: the reader finds the zeros itself.
 *
 * Nothing stops others from changing the file meanwhile. A hole was one when the file system was
 * asked, and data are read after that, so a reader sees each part as it was at some moment of the
 * call.
 */

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
* Finds where the next data begins, or the end if there is none. Then the file is asked for its end again:
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

/* Returns where the data at `at` ends. Whoever reads them notices if there are fewer by then. */
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

static int space_once(struct vfs_space *s)
{
	const struct vfs_ring_fallocate f = {
		.fd = vfs_node_fd(s->ctx, s->node, VFS_FD_WRITE),
		.mode = s->what == VFS_SPACE_PUNCH ? FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE : 0,
		.offset = s->offset,
		.len = s->length,
		.as_user = s->ctx->cred.uid != 0,
	};

	return f.fd < 0 ? f.fd : vfs_ring_fallocate(s->ctx, &f);
}

/* A range to punch that ends behind what this file system can have is one to the end of the file.
 * False: it does not. */
static bool cut_at_end(struct vfs_space *s)
{
	struct stat st;
	int fd = vfs_node_fd(s->ctx, s->node, VFS_FD_WRITE);

	if (s->what != VFS_SPACE_PUNCH || fd < 0 || fstat(fd, &st) < 0)
		return false;
	if (s->offset + s->length <= (uint64_t)st.st_size)
		return false;
	s->length = (uint64_t)st.st_size > s->offset ? (uint64_t)st.st_size - s->offset : 0;
	return true;
}

/* Changes the space of the range. */
static int space_all(struct vfs_space *s)
{
	unsigned tries = 0;
	int rc;

	do
		rc = space_once(s);
	while (vfs_io_again(&tries, rc) || (rc == -EFBIG && cut_at_end(s) && s->length > 0));
	return rc == -EFBIG && s->what == VFS_SPACE_PUNCH && s->length == 0 ? 0 : rc;
}

static int space_check_range(struct vfs_space *s)
{
	if (s->length == 0)
		return -EINVAL;
	if (s->offset >= VFS_OFFSET_MAX)
		return -EFBIG;
	if (s->length <= VFS_OFFSET_MAX - s->offset)
		return 0;
	if (s->what == VFS_SPACE_RESERVE)
		return -EFBIG;
	s->length = VFS_OFFSET_MAX - s->offset; /* nothing is behind it */
	return 0;
}

/*
 * More than there can be is refused before file systems take all that there is, which everybody
 * else lacks until they notice, and ext4 keeps in part. What the file has already may be in the
 * range.
 */
static int check_free(const struct vfs_space *s)
{
	struct statvfs fs;
	struct stat st;
	int fd = vfs_node_fd(s->ctx, s->node, VFS_FD_WRITE);
	uint64_t there;

	if (s->what != VFS_SPACE_RESERVE)
		return 0;
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0 || fstatvfs(fd, &fs) < 0)
		return -errno;
	if (fs.f_blocks == 0 || fs.f_frsize == 0)
		return 0; /* without a limit */
	there = (uint64_t)st.st_blocks * 512 / fs.f_frsize + fs.f_bfree;
	return s->length / fs.f_frsize > there ? -ENOSPC : 0;
}

int vfs_space(struct vfs_space *s)
{
	const struct vfs_io io = { .ctx = s->ctx, .node = s->node, .opened = s->opened };
	struct vfs_file_change change = { .count = NULL };
	int rc = vfs_io_may_write(&io);

	if (rc == 0)
		rc = space_check_range(s);
	if (rc == 0)
		rc = vfs_file_change_begin(s->ctx, s->node, &change);
	if (rc == 0)
		rc = check_free(s);
	if (rc == 0)
		rc = space_all(s);
	vfs_node_changed(s->node); /* at least in part, perhaps */
	vfs_file_change_end(&change);
	return (int)vfs_io_answer(rc);
}

int vfs_seek(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_seek *s)
{
	struct vfs_io io = { .ctx = ctx, .node = n, .opened = s->opened };
	int rc = vfs_io_may_read(&io);
	struct stat st;
	off_t at;
	int fd;

	if (rc < 0)
		return rc;
	fd = vfs_node_readable_fd(ctx, n);
	if (fd < 0)
		return (int)vfs_io_answer(fd);
	if (fstat(fd, &st) < 0)
		return -errno;
	s->pos = (uint64_t)st.st_size;
	s->eof = true;
	if (s->offset >= s->pos)
		return -ENXIO;
	at = lseek(fd, (off_t)s->offset, s->hole ? SEEK_HOLE : SEEK_DATA);
	if (at < 0)
		return errno == ENXIO ? 0 : -errno; /* no data up to the end */
	if (at < st.st_size) {
		s->pos = (uint64_t)at;
		s->eof = false;
	}
	return 0;
}

/* Blocks that a file shares with others are found by FIEMAP, which XFS and btrfs answer without
 * reading data. */
#define EXTENTS 64u /* of one call */
#define CALLS 128u

struct sharing {
	uint64_t own, shared; /* bytes of the extents that were looked at */
	bool whole;	      /* all were */
};

/* A struct fiemap with room for its extents. */
union extents {
	struct fiemap head;
	uint8_t room[sizeof(struct fiemap) + EXTENTS * sizeof(struct fiemap_extent)];
};

/* Adds the extents of a call, and returns where the next one begins. */
static uint64_t sharing_add_extents(const union extents *e, struct sharing *s)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < rn_min(e->head.fm_mapped_extents, EXTENTS); i++) {
		const struct fiemap_extent *x = &e->head.fm_extents[i];

		if (x->fe_flags & FIEMAP_EXTENT_SHARED)
			s->shared += x->fe_length;
		else
			s->own += x->fe_length;
		s->whole = x->fe_flags & FIEMAP_EXTENT_LAST;
		next = x->fe_logical + x->fe_length;
	}
	return next;
}

/* -EOPNOTSUPP: the file system shares no blocks, as far as the kernel tells. */
static int sharing_measure(int fd, struct sharing *s)
{
	uint64_t at = 0;

	*s = (struct sharing){ 0 };
	for (unsigned i = 0; i < CALLS && !s->whole; i++) {
		union extents e;

		memset(&e.head, 0, sizeof(e.head));
		e.head.fm_start = at;
		e.head.fm_length = UINT64_MAX - at;
		e.head.fm_extent_count = EXTENTS;
		if (ioctl(fd, FS_IOC_FIEMAP, &e.head) != 0)
			return -errno;
		if (e.head.fm_mapped_extents == 0)
			s->whole = true;
		else
			at = sharing_add_extents(&e, s);
	}
	return 0;
}

int vfs_space_freed(struct vfs_ctx *ctx, struct vfs_node *n, const struct vfs_attr *attr,
		    uint64_t *out)
{
	struct sharing s;
	int fd, rc;

	*out = attr->used;
	if (n->type != S_IFDIR && attr->nlink > 1)
		*out = 0;
	if (n->type != S_IFREG || *out == 0)
		return 0;
	rn_fiber_move(ctx->fiber);
	fd = vfs_node_readable_fd(ctx, n);
	if (fd < 0)
		return (int)vfs_io_answer(fd);
	rc = sharing_measure(fd, &s);
	if (rc < 0) /* extents are unknown here: none is shared */
		return rc == -EOPNOTSUPP || rc == -ENOTTY || rc == -EINVAL ? 0 : rc;
	*out -= rn_min(*out, s.shared);
	if (!s.whole)
		*out = rn_min(*out, s.own);
	return 0;
}

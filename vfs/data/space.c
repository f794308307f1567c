/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/space.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "vfs/data/operation.h"
#include "vfs/hold/file_change.h"
#include "vfs/meta/permission.h"

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

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mirror of clients' locks in the kernel: open-file-description locks of one descriptor for
 * each file. All clients' locks are one owner's to the kernel, so it holds their union, and only
 * conflicts with local processes are left for it to find.
 */
#include <errno.h>
#include <fcntl.h>

#include "vfs/acting.h"
#include "vfs/file_private.h"
#include "vfs/instance.h"
#include "vfs/node_cache.h"

#define PART_LOCKS 2u
#define TRIES 3 /* a local lock that comes and goes between two calls */
#define OFFSET_MAX ((uint64_t)INT64_MAX)

/* false: all of the span is beyond what the kernel can lock. */
static bool to_flock(short type, const struct vfs_span *span, struct flock *fl)
{
	*fl = (struct flock){ .l_type = type, .l_whence = SEEK_SET };
	if (span->start > OFFSET_MAX)
		return false;
	fl->l_start = (off_t)span->start;
	fl->l_len = span->end >= OFFSET_MAX ? 0 : (off_t)(span->end - span->start + 1);
	return true;
}

static short kernel_type(enum vfs_lock_type type)
{
	return type == VFS_LOCK_WRITE ? F_WRLCK : F_RDLCK;
}

static int set(int fd, short type, const struct vfs_span *span)
{
	struct flock fl;

	if (!to_flock(type, span, &fl))
		return 0;
	return fcntl(fd, F_OFD_SETLK, &fl) == 0 ? 0 : -errno;
}

static bool is_enough(const struct vfs_file *f, enum vfs_lock_type type)
{
	return f->held == VFS_HELD_WRITE || (f->held == VFS_HELD_READ && type == VFS_LOCK_READ);
}

/* Locks on fd what the file's present descriptor, which can read only, has locked. */
static int take_over(struct vfs_file *f, int fd)
{
	int rc = 0;

	for (unsigned type = VFS_LOCK_READ; type <= VFS_LOCK_WRITE; type++) {
		struct vfs_range *r = vfs_range_first(&f->ranges, type);

		for (; rc == 0 && r; r = vfs_range_next(r))
			rc = set(fd, kernel_type(type),
				 &(struct vfs_span){ .start = r->start, .end = r->end });
	}
	return rc;
}

/* Under f->lock: the descriptor to close. */
static int install(struct vfs_file *f, int fd, enum vfs_held held)
{
	if (f->held == VFS_HELD_WRITE || f->held >= held)
		return fd;
	if (f->ranges.count > 0 && take_over(f, fd) != 0)
		return fd; /* a local lock is in the way of the stricter mirror: the old one stays
			    */
	if (f->unheld)
		atomic_fetch_sub(&f->vfs->files->unheld, 1);
	f->unheld = false;
	return vfs_file_hold(f, held, fd);
}

static int open_for(struct vfs_ctx *ctx, struct vfs_node *n, enum vfs_lock_type type,
		    enum vfs_held *held)
{
	int fd = vfs_act_as_root(ctx);

	if (fd != 0)
		return fd;
	*held = VFS_HELD_WRITE;
	if (type == VFS_LOCK_WRITE)
		fd = vfs_fd_reopen(n->vfs, n->path_fd, O_RDWR);
	if (type == VFS_LOCK_WRITE && fd >= 0)
		return fd;
	*held = VFS_HELD_READ;
	return vfs_fd_reopen(n->vfs, n->path_fd, O_RDONLY);
}

void vfs_mirror_prepare(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_file *f,
			enum vfs_lock_type type)
{
	enum vfs_held held;
	bool enough, has_one;
	int fd;

	pthread_mutex_lock(&f->lock);
	enough = is_enough(f, type);
	has_one = f->fd >= 0;
	pthread_mutex_unlock(&f->lock);
	if (enough || n->type != S_IFREG || (!has_one && !vfs_file_may_hold(f->vfs, PART_LOCKS)))
		return;
	fd = open_for(ctx, n, type, &held);
	if (fd < 0)
		return;
	pthread_mutex_lock(&f->lock);
	fd = install(f, fd, held);
	pthread_mutex_unlock(&f->lock);
	vfs_fd_close(f->vfs, fd);
}

int vfs_mirror_test(int fd, enum vfs_lock_type type, const struct vfs_span *span,
		    struct vfs_conflict *c)
{
	struct flock fl;

	if (!to_flock(kernel_type(type), span, &fl))
		return 0;
	if (fcntl(fd, F_OFD_GETLK, &fl) != 0 || fl.l_type == F_UNLCK)
		return 0;
	if (c)
		*c = (struct vfs_conflict){
			.type = fl.l_type == F_WRLCK ? VFS_LOCK_WRITE : VFS_LOCK_READ,
			.offset = (uint64_t)fl.l_start,
			.length = fl.l_len ? (uint64_t)fl.l_len : UINT64_MAX,
		};
	return -VFS_EDENIED;
}

static bool is_conflict(int rc)
{
	return rc == -EAGAIN || rc == -EACCES;
}

int vfs_mirror_lock(struct vfs_file *f, enum vfs_lock_type type, const struct vfs_span *span,
		    struct vfs_conflict *c)
{
	int rc = 0;

	if (f->held < VFS_HELD_READ) {
		if (!f->unheld)
			atomic_fetch_add(&f->vfs->files->unheld, 1);
		f->unheld = true;
		return 0;
	}
	if (f->held == VFS_HELD_READ)
		type = VFS_LOCK_READ;
	for (unsigned i = 0; i < TRIES; i++) {
		rc = set(f->fd, kernel_type(type), span);
		if (!is_conflict(rc))
			return rc == 0 ? 0 : -ENOLCK;
		if (vfs_mirror_test(f->fd, type, span, c) != 0)
			return -VFS_EDENIED;
	}
	if (c)
		*c = (struct vfs_conflict){ .type = VFS_LOCK_WRITE,
					    .offset = span->start,
					    .length = vfs_span_length(span) };
	return -VFS_EDENIED;
}

/* The last lock is gone: one call, however many there were. */
static void unlock_all(struct vfs_file *f)
{
	if (f->held >= VFS_HELD_READ)
		set(f->fd, F_UNLCK, &(struct vfs_span){ .start = 0, .end = UINT64_MAX });
	if (f->unheld)
		atomic_fetch_sub(&f->vfs->files->unheld, 1);
	f->unheld = false;
}

void vfs_mirror_unlock(struct vfs_file *f, const struct vfs_span *span)
{
	uint64_t at = span->start, until;

	if (f->ranges.count == 0) {
		unlock_all(f);
		return;
	}
	if (f->held < VFS_HELD_READ)
		return;
	/* What was locked to write was nobody else's; what was to read may be others', too. */
	for (;;) {
		bool covered = vfs_range_covered(&f->ranges, VFS_LOCK_READ, at, &until);

		if (until > span->end)
			until = span->end;
		if (!covered)
			set(f->fd, F_UNLCK, &(struct vfs_span){ .start = at, .end = until });
		if (until == span->end)
			break;
		at = until + 1;
	}
}

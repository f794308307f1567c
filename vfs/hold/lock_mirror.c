/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mirror of clients' locks in the kernel: open-file-description locks of one descriptor for
 * each file. All clients' locks are one owner's to the kernel, so it holds their union, and only
 * conflicts with local processes are left for it to find.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "lib/error.h"
#include "vfs/base/instance.h"
#include "vfs/hold/file.h"
#include "vfs/vfs_worker.h"
#include "vfs/worker/worker_state.h"

#define TRIES 3 /* a local lock that comes and goes between two calls */
#define OFFSET_MAX ((uint64_t)INT64_MAX)
#define GRAINS                                                                                     \
	512u /* pieces that a mirror should have; twice as many before it is made coarser          \
	      */
#define SHIFT_MAX 40u

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

/* Lock type that the descriptor's mode allows. */
static short type_for(enum vfs_held held, enum vfs_lock_type type)
{
	return held == VFS_HELD_READ ? F_RDLCK : kernel_type(type);
}

static int mirror_set_lock(int fd, short type, const struct vfs_span *span)
{
	struct flock fl;

	if (!to_flock(type, span, &fl))
		return 0;
	return fcntl(fd, F_OFD_SETLK, &fl) == 0 ? 0 : -errno;
}

/* Closing would not be enough: the node's data may go by the same open file. */
static void unlock_fd(int fd)
{
	mirror_set_lock(fd, F_UNLCK, &(struct vfs_span){ .start = 0, .end = UINT64_MAX });
}

static bool is_enough(const struct vfs_file *f, enum vfs_lock_type type)
{
	return f->held == VFS_HELD_WRITE || (f->held == VFS_HELD_READ && type == VFS_LOCK_READ);
}

static struct vfs_span widened(const struct vfs_span *span, uint8_t shift)
{
	uint64_t mask = (1ull << shift) - 1;

	return (struct vfs_span){ .start = span->start & ~mask, .end = span->end | mask };
}

/* The strictest type of all that is locked in span, or of the given one. */
static enum vfs_lock_type strictest(const struct vfs_file *f, enum vfs_lock_type type,
				    const struct vfs_span *span)
{
	return vfs_range_conflict(&f->ranges, NULL, VFS_LOCK_READ, span) ? VFS_LOCK_WRITE : type;
}

/* Locks on fd all that is locked, by grains of g's size, and counts the pieces. -RN_EDENIED: a local
 * lock is in the way of some. */
static int relock(const struct vfs_file *f, int fd, enum vfs_held held, struct vfs_grain *g)
{
	struct vfs_span rest = { .start = 0, .end = UINT64_MAX };
	const struct vfs_range *r;
	int rc = 0;

	g->pieces = 0;
	while ((r = vfs_range_conflict(&f->ranges, NULL, VFS_LOCK_WRITE, &rest)) != NULL) {
		struct vfs_span span = { .start = r->start, .end = r->end };

		if (span.start < rest.start)
			span.start = rest.start;
		span = widened(&span, g->shift);
		if (mirror_set_lock(fd, type_for(held, strictest(f, r->type, &span)), &span) != 0)
			rc = -RN_EDENIED;
		g->pieces++;
		if (span.end == UINT64_MAX)
			break;
		rest.start = span.end + 1;
	}
	return rc;
}

/* Too many pieces: makes grains of a size that leaves GRAINS of them, or twice what it was. Not
 * where local locks are in the way: what could not be widened stays exact. */
static void make_coarser(struct vfs_file *f)
{
	uint64_t extent = vfs_range_last_start(&f->ranges) - vfs_range_first_start(&f->ranges);
	struct vfs_grain *g = &f->grain;

	do
		g->shift++;
	while (g->shift < SHIFT_MAX && extent >> g->shift > GRAINS);
	relock(f, f->fd, f->held, g);
	g->coarser_at = g->pieces > GRAINS ? 2 * g->pieces : 2 * GRAINS;
}

static bool is_too_fine(const struct vfs_file *f)
{
	uint32_t pieces = f->grain.shift ? f->grain.pieces : f->ranges.count;

	return pieces >= (f->grain.coarser_at ? f->grain.coarser_at : 2 * GRAINS) &&
	       f->grain.shift < SHIFT_MAX;
}

/* Under f->lock: the descriptor to close. */
static int mirror_install(struct vfs_file *f, int fd, enum vfs_held held)
{
	if (f->held == VFS_HELD_WRITE || f->held >= held)
		return fd;
	/* A local lock in the way of a stricter mirror: the old one stays. */
	if (f->ranges.count > 0 && relock(f, fd, held, &f->grain) != 0) {
		unlock_fd(fd);
		return fd;
	}
	if (f->unheld)
		atomic_fetch_sub(&f->vfs->files->unheld, 1);
	f->unheld = false;
	/* The old one is closed when f->lock is free: until then its locks would be in the way of
	 * the new one's as a local process's are. */
	if (f->held >= VFS_HELD_READ)
		unlock_fd(f->fd);
	return vfs_file_hold(f, held, fd);
}

/*
 * A second descriptor of the open file by which the node's data go, if such a lock can be made with
 * it: nothing has to be opened, nor waited for. -1: there is none. For a read lock one that can
 * write is used only if a client has the file open to write: others may want to execute the file.
 */
static int share_data_fd(const struct vfs_node *n, enum vfs_lock_type type, bool writers,
			 enum vfs_held *held)
{
	int fd = -1;

	*held = VFS_HELD_READ;
	if (type == VFS_LOCK_READ)
		fd = atomic_load_explicit(&n->data_fd[VFS_FD_READ], memory_order_acquire);
	if (fd < 0 && (type == VFS_LOCK_WRITE || writers)) {
		*held = VFS_HELD_WRITE;
		fd = atomic_load_explicit(&n->data_fd[VFS_FD_WRITE], memory_order_acquire);
	}
	return fd >= 0 && vfs_fd_has_room(n->vfs) ? vfs_fd_dup(n->vfs, fd) : -1;
}

static int open_for(struct vfs_ctx *ctx, struct vfs_node *n, enum vfs_lock_type type,
		    enum vfs_held *held)
{
	int fd = vfs_act_as_root(ctx);

	if (fd != 0)
		return fd;
	*held = VFS_HELD_WRITE;
	if (type == VFS_LOCK_WRITE)
		fd = vfs_fd_reopen_data(n->vfs, n->path_fd, O_RDWR);
	if (type == VFS_LOCK_WRITE && (fd >= 0 || fd == -RN_ELEASE))
		return fd;
	*held = VFS_HELD_READ;
	return vfs_fd_reopen_data(n->vfs, n->path_fd, O_RDONLY);
}

int vfs_mirror_prepare(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_file *f,
		       enum vfs_lock_type type)
{
	enum vfs_held held;
	bool enough, has_one, writers;
	int fd;

	pthread_mutex_lock(&f->lock);
	enough = is_enough(f, type);
	has_one = f->fd >= 0;
	writers = f->accessing[1] > 0;
	pthread_mutex_unlock(&f->lock);
	if (enough || n->type != S_IFREG ||
	    (!has_one && !vfs_file_may_hold(f->vfs, VFS_PART_LOCKS)))
		return 0;
	fd = share_data_fd(n, type, writers, &held);
	if (fd < 0) {
		rn_fiber_move(ctx->fiber);
		fd = open_for(ctx, n, type, &held);
	}
	if (fd < 0)
		return fd == -RN_ELEASE ? fd : 0;
	pthread_mutex_lock(&f->lock);
	fd = mirror_install(f, fd, held);
	pthread_mutex_unlock(&f->lock);
	vfs_fd_close(f->vfs, fd);
	return 0;
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
	return -RN_EDENIED;
}

static bool is_conflict(int rc)
{
	return rc == -EAGAIN || rc == -EACCES;
}

static int lock_grains(struct vfs_file *f, enum vfs_lock_type type, const struct vfs_span *span)
{
	struct vfs_span wide = widened(span, f->grain.shift);
	bool is_new = !vfs_range_conflict(&f->ranges, NULL, VFS_LOCK_WRITE, &wide);
	int rc;

	rc = mirror_set_lock(f->fd, type_for(f->held, strictest(f, type, &wide)), &wide);
	if (rc == 0 && is_new)
		f->grain.pieces++;
	return rc;
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
	if (is_too_fine(f))
		make_coarser(f);
	if (f->grain.shift && lock_grains(f, type, span) == 0)
		return 0;
	if (f->held == VFS_HELD_READ)
		type = VFS_LOCK_READ;
	for (unsigned i = 0; i < TRIES; i++) {
		rc = mirror_set_lock(f->fd, kernel_type(type), span);
		if (!is_conflict(rc))
			return rc == 0 ? 0 : -ENOLCK;
		if (vfs_mirror_test(f->fd, type, span, c) != 0)
			return -RN_EDENIED;
	}
	if (c)
		*c = (struct vfs_conflict){ .type = VFS_LOCK_WRITE,
					    .offset = span->start,
					    .length = vfs_span_length(span) };
	return -RN_EDENIED;
}

/* The last lock is gone: one call, however many there were. */
static void unlock_all(struct vfs_file *f)
{
	if (f->held >= VFS_HELD_READ)
		unlock_fd(f->fd);
	if (f->unheld)
		atomic_fetch_sub(&f->vfs->files->unheld, 1);
	f->unheld = false;
	f->grain = (struct vfs_grain){ 0 };
}

static void unlock_gap(struct vfs_file *f, uint64_t start, uint64_t end)
{
	mirror_set_lock(f->fd, F_UNLCK, &(struct vfs_span){ .start = start, .end = end });
	if (f->grain.pieces)
		f->grain.pieces--;
}

void vfs_mirror_unlock(struct vfs_file *f, const struct vfs_span *span)
{
	struct vfs_span rest = widened(span, f->grain.shift), kept;
	const struct vfs_range *r;

	if (f->ranges.count == 0) {
		unlock_all(f);
		return;
	}
	if (f->held < VFS_HELD_READ)
		return;
	/* Others' locks there stay, and all that lies in one grain with them. */
	while ((r = vfs_range_conflict(&f->ranges, NULL, VFS_LOCK_WRITE, &rest)) != NULL) {
		kept = widened(&(struct vfs_span){ .start = r->start, .end = r->end },
			       f->grain.shift);
		if (kept.start > rest.start)
			unlock_gap(f, rest.start, kept.start - 1);
		if (kept.end >= rest.end)
			return;
		rest.start = kept.end + 1;
	}
	unlock_gap(f, rest.start, rest.end);
}

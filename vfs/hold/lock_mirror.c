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
#include "vfs/export/mounts.h"
#include "vfs/hold/file.h"
#include "vfs/vfs_worker.h"
#include "vfs/worker/worker_state.h"

#define TRIES 3 /* a local lock that comes and goes between two calls */
#define OFFSET_MAX ((uint64_t)INT64_MAX)
/* Pieces that a mirror should have; with twice as many it is made coarser. */
#define LOCK_UNITS 512u
#define SHIFT_MAX 40u
/* A remote file's mirror is always exact, as others are other servers' clients: so it has a limit. */
#define REMOTE_RANGES_MAX 65536u

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

/* Asks the kernel. f: the file whose lock is held, or NULL. */
static int mirror_call(struct vfs_file *f, int fd, int cmd, struct flock *fl)
{
	int rc;

	if (f && f->remote)
		pthread_mutex_unlock(&f->lock);
	rc = fcntl(fd, cmd, fl) == 0 ? 0 : -errno;
	if (f && f->remote)
		pthread_mutex_lock(&f->lock);
	return rc;
}

static int mirror_set_lock(struct vfs_file *f, int fd, short type, const struct vfs_span *span)
{
	struct flock fl;

	return to_flock(type, span, &fl) ? mirror_call(f, fd, F_OFD_SETLK, &fl) : 0;
}

static const struct vfs_span all_bytes = { .start = 0, .end = UINT64_MAX };

/* Closing would not be enough: the node's data may go by the same open file, and some file systems do not take it for an unlock. */
static void unlock_fd(struct vfs_file *f, int fd)
{
	mirror_set_lock(f, fd, F_UNLCK, &all_bytes);
}

static bool unlock_span(struct vfs_file *f, const struct vfs_span *span)
{
	const bool failed = mirror_set_lock(f, f->fd, F_UNLCK, span) != 0;

	if (failed)
		vfs_file_set_surplus(f, true);
	return !failed;
}

static bool is_conflict(int rc)
{
	return rc == -EAGAIN || rc == -EACCES;
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

/* Locks on fd all that is locked, in units of g's size, and counts the pieces. -RN_EDENIED: a local
 * lock is in the way of some; or -errno. */
static int relock(struct vfs_file *f, int fd, enum vfs_held held, struct vfs_lock_granularity *g)
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
		const int failed =
			mirror_set_lock(f, fd, type_for(held, strictest(f, r->type, &span)), &span);
		if (failed)
			rc = is_conflict(failed) ? -RN_EDENIED : failed;
		g->pieces++;
		if (span.end == UINT64_MAX)
			break;
		rest.start = span.end + 1;
	}
	return rc;
}

/* Too many pieces: takes a unit that leaves LOCK_UNITS pieces, or one of twice the size. Not
 * where local locks are in the way: what could not be widened stays exact. */
static void make_coarser(struct vfs_file *f)
{
	uint64_t extent = vfs_range_last_start(&f->ranges) - vfs_range_first_start(&f->ranges);
	struct vfs_lock_granularity *g = &f->granularity;

	do
		g->shift++;
	while (g->shift < SHIFT_MAX && extent >> g->shift > LOCK_UNITS);
	relock(f, f->fd, f->held, g);
	g->coarser_at = g->pieces > LOCK_UNITS ? 2 * g->pieces : 2 * LOCK_UNITS;
}

static bool is_too_fine(const struct vfs_file *f)
{
	uint32_t pieces = f->granularity.shift ? f->granularity.pieces : f->ranges.count;

	return !f->remote &&
	       pieces >= (f->granularity.coarser_at ? f->granularity.coarser_at : 2 * LOCK_UNITS) &&
	       f->granularity.shift < SHIFT_MAX;
}

/* Under f->lock: 0, or why the old descriptor stays. *fd: the descriptor to close. */
static int mirror_install(struct vfs_file *f, int *fd, enum vfs_held held)
{
	int rc = 0;

	if (f->held == VFS_HELD_WRITE || f->held >= held)
		return 0;
	if (f->ranges.count > 0)
		rc = relock(f, *fd, held, &f->granularity);
	/* A local lock in the way of a stricter mirror: the old one stays. */
	if (rc != 0) {
		unlock_fd(f, *fd);
		return rc;
	}
	if (f->unheld)
		atomic_fetch_sub(&f->vfs->files->unheld, 1);
	f->unheld = false;
	/* The old one is closed when f->lock is free: until then its locks would be in the way of
	 * the new one's as a local process's are. */
	if (f->held >= VFS_HELD_READ)
		unlock_fd(f, f->fd);
	*fd = vfs_file_hold(f, held, *fd);
	return 0;
}

/*
 * A second descriptor of the open file by which the node's data go, if such a lock can be made with
 * it: nothing has to be opened, nor waited for. -1: there is none. For a read lock one that can
 * write is used only if a client has the file open to write: others may want to execute the file.
 * A remote file's locks have an open file of their own, so that what could not be unlocked ends when it is closed.
 */
static int share_data_fd(const struct vfs_node *n, enum vfs_lock_type type, bool writers,
			 enum vfs_held *held)
{
	int fd = -1;

	*held = VFS_HELD_READ;
	if (!n->mnt->fs.local)
		return -1;
	if (type == VFS_LOCK_READ)
		fd = atomic_load_explicit(&n->data_fd[VFS_FD_READ], memory_order_acquire);
	if (fd < 0 && (type == VFS_LOCK_WRITE || writers)) {
		*held = VFS_HELD_WRITE;
		fd = atomic_load_explicit(&n->data_fd[VFS_FD_WRITE], memory_order_acquire);
	}
	return fd >= 0 && vfs_fd_has_room(n->vfs) ? vfs_fd_dup(n->vfs, fd) : -1;
}

/* As root. path_fd: the file (O_PATH). */
static int open_for(struct vfs_file *f, int path_fd, enum vfs_lock_type type, enum vfs_held *held)
{
	int fd = -1;

	*held = VFS_HELD_WRITE;
	if (type == VFS_LOCK_WRITE)
		fd = vfs_fd_reopen_data(f->vfs, path_fd, O_RDWR);
	if (type == VFS_LOCK_WRITE && (fd >= 0 || fd == -RN_ELEASE || f->remote))
		return fd;
	*held = VFS_HELD_READ;
	return vfs_fd_reopen_data(f->vfs, path_fd, O_RDONLY);
}

/* The client may come again, unless the file cannot be opened so at all. */
static int no_descriptor(int rc)
{
	return rc == -EMFILE || rc == -ENFILE || rc == -ETXTBSY ? -RN_EFULL : rc;
}

int vfs_mirror_prepare(struct vfs_ctx *ctx, struct vfs_node *n, struct vfs_file *f,
		       enum vfs_lock_type type)
{
	enum vfs_held held;
	bool enough, has_one, writers;
	int fd, rc;

	pthread_mutex_lock(&f->lock);
	enough = is_enough(f, type);
	has_one = f->fd >= 0;
	writers = f->accessing[1] > 0;
	pthread_mutex_unlock(&f->lock);
	if (enough || n->type != S_IFREG)
		return 0;
	if (!has_one && !vfs_file_may_hold(f->vfs, VFS_PART_LOCKS))
		return f->remote ? -RN_EFULL : 0;
	fd = share_data_fd(n, type, writers, &held);
	if (fd < 0) {
		rn_fiber_move(ctx->fiber);
		fd = vfs_act_as_root(ctx);
		if (fd == 0)
			fd = open_for(f, n->path_fd, type, &held);
	}
	if (fd < 0)
		return fd == -RN_ELEASE ? fd : (f->remote ? no_descriptor(fd) : 0);
	pthread_mutex_lock(&f->lock);
	rc = mirror_install(f, &fd, held);
	pthread_mutex_unlock(&f->lock);
	vfs_fd_close(f->vfs, fd);
	return rc != 0 && f->remote ? -ENOLCK : 0;
}

int vfs_mirror_again(struct vfs_file *f, int path_fd)
{
	enum vfs_held held;
	int fd, rc;

	if (!vfs_file_may_hold(f->vfs, VFS_PART_LOCKS))
		return -RN_EFULL;
	fd = open_for(f, path_fd, strictest(f, VFS_LOCK_READ, &all_bytes), &held);
	if (fd < 0)
		return no_descriptor(fd);
	pthread_mutex_lock(&f->lock);
	rc = relock(f, fd, held, &f->granularity);
	/* Widened locks may be in the way of what others have got beside them. */
	if (rc == -RN_EDENIED && f->granularity.shift) {
		unlock_fd(f, fd);
		f->granularity = (struct vfs_lock_granularity){ 0 };
		rc = relock(f, fd, held, &f->granularity);
	}
	if (rc == 0)
		fd = vfs_file_hold(f, held, fd);
	else
		unlock_fd(f, fd);
	pthread_mutex_unlock(&f->lock);
	vfs_fd_close(f->vfs, fd);
	return rc;
}

int vfs_mirror_test(struct vfs_file *f, int fd, enum vfs_lock_type type,
		    const struct vfs_span *span, struct vfs_conflict *c)
{
	struct flock fl;
	int rc;

	if (!to_flock(kernel_type(type), span, &fl))
		return 0;
	rc = mirror_call(f, fd, F_OFD_GETLK, &fl);
	if (rc != 0 || fl.l_type == F_UNLCK)
		return rc == 0 ? 0 : -ENOLCK;
	if (c)
		*c = (struct vfs_conflict){
			.type = fl.l_type == F_WRLCK ? VFS_LOCK_WRITE : VFS_LOCK_READ,
			.offset = (uint64_t)fl.l_start,
			.length = fl.l_len ? (uint64_t)fl.l_len : UINT64_MAX,
		};
	return -RN_EDENIED;
}

/* Unlocks what the kernel has locked, and no client. */
static void mend_locked(struct vfs_file *f)
{
	if (!f->surplus)
		return;
	vfs_file_set_surplus(f, false);
	vfs_mirror_unlock(f, &all_bytes);
}

static void mend_file(struct vfs_file *f)
{
	/* Whoever has the turn mends it, or has just failed. */
	if (f->remote && !rn_lock_try(&f->mirror_turn))
		return;
	pthread_mutex_lock(&f->lock);
	f->mirroring = f->remote;
	mend_locked(f);
	pthread_mutex_unlock(&f->lock);
	vfs_mirror_end(f);
}

void vfs_mirror_mend(struct vfs *vfs)
{
	unsigned at = 0, round;
	struct vfs_file *f;

	if (atomic_load(&vfs->files->surplus) == 0)
		return;
	round = ++vfs->files->mend_round;
	while ((f = vfs_file_next_surplus(vfs, &at, round)) != NULL) {
		mend_file(f);
		vfs_file_put(f);
	}
}

void vfs_mirror_begin(struct vfs_file *f)
{
	if (!f->remote)
		return;
	rn_lock_take(&f->mirror_turn);
	pthread_mutex_lock(&f->lock);
	f->mirroring = true;
	mend_locked(f);
	pthread_mutex_unlock(&f->lock);
}

void vfs_mirror_end(struct vfs_file *f)
{
	int fd;

	if (!f->remote)
		return;
	pthread_mutex_lock(&f->lock);
	f->mirroring = false;
	fd = vfs_file_release(f);
	pthread_mutex_unlock(&f->lock);
	vfs_fd_close(f->vfs, fd);
	rn_lock_give(&f->mirror_turn);
}

static int lock_units(struct vfs_file *f, enum vfs_lock_type type, const struct vfs_span *span)
{
	struct vfs_span wide = widened(span, f->granularity.shift);
	bool is_new = !vfs_range_conflict(&f->ranges, NULL, VFS_LOCK_WRITE, &wide);
	int rc;

	rc = mirror_set_lock(f, f->fd, type_for(f->held, strictest(f, type, &wide)), &wide);
	if (rc == 0 && is_new)
		f->granularity.pieces++;
	return rc;
}

static int lock_exactly(struct vfs_file *f, enum vfs_lock_type type, const struct vfs_span *span,
			struct vfs_conflict *c)
{
	int rc;

	for (unsigned i = 0; i < TRIES; i++) {
		rc = mirror_set_lock(f, f->fd, kernel_type(type), span);
		if (rc == 0)
			return 0;
		if (!is_conflict(rc)) {
			/* The file system may have locked it before it failed. */
			if (f->remote && rc != -ENOLCK)
				vfs_mirror_unlock(f, span);
			return -ENOLCK;
		}
		rc = vfs_mirror_test(f, f->fd, type, span, c);
		if (rc != 0)
			return rc;
	}
	if (c)
		*c = (struct vfs_conflict){ .type = VFS_LOCK_WRITE,
					    .offset = span->start,
					    .length = vfs_span_length(span) };
	return -RN_EDENIED;
}

int vfs_mirror_lock(struct vfs_file *f, enum vfs_lock_type type, const struct vfs_span *span,
		    struct vfs_conflict *c)
{
	if (f->remote && (!is_enough(f, type) || f->ranges.count >= REMOTE_RANGES_MAX))
		return -ENOLCK;
	if (f->held < VFS_HELD_READ) {
		if (!f->unheld)
			atomic_fetch_add(&f->vfs->files->unheld, 1);
		f->unheld = true;
		return 0;
	}
	if (is_too_fine(f))
		make_coarser(f);
	if (f->granularity.shift && lock_units(f, type, span) == 0)
		return 0;
	return lock_exactly(f, f->held == VFS_HELD_READ ? VFS_LOCK_READ : type, span, c);
}

/* Unlocks everything by one call, after the last lock has gone. */
static void unlock_all(struct vfs_file *f)
{
	if (f->held >= VFS_HELD_READ)
		unlock_span(f, &all_bytes);
	if (f->unheld)
		atomic_fetch_sub(&f->vfs->files->unheld, 1);
	f->unheld = false;
	f->granularity = (struct vfs_lock_granularity){ 0 };
}

static bool unlock_gap(struct vfs_file *f, uint64_t start, uint64_t end)
{
	if (!unlock_span(f, &(struct vfs_span){ .start = start, .end = end }))
		return false;
	if (f->granularity.pieces)
		f->granularity.pieces--;
	return true;
}

void vfs_mirror_unlock(struct vfs_file *f, const struct vfs_span *span)
{
	struct vfs_span rest = widened(span, f->granularity.shift), kept;
	const struct vfs_range *r;

	if (f->ranges.count == 0) {
		unlock_all(f);
		return;
	}
	if (f->held < VFS_HELD_READ)
		return;
	/* Others' locks there stay, and all that lies in one unit with them. */
	while ((r = vfs_range_conflict(&f->ranges, NULL, VFS_LOCK_WRITE, &rest)) != NULL) {
		kept = widened(&(struct vfs_span){ .start = r->start, .end = r->end },
			       f->granularity.shift);
		/* After a failure the rest is left to mend_locked, too. */
		if (kept.start > rest.start && !unlock_gap(f, rest.start, kept.start - 1))
			return;
		if (kept.end >= rest.end)
			return;
		rest.start = kept.end + 1;
	}
	unlock_gap(f, rest.start, rest.end);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/node/uncommitted.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/log_ids.h"
#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/node/cache.h"
#include "vfs/node/node.h"
#include "vfs/worker/worker_state.h"

/* Each has a descriptor of the node's, one to write, one that reports write-back errors, and perhaps one to read. */
#define PART_UNCOMMITTED 8u
#define LOG_SECONDS 10
#define FLUSHING_MAX 4u /* nodes of one export */

void vfs_uncommitted_init(struct vfs_uncommitted *u)
{
	pthread_mutex_init(&u->lock, NULL);
}

bool vfs_uncommitted_any(const struct vfs_node *n)
{
	return atomic_load_explicit(&n->uncommitted.state, memory_order_relaxed) != VFS_COMMITTED;
}

bool vfs_uncommitted_must_flush(const struct vfs_node *n)
{
	return vfs_uncommitted_any(n) && vfs_node_link(n) != VFS_GONE && !n->vfs->stopping;
}

bool vfs_uncommitted_may_flush(const struct vfs_node *n)
{
	return atomic_load(&n->exp->flushing) < FLUSHING_MAX;
}

bool vfs_uncommitted_fits(struct vfs_node *n)
{
	return vfs_uncommitted_any(n) ||
	       atomic_load_explicit(&n->vfs->uncommitted, memory_order_relaxed) <
		       (long)(n->vfs->cfg.max_fds / PART_UNCOMMITTED);
}

static void uncommitted_count(struct vfs_node *n, long by)
{
	atomic_fetch_add(&n->vfs->uncommitted, by);
	atomic_fetch_add(&n->exp->verifier->uncommitted, by);
}

static enum vfs_data_state state_locked(const struct vfs_uncommitted *u)
{
	if (u->writing > 0)
		return VFS_WRITING;
	return u->written != u->synced ? VFS_UNCOMMITTED : VFS_COMMITTED;
}

/* Every transition, after a change of the numbers that the state follows from. */
static void update_locked(struct vfs_node *n)
{
	struct vfs_uncommitted *u = &n->uncommitted;
	enum vfs_data_state before = atomic_load_explicit(&u->state, memory_order_relaxed);
	enum vfs_data_state now = state_locked(u);

	if (now == before)
		return;
	atomic_store_explicit(&u->state, now, memory_order_relaxed);
	if (before == VFS_COMMITTED)
		uncommitted_count(n, 1);
	else if (now == VFS_COMMITTED)
		uncommitted_count(n, -1);
}

void vfs_uncommitted_fini(struct vfs_node *n)
{
	if (vfs_uncommitted_any(n))
		uncommitted_count(n, -1);
	pthread_mutex_destroy(&n->uncommitted.lock);
}

void vfs_uncommitted_write(struct vfs_node *n)
{
	pthread_mutex_lock(&n->uncommitted.lock);
	n->uncommitted.writing++;
	update_locked(n);
	pthread_mutex_unlock(&n->uncommitted.lock);
}

void vfs_uncommitted_wrote(struct vfs_node *n, bool wrote)
{
	pthread_mutex_lock(&n->uncommitted.lock);
	n->uncommitted.writing--;
	n->uncommitted.written += wrote;
	update_locked(n);
	pthread_mutex_unlock(&n->uncommitted.lock);
}

void vfs_syncing_begin(struct vfs_syncing *s, struct vfs_node *n, enum vfs_syncing_kind kind)
{
	pthread_mutex_lock(&n->uncommitted.lock);
	s->kind = kind;
	s->covers = n->uncommitted.written;
	s->failed = n->uncommitted.failed;
	pthread_mutex_unlock(&n->uncommitted.lock);
}

/* There is no data so far behind the end of any file, so nothing is waited for. */
bool vfs_errors_seen(int fd)
{
	return fd >= 0 &&
	       sync_file_range(fd, INT64_MAX - 4096, 4096, SYNC_FILE_RANGE_WAIT_BEFORE) != 0 &&
	       errno != EINVAL && errno != EFBIG && errno != ESPIPE && errno != EINTR;
}

static int error_fd(const struct vfs_node *n)
{
	return atomic_load_explicit(&n->data_fd[VFS_FD_ERRORS], memory_order_acquire);
}

/* The same description: whatever it tells here changes the verifier. */
int vfs_errors_open(struct vfs_node *n)
{
	const int own = error_fd(n);
	const int fd = own >= 0 ? fcntl(own, F_DUPFD_CLOEXEC, 0) : -1;

	vfs_errors_load(n->vfs, fd);
	return fd;
}

void vfs_errors_load(struct vfs *vfs, int fd)
{
	if (fd >= 0)
		atomic_fetch_add(&vfs->fds, 1);
}

void vfs_errors_close(struct vfs *vfs, int fd)
{
	vfs_fd_close(vfs, fd);
}

/* The result says nothing of a disk that fails: success, or an operation that was broken off. */
static bool broken_off(int64_t res)
{
	return res >= 0 || res == -EAGAIN || res == -EINTR;
}

/* Answers of a write that say nothing of what was written before: to the request, and about space.
 * A write-back that finds no space is reported by VFS_FD_ERRORS. */
static bool of_the_request(int64_t res)
{
	switch (res) {
	case -ENOSPC:
	case -EDQUOT:
	case -EFBIG:
	case -EINVAL:
	case -EBADF:
	case -EPERM:
	case -EACCES:
	case -ENOMEM:
	case -ETXTBSY:
	case -EOPNOTSUPP:
		return true;
	default:
		return false;
	}
}

/* A disk that goes on failing is told of now and then. */
static void log_loss(struct vfs_node *n, int64_t res)
{
	struct vfs_verifier *v = n->exp->verifier;
	int64_t now = (int64_t)rn_now_coarse_seconds(), last = atomic_load(&v->logged_at);

	if (!n->vfs->cfg.log || (last && now - last < LOG_SECONDS) ||
	    !atomic_compare_exchange_strong(&v->logged_at, &last, now))
		return;
	const struct rn_log_event event = { .id = RN_ID_DATA_LOST, .export = n->exp->path };

	rn_log_event(
		n->vfs->cfg.log, RN_ERROR, &event,
		"%s: writing back failed (%s): data that clients have not committed may be lost, "
		"they are told to send them again",
		n->exp->path, strerror(res < 0 ? (int)-res : EIO));
}

void vfs_syncing_end(struct vfs_syncing *s, struct vfs_node *n, int64_t res)
{
	struct vfs_uncommitted *u = &n->uncommitted;
	const bool write = s->kind == VFS_SYNCING_WRITE;
	bool device = !broken_off(res) && !of_the_request(res);
	bool failed, told = false;

	pthread_mutex_lock(&u->lock);
	failed = vfs_errors_seen(error_fd(n)) || device || (!write && !broken_off(res));
	if (device)
		told = vfs_verifier_device_failed(n->vfs, n->exp->verifier, n->dev);
	else if (failed && vfs_uncommitted_any(n))
		told = vfs_verifier_change(n->vfs, n->exp->verifier);
	u->failed += failed;
	if ((failed || (s->kind == VFS_SYNCING_ALL && res >= 0)) && s->covers > u->synced)
		u->synced = s->covers;
	update_locked(n);
	s->lost = u->failed != s->failed;
	pthread_mutex_unlock(&u->lock);
	if (told)
		log_loss(n, res);
}

int vfs_writing_fd(struct vfs_ctx *ctx, struct vfs_node *n)
{
	int fd = vfs_node_fd(ctx, n, VFS_FD_ERRORS);

	return fd < 0 ? fd : vfs_node_fd(ctx, n, VFS_FD_WRITE);
}

#define RING_ENTRIES 64u
#define UNDER_WAY_MAX 32u /* of the ring's threads, which are as many */
#define TRIES 16u	  /* of an fsync that the kernel broke off */

struct vfs_flush {
	struct vfs_node *node;
	struct vfs_syncing syncing;
	struct vfs_ring_op op;
	unsigned tries;
	STAILQ_ENTRY(vfs_flush) link;
};

STAILQ_HEAD(flush_list, vfs_flush);

struct vfs_flusher {
	pthread_mutex_t lock;
	struct flush_list waiting;
	bool running; /* there is a thread to wake */
	bool stop;
	int wake; /* eventfd */
	pthread_t thread;
	struct vfs_worker *w; /* the thread's own, as what follows */
	unsigned under_way;
};

struct vfs_flusher *vfs_flusher_new(void)
{
	struct vfs_flusher *fl = calloc(1, sizeof(*fl));

	if (!fl)
		return NULL;
	pthread_mutex_init(&fl->lock, NULL);
	STAILQ_INIT(&fl->waiting);
	fl->wake = -1;
	return fl;
}

void vfs_flusher_free(struct vfs_flusher *fl)
{
	if (fl)
		pthread_mutex_destroy(&fl->lock);
	free(fl);
}

/* Whatever it was that failed: nobody will ask about these data again. */
static int verdict(int res)
{
	return res == -EAGAIN || res == -EINTR || res == -EINVAL || res == -EBADF ? -EIO : res;
}

static int fd_of(const struct vfs_node *n)
{
	return atomic_load_explicit(&n->data_fd[VFS_FD_WRITE], memory_order_acquire);
}

/* Whoever closes waits. */
static void flush_here(struct vfs_node *n)
{
	struct vfs_syncing syncing;
	int rc = -EINTR;

	vfs_syncing_begin(&syncing, n, VFS_SYNCING_ALL);
	for (unsigned i = 0; i < TRIES && rc == -EINTR; i++)
		rc = fsync(fd_of(n)) == 0 ? 0 : -errno;
	vfs_syncing_end(&syncing, n, verdict(rc));
}

static struct vfs_flush *flush_new(struct vfs_node *n)
{
	struct vfs_flush *f = calloc(1, sizeof(*f));

	if (f) {
		f->node = n;
		atomic_fetch_add(&n->exp->flushing, 1);
	}
	return f;
}

static void flush_free(struct vfs_flush *f)
{
	if (f)
		atomic_fetch_sub(&f->node->exp->flushing, 1);
	free(f);
}

static void flusher_start_flush(struct vfs_flusher *fl, struct vfs_flush *f);

static void flusher_flush_complete(struct vfs_ring_op *op, int res)
{
	struct vfs_flush *f = op->owner;
	struct vfs_node *n = f->node;
	struct vfs_flusher *fl = n->vfs->flusher;

	fl->under_way--;
	if ((res == -EINTR || res == -EAGAIN) && f->tries++ < TRIES) {
		flusher_start_flush(fl, f);
		return;
	}
	vfs_syncing_end(&f->syncing, n, verdict(res));
	flush_free(f);
	vfs_cache_close_written(n); /* nobody has used it since before the flush, else they stay */
	vfs_node_put(n);
}

static void flusher_start_flush(struct vfs_flusher *fl, struct vfs_flush *f)
{
	fl->under_way++;
	f->op.complete = flusher_flush_complete;
	f->op.owner = f;
	vfs_syncing_begin(&f->syncing, f->node, VFS_SYNCING_ALL);
	vfs_ring_begin_fsync(fl->w, &f->op, fd_of(f->node), 0, 0);
}

bool vfs_flush(struct vfs_node *n)
{
	struct vfs_flusher *fl = n->vfs->flusher;
	struct vfs_flush *f = flush_new(n);
	bool taken;

	pthread_mutex_lock(&fl->lock);
	taken = fl->running && f;
	if (taken) {
		STAILQ_INSERT_TAIL(&fl->waiting, f, link);
		eventfd_write(fl->wake, 1);
	}
	pthread_mutex_unlock(&fl->lock);
	if (taken)
		return false;
	flush_free(f);
	flush_here(n);
	return true;
}

static struct vfs_flush *flusher_next_flush(struct vfs_flusher *fl)
{
	struct vfs_flush *f = NULL;

	pthread_mutex_lock(&fl->lock);
	if (fl->under_way < UNDER_WAY_MAX && !fl->stop)
		f = STAILQ_FIRST(&fl->waiting);
	if (f)
		STAILQ_REMOVE_HEAD(&fl->waiting, link);
	pthread_mutex_unlock(&fl->lock);
	return f;
}

static bool flusher_goes_on(struct vfs_flusher *fl)
{
	bool on;

	pthread_mutex_lock(&fl->lock);
	on = !fl->stop || fl->under_way > 0;
	pthread_mutex_unlock(&fl->lock);
	return on;
}

static void flusher_on_wake(void *ctx)
{
	(void)ctx;
}

static int thread_start(struct vfs *vfs)
{
	struct vfs_flusher *fl = vfs->flusher;
	int rc = vfs_worker_new(vfs, RING_ENTRIES, &fl->w);

	if (rc == 0) {
		vfs_ring_threads(fl->w, UNDER_WAY_MAX);
		rc = vfs_worker_watch(fl->w, fl->wake, flusher_on_wake, NULL);
	}
	return rc;
}

/* From here on whoever closes waits, unless the daemon ends. */
static void thread_end(struct vfs_flusher *fl)
{
	struct vfs_flush *f;
	struct vfs_node *n;

	pthread_mutex_lock(&fl->lock);
	fl->running = false;
	pthread_mutex_unlock(&fl->lock);
	while ((f = STAILQ_FIRST(&fl->waiting)) != NULL) {
		STAILQ_REMOVE_HEAD(&fl->waiting, link);
		n = f->node;
		flush_free(f);
		if (!n->vfs->stopping)
			flush_here(n);
		vfs_node_put(n);
	}
	vfs_worker_free(fl->w);
	fl->w = NULL;
}

static void *flusher_thread_main(void *arg)
{
	struct vfs *vfs = arg;
	struct vfs_flusher *fl = vfs->flusher;
	int rc = thread_start(vfs);

	while (rc == 0 && flusher_goes_on(fl)) {
		struct vfs_flush *f;

		while ((f = flusher_next_flush(fl)) != NULL)
			flusher_start_flush(fl, f);
		rc = vfs_worker_wait(fl->w, -1);
		if (rc == -ETIME || rc == -EINTR || rc == -EAGAIN)
			rc = 0;
	}
	thread_end(fl);
	return NULL;
}

int vfs_flusher_start(struct vfs *vfs)
{
	struct vfs_flusher *fl = vfs->flusher;
	int rc;

	fl->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (fl->wake < 0)
		return -errno;
	fl->running = true;
	rc = -pthread_create(&fl->thread, NULL, flusher_thread_main, vfs);
	if (rc < 0) {
		fl->running = false;
		close(fl->wake);
		fl->wake = -1;
		return rc;
	}
	pthread_setname_np(fl->thread, "flusher");
	return 0;
}

void vfs_flusher_stop(struct vfs *vfs)
{
	struct vfs_flusher *fl = vfs->flusher;

	if (fl->wake < 0)
		return;
	vfs->stopping = true;
	pthread_mutex_lock(&fl->lock);
	fl->stop = true;
	eventfd_write(fl->wake, 1);
	pthread_mutex_unlock(&fl->lock);
	pthread_join(fl->thread, NULL);
	close(fl->wake);
	fl->wake = -1;
}

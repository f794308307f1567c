/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/node/flush.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/node/cache.h"
#include "vfs/node/node.h"
#include "vfs/node/uncommitted.h"
#include "vfs/worker/worker_state.h"

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

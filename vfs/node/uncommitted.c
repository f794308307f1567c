/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/node/uncommitted.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/log_ids.h"
#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/node/node.h"

/* Each has a descriptor of the node's, one to write, the witness, and perhaps one to read. */
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

bool vfs_uncommitted_room(struct vfs_node *n)
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

/*
 * Has a write-back failed that the witness was not yet asked about? There is no data so far behind
 * the end of any file, so nothing is waited for.
 */
static bool witness_saw(const struct vfs_node *n)
{
	int fd = atomic_load_explicit(&n->data_fd[VFS_FD_WITNESS], memory_order_acquire);

	return fd >= 0 &&
	       sync_file_range(fd, INT64_MAX - 4096, 4096, SYNC_FILE_RANGE_WAIT_BEFORE) != 0 &&
	       errno != EINVAL && errno != EFBIG && errno != ESPIPE && errno != EINTR;
}

/* The operation was broken off, and says nothing of the disk. */
static bool broken_off(int64_t res)
{
	return res >= 0 || res == -EAGAIN || res == -EINTR;
}

/* Answers of a write that say nothing of what was written before: to the request, and about space.
 * A write-back that finds no space is the witness's to tell. */
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
	failed = witness_saw(n) || device || (!write && !broken_off(res));
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
	int fd = vfs_node_fd(ctx, n, VFS_FD_WITNESS);

	return fd < 0 ? fd : vfs_node_fd(ctx, n, VFS_FD_WRITE);
}

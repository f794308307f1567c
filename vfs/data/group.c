/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/data/group.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/clock.h"
#include "vfs/base/instance.h"
#include "vfs/data/log_sync.h"
#include "vfs/data/operation.h"
#include "vfs/data/sync.h"
#include "vfs/export/mounts.h"
#include "vfs/node/uncommitted.h"
#include "vfs/worker/worker_state.h"

/*
 * A disk that usually answers within this time is fast. Then the processor is what limits the
 * server: one flush at a time covers as many changes as there are by then, and a worker without
 * other work waits for it itself, as the ring costs two switches of threads. A slow disk must not
 * stand still between two flushes: the next ones are handed to the kernel while one is under way.
 */
#define FAST_NS (500 * 1000)
#define SLOW_UNDER_WAY 4u

static uint64_t dev_of(const struct vfs_sync *s)
{
	for (unsigned i = 0; i < VFS_SYNC_NODES; i++) {
		if (s->node[i])
			return s->node[i]->dev;
	}
	return 0;
}

static bool without_data(const struct vfs_sync *s, unsigned i)
{
	return s->node[i]->type != S_IFREG || s->data_from == VFS_SYNC_METADATA ||
	       (s->how == VFS_SYNC_MADE && i == 1);
}

bool vfs_group_takes(const struct vfs_sync *s)
{
	bool any = false;

	if (s->ctx->access.flags & VFS_ASYNC)
		return false;
	for (unsigned i = 0; i < VFS_SYNC_NODES; i++) {
		if (!s->node[i])
			continue;
		if (!s->node[i]->mnt->one_log || s->node[i]->dev != dev_of(s) ||
		    !without_data(s, i))
			return false;
		any = true;
	}
	return any;
}

static struct vfs_node *directory_of(const struct vfs_sync *s)
{
	for (unsigned i = 0; i < VFS_SYNC_NODES; i++) {
		if (s->node[i] && s->node[i]->type == S_IFDIR)
			return s->node[i];
	}
	return NULL;
}

/* The node whose fsync covers the whole change: what was made is changed with its entry in the
 * directory, or after. NULL: none that is known, or can be opened. */
static struct vfs_node *last_changed(const struct vfs_sync *s)
{
	struct vfs_node *n = s->node[0];

	if (s->how == VFS_SYNC_ONE_STEP)
		return directory_of(s);
	if (s->how == VFS_SYNC_MADE)
		n = s->node[1];
	else if (s->node[1] || s->node[2])
		n = NULL;
	return n && (n->type == S_IFREG || n->type == S_IFDIR) ? n : NULL;
}

static bool is_fast(const struct vfs_group *g, uint64_t dev)
{
	return g->dev == dev && g->usual_ns < FAST_NS;
}

static bool group_may_flush(const struct vfs_worker *w, uint64_t dev)
{
	unsigned left = is_fast(&w->group, dev) ? 1 : SLOW_UNDER_WAY;
	const struct vfs_sync *s;

	for (s = STAILQ_FIRST(&w->group.under_way); s; s = STAILQ_NEXT(s, priv.link)) {
		if (dev_of(s) == dev && --left == 0)
			return false;
	}
	return true;
}

/* The oldest change whose file system may have another flush, or NULL. */
static struct vfs_sync *group_next_sync(struct vfs_worker *w)
{
	struct vfs_sync *s;

	for (s = STAILQ_FIRST(&w->group.waiting); s; s = STAILQ_NEXT(s, priv.link)) {
		if (group_may_flush(w, dev_of(s)))
			return s;
	}
	return NULL;
}

/* Moves the changes that wait for the same file system to first, and finds how to flush them. */
static unsigned group_gather(struct vfs_worker *w, struct vfs_sync *first)
{
	struct vfs_sync_list *waiting = &w->group.waiting;
	struct vfs_sync *s, *after;
	unsigned n = 1;

	STAILQ_REMOVE(waiting, first, vfs_sync, priv.link);
	STAILQ_INIT(&first->priv.others);
	first->priv.by = last_changed(first);
	for (s = STAILQ_FIRST(waiting); s; s = after) {
		after = STAILQ_NEXT(s, priv.link);
		if (dev_of(s) != dev_of(first))
			continue;
		STAILQ_REMOVE(waiting, s, vfs_sync, priv.link);
		STAILQ_INSERT_TAIL(&first->priv.others, s, priv.link);
		if (last_changed(s) != first->priv.by)
			first->priv.by = NULL;
		n++;
	}
	return n;
}

/* A loss of data that was not committed is found by whoever syncs its file. */
static void begin_one(struct vfs_sync *s)
{
	for (unsigned i = 0; i < VFS_SYNC_NODES; i++) {
		if (s->node[i] && s->node[i]->type == S_IFREG)
			vfs_syncing_begin(&s->priv.syncing[i], s->node[i], VFS_SYNCING_PART);
	}
}

static void group_end_sync(struct vfs_sync *s, int res)
{
	vfs_worker_of(s->ctx)->in_flight--;
	for (unsigned i = 0; i < VFS_SYNC_NODES; i++) {
		if (s->node[i])
			vfs_sync_seen(s, i, res);
	}
	s->priv.result = res < 0 && res != -EINVAL ? (int)vfs_io_answer(res) : 0;
	vfs_wait_ended(s->priv.wait);
}

/* Calls end for all changes of the flush; the first one's memory may be gone after its end. */
static void end_all(struct vfs_sync *first, int res, void (*end)(struct vfs_sync *s, int res))
{
	struct vfs_sync_list all = STAILQ_HEAD_INITIALIZER(all);
	struct vfs_sync *s;

	STAILQ_CONCAT(&all, &first->priv.others);
	STAILQ_INSERT_HEAD(&all, first, priv.link);
	while ((s = STAILQ_FIRST(&all)) != NULL) {
		STAILQ_REMOVE_HEAD(&all, priv.link);
		end(s, res);
	}
}

static void each_by_itself(struct vfs_sync *s, int res)
{
	(void)res;
	vfs_worker_of(s->ctx)->in_flight--;
	vfs_sync_each(s);
}

static void measured(struct vfs_group *g, uint64_t dev, uint64_t took)
{
	g->usual_ns = g->dev == dev ? (3 * g->usual_ns + took) / 4 : took;
	g->dev = dev;
}

bool vfs_group_may_wait(const struct vfs_worker *w, const struct vfs_node *n)
{
	return w->in_flight == 0 && STAILQ_EMPTY(&w->finished) && is_fast(&w->group, n->dev);
}

void vfs_group_waited(struct vfs_worker *w, const struct vfs_node *n, uint64_t ns)
{
	measured(&w->group, n->dev, ns);
}

/* An error of a file may be about its data, which no change of others depends on: each is flushed
 * by itself then. Any other error is everybody's. */
static void flush_end(struct vfs_sync *first, int res)
{
	struct vfs_worker *w = vfs_worker_of(first->ctx);
	struct vfs *vfs = first->ctx->vfs;
	const int log_fd = first->priv.log_fd;
	const bool of_file = first->priv.by && first->priv.by->type == S_IFREG;

	measured(&w->group, dev_of(first), rn_now_ns() - first->priv.began);
	STAILQ_REMOVE(&w->group.under_way, first, vfs_sync, priv.link);
	end_all(first, res, res < 0 && of_file ? each_by_itself : group_end_sync);
	if (log_fd >= 0)
		vfs_fd_close(vfs, log_fd);
}

static void group_flush_complete(struct vfs_ring_op *op, int res)
{
	flush_end(op->owner, res);
}

static int open_target(struct vfs_sync *first)
{
	const struct vfs_node *n = first->node[0] ? first->node[0] : first->node[1];
	int fd = -1;

	first->priv.log_fd = -1;
	if (first->priv.by)
		fd = vfs_node_readable_fd(first->ctx, first->priv.by);
	if (fd >= 0)
		return fd;
	first->priv.by = NULL;
	first->priv.log_fd = vfs_log_last(first->ctx, n->mnt);
	return first->priv.log_fd;
}

/* True if fsync(2), which writes all data of a file, does for the flush what the ring does. */
static bool has_no_data(const struct vfs_sync *first)
{
	const struct vfs_node *by = first->priv.by;

	return !by || by->type == S_IFDIR || first->how == VFS_SYNC_MADE;
}

/* No data of a file are behind this offset, so only its metadata are flushed. */
static void flush_by_ring(struct vfs_worker *w, struct vfs_sync *first, int fd)
{
	const bool file = first->priv.by && first->priv.by->type == S_IFREG;
	struct vfs_ring_op *op = &first->priv.op[0];

	op->complete = group_flush_complete;
	op->owner = first;
	vfs_ring_begin_fsync(w, op, fd, file ? VFS_OFFSET_MAX - 1 : 0, file ? 1 : 0);
}

/* True if the flush has ended already. */
static bool group_flush(struct vfs_worker *w, struct vfs_sync *first, bool idle)
{
	const unsigned n = group_gather(w, first);
	const int fd = open_target(first);
	struct vfs_sync *s;

	if (fd < 0) {
		end_all(first, 0, each_by_itself);
		return false;
	}
	begin_one(first);
	for (s = STAILQ_FIRST(&first->priv.others); s; s = STAILQ_NEXT(s, priv.link))
		begin_one(s);
	first->priv.began = rn_now_ns();
	STAILQ_INSERT_TAIL(&w->group.under_way, first, priv.link);
	idle = idle && w->in_flight == n && is_fast(&w->group, dev_of(first)) && has_no_data(first);
	if (idle)
		flush_end(first, fsync(fd) == 0 ? 0 : -errno);
	else
		flush_by_ring(w, first, fd);
	return idle;
}

/* Looks around once before it flushes, as more changes may have arrived that can share it. */
static enum vfs_turn group_turn(struct vfs_worker *w, bool idle)
{
	struct vfs_sync *s = group_next_sync(w);

	if (s && !w->group.looked) {
		w->group.looked = true;
		return VFS_TURN_POLL;
	}
	w->group.looked = false;
	for (; s; s = group_next_sync(w)) {
		if (group_flush(w, s, idle))
			return VFS_TURN_DONE;
	}
	return STAILQ_EMPTY(&w->finished) ? VFS_TURN_WAIT : VFS_TURN_POLL;
}

void vfs_group_add(struct vfs_sync *s)
{
	struct vfs_worker *w = vfs_worker_of(s->ctx);

	w->in_flight++;
	w->group.turn = group_turn;
	STAILQ_INSERT_TAIL(&w->group.waiting, s, priv.link);
}

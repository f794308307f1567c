/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Durability of metadata, one fsync for each node that was changed. Changes on a file system with
 * one log share fsyncs instead (group commit, below).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/clock.h"
#include "vfs/base/instance.h"
#include "vfs/data/operation.h"
#include "vfs/export/mounts.h"
#include "vfs/node/uncommitted.h"
#include "vfs/worker/worker_state.h"

/*
 * Symbolic links, FIFOs, sockets and devices cannot be opened for fsync(2), and of a file or
 * directory there may be no descriptor left when its change is to be made durable. The export's
 * root is always open, and each file system has a way from there that leaves files' data alone:
 *
 *	ext4, XFS	One log, written in order: an fsync of an inode that was changed later takes
 *			all earlier changes along. A file without a name (O_TMPFILE) is such an
 *			inode. An fsync of the directory above is not enough: XFS writes the log
 *			only as far as that directory has changed.
 *	btrfs		Commits the transaction: an fsync logs one inode only.
 *	tmpfs, ramfs	Nothing to be done.
 *	others		syncfs(2), which writes the data of all files.
 */
static int sync_all(int fd)
{
	return syncfs(fd) == 0 ? 0 : -errno;
}

/* The transaction that is under way, data of files that are written without it excepted. */
static int commit_btrfs(int fd)
{
	uint64_t transaction = 0;

	if (ioctl(fd, BTRFS_IOC_START_SYNC, &transaction) != 0)
		return -errno;
	return ioctl(fd, BTRFS_IOC_WAIT_SYNC, &transaction) == 0 ? 0 : -errno;
}

/* A new file without a name, the last thing that the log of a file system with one log
 * (vfs/fs/file_system.h) has: an fsync of it covers all earlier changes of metadata. To be closed by
 * vfs_fd_close. -1: the file system takes none now (full, read-only, a file is exported), or has
 * more than one log. */
static int vfs_log_last(struct vfs_ctx *ctx, const struct vfs_mount *mnt)
{
	int fd = -1;

	if (mnt->fs.one_log && vfs_act_as_root(ctx) == 0)
		fd = vfs_fd_openat(ctx->vfs, mnt->fd, ".", O_TMPFILE | O_RDWR, 0);
	return fd < 0 ? -1 : fd;
}

/*
 * Makes all changes of inodes and directories durable that were made on the mount's file system
 * before the call; with data, the data of all files, too. 0: done, or begun: *fd (-1: none) is a
 * descriptor that is left to fsync and to close by vfs_fd_close. It needs no descriptor where there
 * is none to be had. May wait for the disk.
 */
static int vfs_log_sync(struct vfs_ctx *ctx, const struct vfs_mount *mnt, bool data, int *fd)
{
	struct statfs fs;
	int rc;

	*fd = data ? -1 : vfs_log_last(ctx, mnt);
	if (*fd >= 0)
		return 0;
	if (data || fstatfs(mnt->fd, &fs) != 0)
		return sync_all(mnt->fd);
	switch ((unsigned long)fs.f_type) {
	case TMPFS_MAGIC:
	case RAMFS_MAGIC:
		return 0;
	case BTRFS_SUPER_MAGIC:
		rc = commit_btrfs(mnt->fd);
		return rc == -ENOTTY || rc == -EINVAL ? sync_all(mnt->fd) : rc;
	default:
		return sync_all(mnt->fd);
	}
}

/*
 * Group commit. Changes of metadata that wait at a worker for the same file system share one fsync,
 * where the file system has one log (vfs/fs/file_system.h). The rule: a flush covers the changes that were
 * made before it was started. One that is under way covers no change that comes later; such a change
 * waits for the next flush. Flushes that wait in the kernel, of several workers too, are joined by
 * it: it commits its journal once for all who wait.
 *
 * A group of changes is flushed by the inode that all of them are about, else by one that is
 * changed last of all (vfs_log_last).
 */

/*
 * A disk that usually answers within this time is fast. Then the processor is what limits the
 * server: one flush at a time covers as many changes as there are by then, and a worker without
 * other work waits for it itself, as the ring costs two switches of threads. A slow disk must not
 * stand still between two flushes: the next ones are handed to the kernel while one is under way.
 */
#define FAST_NS (500 * 1000)
#define SLOW_UNDER_WAY 4u
/*
 * A worker waits itself for a slow disk, too, if this takes no longer, and no other change waited for a flush at the last ones: that of
 * a client which makes one change after the other. Calls that come meanwhile would wait for the worker.
 */
#define ALONE_NS (10 * 1000 * 1000)
#define CROWDED 32u

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

/* True if the sync is one of metadata only, on a file system with one log. */
static bool vfs_group_takes(const struct vfs_sync *s)
{
	bool any = false;

	if (s->ctx->access.flags & VFS_ASYNC)
		return false;
	for (unsigned i = 0; i < VFS_SYNC_NODES; i++) {
		if (!s->node[i])
			continue;
		if (!s->node[i]->mnt->fs.one_log || s->node[i]->dev != dev_of(s) ||
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

/* Counted by flush. True if the worker may wait for it on a slow disk. */
static bool is_alone(struct vfs_worker *w, const struct vfs_sync *first)
{
	struct vfs_group *g = &w->group;

	if (!STAILQ_EMPTY(&first->priv.others) || atomic_load(&w->vfs->syncing) > 1)
		g->crowded = CROWDED;
	else if (g->crowded > 0)
		g->crowded--;
	return g->crowded == 0 && g->dev == dev_of(first) && g->usual_ns < ALONE_NS;
}

static bool calls_wait_for(const struct vfs_worker *w)
{
	struct pollfd p = { .fd = w->watch.fd, .events = POLLIN };

	return p.fd >= 0 && poll(&p, 1, 0) == 1;
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

/* Records how the fsync that node[i] waited for has ended. Only a regular file has data whose
 * loss the end of another's sync may tell. What else fails tells of the device. */
static void vfs_sync_seen(struct vfs_sync *s, unsigned i, int res)
{
	struct vfs_node *n = s->node[i];

	if (n->type != S_IFREG && res >= 0)
		return;
	if (n->type != S_IFREG)
		vfs_syncing_begin(&s->priv.syncing[i], n, VFS_SYNCING_PART);
	vfs_syncing_end(&s->priv.syncing[i], n, res);
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

static bool has_data(const struct vfs_node *n)
{
	return n->type == S_IFREG || n->type == S_IFDIR;
}

/* True if node[i] has changes that are to become durable. */
static bool vfs_sync_wanted(const struct vfs_sync *s, unsigned i)
{
	const struct vfs_node *n = s->node[i];

	if (!n || (s->ctx->access.flags & VFS_ASYNC) || (s->with_entry && !has_data(n)))
		return false;
	for (unsigned j = 0; j < i; j++) {
		if (s->node[j] == n)
			return false;
	}
	return true;
}

static void sync_by_descriptor(struct vfs_sync *s, unsigned i, int fd)
{
	struct vfs_ring_op *op = &s->priv.op[i];
	const uint64_t from = s->data_from < VFS_OFFSET_MAX ? s->data_from : VFS_OFFSET_MAX - 1;

	/* The call that a synchronous write makes: data of the range, all metadata. One byte stands
	 * for its page, behind which a file that was cut there has none. */
	if (s->node[i]->type == S_IFREG && s->data_from > 0)
		vfs_ring_begin_fsync(vfs_worker_of(s->ctx), op, fd, from, 1);
	else
		vfs_ring_begin_fsync(vfs_worker_of(s->ctx), op, fd, 0, 0);
}

/* A write-back error of data written before keeps an fsync from getting as far as the metadata.
 * Whoever wrote them learns it by the verifier; the change is not told by theirs. */
static bool sync_again(struct vfs_sync *s, unsigned i, int error)
{
	int fd;

	if (error == -EAGAIN || error == -EINTR || error == -EINVAL)
		return false;
	if (s->data_from != VFS_SYNC_METADATA || (s->priv.again & 1u << i) ||
	    s->node[i]->type != S_IFREG || i == s->priv.by_log)
		return false;
	s->priv.again |= 1u << i;
	fd = vfs_node_readable_fd(s->ctx, s->node[i]);
	if (fd >= 0)
		sync_by_descriptor(s, i, fd);
	return fd >= 0;
}

/* A file system that cannot fsync a directory (-EINVAL) has no durability to offer there. */
static void sync_complete(struct vfs_ring_op *op, int res)
{
	struct vfs_sync *s = op->owner;
	const unsigned i = (unsigned)(op - s->priv.op);

	if (s->node[i] && s->priv.started & 1u << i)
		vfs_sync_seen(s, i, res);
	if (res < 0 && sync_again(s, i, res))
		return;
	if (i == s->priv.by_log) {
		vfs_fd_close(s->ctx->vfs, s->priv.log_fd);
		s->priv.log_fd = -1;
	}
	if (res < 0 && res != -EINVAL && s->priv.result == 0)
		s->priv.result = (int)vfs_io_answer(res);
	if (--s->priv.pending == 0)
		vfs_wait_ended(s->priv.wait);
}

/* Once for the metadata of all nodes, which are of one file system. */
static void sync_by_log(struct vfs_sync *s, unsigned i)
{
	struct vfs_ring_op *op = &s->priv.op[i];
	const bool data = s->node[i]->type == S_IFREG && s->data_from != VFS_SYNC_METADATA;
	int none, rc = 0;

	if (data) {
		rc = vfs_log_sync(s->ctx, s->node[i]->mnt, true, &none);
	} else if (s->priv.by_log == VFS_SYNC_NODES) {
		s->priv.by_log = i;
		rc = vfs_log_sync(s->ctx, s->node[i]->mnt, false, &s->priv.log_fd);
	}
	if (rc == 0 && i == s->priv.by_log && s->priv.log_fd >= 0)
		vfs_ring_begin_fsync(vfs_worker_of(s->ctx), op, s->priv.log_fd, 0, 0);
	else
		vfs_ring_finish(vfs_worker_of(s->ctx), op, rc);
}

static void sync_start(struct vfs_sync *s, unsigned i)
{
	struct vfs_ring_op *op = &s->priv.op[i];
	int fd = has_data(s->node[i]) ? vfs_node_readable_fd(s->ctx, s->node[i]) : -EINVAL;

	op->complete = sync_complete;
	op->owner = s;
	s->priv.started |= 1u << i;
	if (s->node[i]->type == S_IFREG)
		vfs_syncing_begin(&s->priv.syncing[i], s->node[i],
				  fd >= 0 && s->data_from == 0 ? VFS_SYNCING_ALL
							       : VFS_SYNCING_PART);
	if (fd < 0)
		sync_by_log(s, i);
	else
		sync_by_descriptor(s, i, fd);
}

/* Makes the changes of each node durable by itself. */
static void vfs_sync_each(struct vfs_sync *s)
{
	bool wanted[VFS_SYNC_NODES];

	s->priv.pending = 0;
	s->priv.again = 0;
	s->priv.started = 0;
	s->priv.by_log = VFS_SYNC_NODES;
	s->priv.log_fd = -1;
	for (unsigned i = 0; i < VFS_SYNC_NODES; i++) {
		wanted[i] = vfs_sync_wanted(s, i);
		s->priv.pending += wanted[i];
	}
	if (s->priv.pending == 0) {
		vfs_wait_ended(s->priv.wait);
		return;
	}
	/* Nothing else: an operation that has ended at once keeps the worker from waiting. */
	for (unsigned i = 0; i < VFS_SYNC_NODES; i++) {
		if (wanted[i])
			sync_start(s, i);
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

/* The worker waits itself, instead of the ring. */
static void flush_and_wait(struct vfs_worker *w, struct vfs_sync *first, int fd, bool fast)
{
	const int res = fsync(fd) == 0 ? 0 : -errno;

	if (!fast && calls_wait_for(w))
		w->group.crowded = CROWDED;
	flush_end(first, res);
}

/* True if the flush has ended already. */
static bool group_flush(struct vfs_worker *w, struct vfs_sync *first, bool idle)
{
	const unsigned n = group_gather(w, first);
	const int fd = open_target(first);
	const bool fast = is_fast(&w->group, dev_of(first));
	struct vfs_sync *s;
	bool alone;

	if (fd < 0) {
		end_all(first, 0, each_by_itself);
		return false;
	}
	begin_one(first);
	for (s = STAILQ_FIRST(&first->priv.others); s; s = STAILQ_NEXT(s, priv.link))
		begin_one(s);
	first->priv.began = rn_now_ns();
	STAILQ_INSERT_TAIL(&w->group.under_way, first, priv.link);
	alone = is_alone(w, first);
	idle = idle && w->in_flight == n && (fast || alone) && has_no_data(first);
	if (idle)
		flush_and_wait(w, first, fd, fast);
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

/* Starts it; it ends as vfs_sync says. */
static void vfs_group_add(struct vfs_sync *s)
{
	struct vfs_worker *w = vfs_worker_of(s->ctx);

	w->in_flight++;
	w->group.turn = group_turn;
	STAILQ_INSERT_TAIL(&w->group.waiting, s, priv.link);
}

int vfs_sync(struct vfs_sync *s)
{
	struct vfs_wait wait = VFS_WAIT(s->ctx);
	struct vfs *vfs = s->ctx->vfs;

	rn_fiber_move(s->ctx->fiber);
	s->priv.result = 0;
	s->priv.wait = &wait;
	atomic_fetch_add(&vfs->syncing, 1);
	if (vfs_group_takes(s))
		vfs_group_add(s);
	else
		vfs_sync_each(s);
	vfs_wait(&wait);
	atomic_fetch_sub(&vfs->syncing, 1);
	return s->priv.result;
}

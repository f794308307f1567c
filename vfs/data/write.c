/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * WRITE and COMMIT.
 *
 * WRITE: the pieces, in order, until all is written. What is acknowledged of a short write is as stable as was asked for, too.
 *
 * In direct mode whole granules go past the page cache if offset and pieces lie on the granule;
 * what follows the last whole granule, and any write that does not lie on it, is buffered. The
 * kernel keeps the two coherent as long as they do not meet in a page at the same time: a direct write that
 * finds a page dirtied meanwhile reports EIO for the file, which looks like a loss of data. So a node that
 * was once written buffered is always written buffered, and a buffered write does not begin while a direct
 * one is under way: the client comes again.
 *
 * COMMIT: FSYNC through the ring. Not fdatasync: other clients believe in the times of a file,
 * which must not go back when the server restarts. Not sync_file_range: it leaves the device's
 * cache and the block maps as they are.
 *
 * An error means that unstable data is gone, and that nobody will be told again: the verifier
 * changes (vfs/node/uncommitted.h).
 */
#include <errno.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/util.h"
#include "vfs/data/operation.h"
#include "vfs/export/mounts.h"
#include "vfs/hold/file_change.h"
#include "vfs/meta/attr.h"
#include "vfs/node/uncommitted.h"
#include "vfs/worker/worker_state.h"

/*
 * One fsync for all synchronous writes of a file that wait for the disk. A write that comes while one is under way waits for
 * the next, which begins when that ends and covers all that have come by then. They may be of different workers.
 */
struct vfs_written {
	uint64_t from, to; /* the part of the file that it lies in: [from, to) */
	uint64_t bytes;
	bool metadata; /* to be on disk, too: FILE_SYNC, not DATA_SYNC */
};

/* A longer fsync keeps a worker busy too long, however fast the disk is. */
#define WAIT_MAX (64u << 10)

STAILQ_HEAD(sharers, vfs_sharer);

/* A write that waits; in its fiber. Guarded by the node's uncommitted.lock, but for what the one who makes the fsync has to itself. */
struct vfs_sharer {
	struct vfs_ctx *ctx;
	struct vfs_node *node;
	struct vfs_written what;
	STAILQ_ENTRY(vfs_sharer) link;
	bool makes;	     /* the fsync; then uncommitted.syncs points here */
	struct sharers next; /* writes that came before the sync begins, or after it has begun */
	int result;
};

static struct vfs_sharer **maker_of(const struct vfs_sharer *s)
{
	return &s->node->uncommitted.syncs;
}

/* True if it makes the fsync itself. */
static bool write_sync_join(struct vfs_sharer *s, bool waits)
{
	/* Once it waits and the lock is free, it may be woken, and be gone. */
	pthread_mutex_t *lock = &s->node->uncommitted.lock;
	bool makes;

	pthread_mutex_lock(lock);
	makes = s->makes = !*maker_of(s);
	if (makes)
		*maker_of(s) = s;
	else if (waits)
		STAILQ_INSERT_TAIL(&(*maker_of(s))->next, s, link);
	pthread_mutex_unlock(lock);
	return makes;
}

static void write_sync_wake(struct vfs_sharer *s)
{
	s->ctx->fiber->wake(s->ctx->fiber);
}

/* The fiber is at rest: it can be woken at once. */
static void join_at_rest(void *arg)
{
	if (write_sync_join(arg, true))
		write_sync_wake(arg);
}

static void widen(struct vfs_written *all, const struct vfs_written *one)
{
	all->from = rn_min(all->from, one->from);
	all->to = rn_max(all->to, one->to);
	all->bytes += one->bytes;
	all->metadata |= one->metadata;
}

static int sync_once(struct vfs_sharer *s, int fd, const struct vfs_written *all)
{
	const uint64_t span = all->to - all->from;

	/* Without data of others fsync(2), which writes all of a file, writes the same. */
	if (all->bytes <= WAIT_MAX && !vfs_uncommitted_any(s->node) &&
	    vfs_group_may_wait(vfs_worker_of(s->ctx), s->node))
		return (all->metadata ? fsync(fd) : fdatasync(fd)) == 0 ? 0 : -errno;
	return vfs_ring_fsync(
		s->ctx, fd,
		&(struct vfs_ring_sync){ .offset = span <= UINT32_MAX ? all->from : 0,
					 .len = span <= UINT32_MAX ? (uint32_t)span : 0,
					 .data_only = !all->metadata });
}

static int sync_measured(struct vfs_sharer *s, int fd, const struct vfs_written *all)
{
	const uint64_t began_ns = rn_now_ns();
	unsigned tries = 0;
	int rc;

	do
		rc = sync_once(s, fd, all);
	while (vfs_io_again(&tries, rc));
	vfs_group_waited(vfs_worker_of(s->ctx), s->node, rn_now_ns() - began_ns);
	return rc;
}

/* Takes the writes that wait by now into the fsync that s makes, and finds the range that covers all of them. */
static void write_sync_begin(struct vfs_sharer *s, struct sharers *with, struct vfs_written *all)
{
	const struct vfs_sharer *o;

	STAILQ_INIT(with);
	pthread_mutex_lock(&s->node->uncommitted.lock);
	STAILQ_CONCAT(with, &s->next);
	pthread_mutex_unlock(&s->node->uncommitted.lock);
	*all = s->what;
	for (o = STAILQ_FIRST(with); o; o = STAILQ_NEXT(o, link))
		widen(all, &o->what);
}

/* The first of those who came meanwhile makes the next one. NULL: nobody has come. */
static struct vfs_sharer *write_sync_hand_over(struct vfs_sharer *s)
{
	struct vfs_sharer *first;

	pthread_mutex_lock(&s->node->uncommitted.lock);
	first = STAILQ_FIRST(&s->next);
	if (first) {
		STAILQ_REMOVE_HEAD(&s->next, link);
		STAILQ_CONCAT(&first->next, &s->next);
		first->makes = true;
	}
	*maker_of(s) = first;
	pthread_mutex_unlock(&s->node->uncommitted.lock);
	return first;
}

static int make_sync(struct vfs_sharer *s, int fd)
{
	struct vfs_sharer *o, *first;
	struct vfs_written all;
	struct sharers with;
	int rc;

	write_sync_begin(s, &with, &all);
	rc = sync_measured(s, fd, &all);
	first = write_sync_hand_over(s);
	if (first)
		write_sync_wake(first);
	while ((o = STAILQ_FIRST(&with)) != NULL) {
		STAILQ_REMOVE_HEAD(&with, link); /* the write ends when it is woken */
		o->result = rc;
		write_sync_wake(o);
	}
	return rc;
}

/* In the fiber of a write that is in the page cache: returns when it is on disk. 0 or -errno. fd is the one it was written by. */
static int vfs_write_sync(struct vfs_ctx *ctx, struct vfs_node *n, int fd,
			  const struct vfs_written *what)
{
	struct vfs_sharer s = { .ctx = ctx, .node = n, .what = *what };

	STAILQ_INIT(&s.next);
	if (!ctx->fiber->stack) /* it is all of its thread, and waits for nobody */
		return sync_measured(&s, fd, what);
	if (write_sync_join(&s, false))
		vfs_worker_yield(ctx); /* more may be in its worker's hands */
	else
		rn_fiber_wait(ctx->fiber, RN_WAIT_RING, join_at_rest, &s);
	return s.makes ? make_sync(&s, fd) : s.result;
}

static bool on_granule(const struct vfs_io *io)
{
	if (io->offset % VFS_DIRECT_ALIGN || io->count < VFS_DIRECT_ALIGN)
		return false;
	for (unsigned i = 0; i < io->npieces; i++) {
		if ((uintptr_t)io->piece[i].iov_base % VFS_DIRECT_ALIGN)
			return false;
		if (i + 1 < io->npieces && io->piece[i].iov_len % VFS_DIRECT_ALIGN)
			return false;
	}
	return true;
}

static bool enter_direct(struct vfs_node *n)
{
	uint32_t now = atomic_load(&n->direct);

	while (!(now & VFS_BUFFERED)) {
		if (atomic_compare_exchange_weak(&n->direct, &now, now + 1))
			return true;
	}
	return false;
}

static void leave_direct(struct vfs_io *io)
{
	if (io->priv.direct)
		atomic_fetch_sub(&io->node->direct, 1);
	io->priv.direct = false;
}

/* False: direct writes are under way. No further one begins. */
static bool enter_buffered(const struct vfs_io *io)
{
	if (io->ctx->exp->mode != VFS_IO_DIRECT)
		return true;
	return (atomic_fetch_or(&io->node->direct, VFS_BUFFERED) & ~VFS_BUFFERED) == 0;
}

/* The rest of the pieces, at most max bytes of it. *payload: that of the first piece taken. */
static unsigned write_gather(struct vfs_io *io, uint32_t max, struct rn_payload **payload)
{
	size_t skip = io->priv.moved;
	unsigned n = 0;

	for (unsigned i = 0; i < io->npieces && max; i++) {
		size_t len = io->piece[i].iov_len;

		if (skip >= len) {
			skip -= len;
			continue;
		}
		len = len - skip < max ? len - skip : max;
		if (n == 0)
			*payload = io->piece_payload[i];
		io->priv.iov[n].iov_base = (char *)io->piece[i].iov_base + skip;
		io->priv.iov[n++].iov_len = len;
		max -= (uint32_t)len;
		skip = 0;
	}
	return n;
}

/* Flags of a direct write. A buffered one has none, as sync_buffered() makes it durable when all is written. */
static int write_flags(const struct vfs_io *io)
{
	if (!io->priv.synced || !io->priv.direct)
		return 0;
	return io->stable == VFS_FILE_SYNC ? RWF_SYNC : RWF_DSYNC;
}

/* 0, or -errno: what was written may not be on disk. */
static int sync_buffered(struct vfs_io *io)
{
	const struct vfs_written what = { .from = io->offset,
					  .to = io->offset + io->priv.moved,
					  .bytes = io->priv.moved,
					  .metadata = io->stable != VFS_DATA_SYNC };
	int fd = vfs_writing_fd(io->ctx, io->node);

	return fd < 0 ? fd : vfs_write_sync(io->ctx, io->node, fd, &what);
}

/* Another operation may have been told that what this one wrote is lost. */
static int64_t write_synced(struct vfs_io *io, int64_t of_disk, int64_t result)
{
	vfs_syncing_end(&io->priv.syncing, io->node, of_disk);
	if (!io->priv.syncing.lost)
		return result;
	if (of_disk < 0)
		return of_disk;
	return result < 0 ? result : -EIO;
}

/* All or a part is written, which an error met later does not change: the client's next WRITE meets
 * it again. of_disk: the error if it may tell of data that were written before. */
static int64_t write_end(struct vfs_io *io, int64_t error, int64_t of_disk)
{
	int64_t result = io->priv.moved ? (int64_t)io->priv.moved : error;
	int rc = 0;

	leave_direct(io);
	if (io->priv.synced && io->priv.buffered)
		rc = sync_buffered(io);
	if (rc < 0)
		result = of_disk = rc;
	if (io->priv.moved)
		vfs_node_changed(io->node);
	vfs_file_change_end(&io->priv.change);
	if (io->priv.synced)
		result = write_synced(io, of_disk, result);
	else if (!(io->ctx->access.flags & VFS_ASYNC))
		vfs_uncommitted_wrote(io->node, io->priv.moved > 0);
	vfs_io_moved(io, 0, io->priv.moved);
	return vfs_io_answer(result);
}

/* Opens what is to be written through. -RN_ESOON: direct writes are in the way. */
static int writing_fd(struct vfs_io *io)
{
	const int buffered = vfs_writing_fd(io->ctx, io->node); /* before any other */
	int fd = -EINVAL;

	if (io->priv.moved % VFS_DIRECT_ALIGN || io->count - io->priv.moved < VFS_DIRECT_ALIGN)
		leave_direct(io);
	if (io->priv.direct && buffered >= 0)
		fd = vfs_node_fd(io->ctx, io->node, VFS_FD_WRITE_DIRECT);
	if (fd != -EINVAL)
		return fd;
	leave_direct(io);
	return buffered < 0 || enter_buffered(io) ? buffered : -RN_ESOON;
}

/* Writes on: bytes or -errno. *of_disk: 0 if nothing was written that could have failed. */
static int write_next_part(struct vfs_io *io, int *of_disk)
{
	struct rn_payload *payload = NULL;
	struct vfs_ring_rw rw = { .fd = writing_fd(io),
				  .offset = io->offset + io->priv.moved,
				  .iov = io->priv.iov,
				  .as_user = io->ctx->cred.uid != 0 };
	uint32_t left = io->count - io->priv.moved;
	int n;

	*of_disk = 0;
	if (rw.fd < 0)
		return rw.fd;
	if (io->priv.direct)
		left -= left % VFS_DIRECT_ALIGN;
	rw.flags = write_flags(io);
	rw.in_place = !io->priv.direct && (!io->priv.synced || io->node->mnt->fs.local);
	rw.niov = write_gather(io, left, &payload);
	rw.payload = payload;
	n = vfs_ring_write(io->ctx, &rw);
	n = n == 0 ? -EIO : n;
	io->priv.buffered |= !io->priv.direct && n > 0;
	*of_disk = n;
	return n;
}

static bool write_may_retry(struct vfs_io *io, int error)
{
	if (!io->priv.direct || error != -EINVAL)
		return vfs_io_again(&io->priv.tries, error);
	leave_direct(io);
	return true;
}

static int64_t write_all_parts(struct vfs_io *io)
{
	int n, of_disk;

	while (io->priv.moved < io->count) {
		n = write_next_part(io, &of_disk);
		if (n < 0 && of_disk < 0 && write_may_retry(io, n))
			continue;
		if (n < 0)
			return write_end(io, n, of_disk);
		io->priv.moved += (uint32_t)n;
	}
	return write_end(io, 0, 0);
}

static int write_check(const struct vfs_io *io)
{
	uint64_t sum = 0;

	if (io->npieces > VFS_IO_PIECES)
		return -EINVAL;
	for (unsigned i = 0; i < io->npieces; i++) {
		if (io->piece[i].iov_len > io->count)
			return -EINVAL;
		sum += io->piece[i].iov_len;
	}
	if (sum != io->count || io->count > INT32_MAX)
		return -EINVAL;
	return io->offset > VFS_OFFSET_MAX - io->count ? -EFBIG : 0;
}

/* Data written to one node too many are made durable at once: there is a budget of nodes with
 * uncommitted data. Who asked for less gets more than that. */
static void write_begin(struct vfs_io *io)
{
	const bool sync = !(io->ctx->access.flags & VFS_ASYNC);

	io->priv.synced = sync && (io->stable != VFS_UNSTABLE || !vfs_uncommitted_fits(io->node));
	if (io->priv.synced)
		vfs_syncing_begin(&io->priv.syncing, io->node, VFS_SYNCING_WRITE);
	else if (sync)
		vfs_uncommitted_write(io->node);
}

/* A thread that must not block writes only into the page cache, as root, and to a file that is open already. */
static void leave_if_it_blocks(const struct vfs_io *io)
{
	const bool sync = !(io->ctx->access.flags & VFS_ASYNC);

	if (io->ctx->cred.uid != 0 || io->ctx->exp->mode == VFS_IO_DIRECT ||
	    (sync && (io->stable != VFS_UNSTABLE || !vfs_uncommitted_fits(io->node))))
		rn_fiber_move(io->ctx->fiber);
}

int64_t vfs_write(struct vfs_io *io)
{
	int rc = write_check(io);

	io->priv.moved = 0;
	io->priv.tries = 0;
	io->priv.direct = io->priv.buffered = false;
	if (rc == 0)
		rc = vfs_io_may_write(io);
	if (rc == 0)
		leave_if_it_blocks(io);
	if (rc == 0 && io->count > 0)
		rc = vfs_file_change_begin(io->ctx, io->node, &io->priv.change);
	if (rc < 0 || io->count == 0)
		return vfs_io_answer(rc);
	write_begin(io);
	io->priv.direct =
		io->ctx->exp->mode == VFS_IO_DIRECT && on_granule(io) && enter_direct(io->node);
	return write_all_parts(io);
}

/* Once: 0 or -errno. */
static int commit_once(struct vfs_io *io, bool *began)
{
	uint64_t offset = io->offset;
	uint32_t len = io->count;
	/* vfs_node_readable_fd() gives the descriptor that the data were written through, and that their errors are reported to: it
	 * stays open as long as anything is uncommitted. To open it again would break the lease of a delegation, and is not
	 * possible for a program that runs. */
	int fd = vfs_node_readable_fd(io->ctx, io->node);

	*began = fd >= 0;
	if (fd < 0)
		return fd;
	if (offset > VFS_OFFSET_MAX - len)
		len = 0;
	vfs_syncing_begin(&io->priv.syncing, io->node, len ? VFS_SYNCING_PART : VFS_SYNCING_ALL);
	return vfs_ring_fsync(io->ctx, fd, &(struct vfs_ring_sync){ .offset = offset, .len = len });
}

int vfs_commit(struct vfs_io *io)
{
	unsigned tries = 0;
	bool began;
	int rc = vfs_io_may_write(io);

	if (rc == -EPERM) /* immutable by now: what was written before may be made durable */
		rc = 0;
	if (rc < 0 || io->ctx->access.flags & VFS_ASYNC)
		return (int)vfs_io_answer(rc);
	do
		rc = commit_once(io, &began);
	while (began && vfs_io_again(&tries, rc));
	if (began)
		vfs_syncing_end(&io->priv.syncing, io->node, rc);
	return (int)vfs_io_answer(rc);
}

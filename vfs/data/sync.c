/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Durability of metadata, one fsync for each node that was changed. Changes on a file system with
 * one log share fsyncs instead (vfs/data/group.c).
 */
#include "vfs/data/sync.h"

#include <errno.h>
#include <sys/stat.h>

#include "vfs/base/instance.h"
#include "vfs/data/group.h"
#include "vfs/data/log_sync.h"
#include "vfs/data/operation.h"
#include "vfs/node/uncommitted.h"
#include "vfs/worker/worker_state.h"

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

/* Only a regular file has data whose loss the end of another's sync may tell. What else fails tells
 * of the device. */
void vfs_sync_seen(struct vfs_sync *s, unsigned i, int res)
{
	struct vfs_node *n = s->node[i];

	if (n->type != S_IFREG && res >= 0)
		return;
	if (n->type != S_IFREG)
		vfs_syncing_begin(&s->priv.syncing[i], n, VFS_SYNCING_PART);
	vfs_syncing_end(&s->priv.syncing[i], n, res);
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

static bool has_data(const struct vfs_node *n)
{
	return n->type == S_IFREG || n->type == S_IFDIR;
}

bool vfs_sync_wanted(const struct vfs_sync *s, unsigned i)
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

void vfs_sync_each(struct vfs_sync *s)
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

int vfs_sync(struct vfs_sync *s)
{
	struct vfs_wait wait = VFS_WAIT(s->ctx);

	rn_fiber_move(s->ctx->fiber);
	s->priv.result = 0;
	s->priv.wait = &wait;
	if (vfs_group_takes(s))
		vfs_group_add(s);
	else
		vfs_sync_each(s);
	vfs_wait(&wait);
	return s->priv.result;
}

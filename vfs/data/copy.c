/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * COPY in steps, between which the worker serves its other operations. copy_file_range(2) does each
 * step, so that file systems that can share blocks do. Where it refuses, because the two file
 * systems differ for example, the data go through a payload buffer.
 *
 * A copy leaves the destination as unstable writes do (vfs/node/uncommitted.h). If too many files
 * have uncommitted data already, the end of the copy waits for an fsync instead.
 */
#include <errno.h>
#include <unistd.h>

#include "lib/util.h"
#include "vfs/base/instance.h"
#include "vfs/data/copy_range.h"
#include "vfs/data/operation.h"
#include "vfs/hold/file_change.h"
#include "vfs/node/uncommitted.h"
#include "vfs/worker/acting.h"

#define BUFFER_STEP (1u << 20) /* bytes of one system call where a buffer is needed */

static void copy_next(struct vfs_copy *c);

static void finish(struct vfs_copy *c)
{
	rn_payload_put(c->priv.buffer);
	c->result = c->priv.copied ? (int64_t)c->priv.copied : vfs_io_answer(c->priv.error);
	c->done(c);
}

static void sync_complete(struct vfs_ring_op *op, int res)
{
	struct vfs_copy *c = op->owner;

	vfs_syncing_end(&c->priv.syncing, c->node, res);
	if (res < 0 || c->priv.syncing.lost) {
		c->priv.copied = 0;
		c->priv.error = res < 0 ? res : -EIO;
	}
	finish(c);
}

/* Ends the copy. An error behind what was copied is not told: the client asks for the rest, and
 * meets it again. */
static void copy_end(struct vfs_copy *c, int64_t error)
{
	c->priv.error = error;
	if (c->priv.copied)
		vfs_node_changed(c->node);
	vfs_file_change_end(&c->priv.change);
	if (c->stable && c->priv.copied) {
		c->priv.op.complete = sync_complete;
		vfs_ring_fsync(c->ctx->w, &c->priv.op, c->priv.to_fd, c->offset, c->priv.copied);
		return;
	}
	if (c->stable)
		vfs_syncing_end(&c->priv.syncing, c->node, 0);
	else if (!(c->ctx->access.flags & VFS_ASYNC))
		vfs_uncommitted_wrote(c->node, c->priv.copied > 0);
	finish(c);
}

static bool again(struct vfs_copy *c, int res)
{
	return (res == -EINTR || res == -EAGAIN) && c->priv.tries++ < VFS_IO_TRIES;
}

/* A step has ended. res 0: the source is shorter than it was. */
static void step_complete(struct vfs_ring_op *op, int res)
{
	struct vfs_copy *c = op->owner;

	if (again(c, res)) {
		copy_next(c);
		return;
	}
	if (res <= 0) {
		copy_end(c, res);
		return;
	}
	c->priv.copied += (uint32_t)res;
	c->priv.left -= (uint32_t)res;
	if (c->priv.left)
		copy_next(c);
	else
		copy_end(c, 0);
}

static void buffer_filled(struct vfs_ring_op *op, int res)
{
	struct vfs_copy *c = op->owner;
	const struct vfs_ring_rw rw = { .fd = c->priv.to_fd,
					.offset = c->offset + c->priv.copied,
					.iov = &c->priv.iov,
					.niov = 1,
					.payload = c->priv.buffer,
					.as_user = c->ctx->cred.uid != 0,
					.in_place = true };

	op->complete = step_complete;
	if (res <= 0) {
		step_complete(op, res);
		return;
	}
	c->priv.iov.iov_len = (size_t)res;
	vfs_ring_write(c->ctx->w, op, &rw);
}

static void fill_buffer(struct vfs_copy *c)
{
	const struct vfs_ring_rw rw = { .fd = c->priv.from_fd,
					.offset = c->from.offset + c->priv.copied,
					.iov = &c->priv.iov,
					.niov = 1,
					.payload = c->priv.buffer };

	c->priv.iov.iov_base = c->priv.buffer->data;
	c->priv.iov.iov_len = rn_min(c->priv.left, c->priv.buffer->size);
	c->priv.op.complete = buffer_filled;
	vfs_ring_read(c->ctx->w, &c->priv.op, &rw);
}

static void kernel_step_complete(struct vfs_ring_op *op, int res)
{
	struct vfs_copy *c = op->owner;

	/* A container that forbids the call answers EPERM. So does a file that may not be written, and then a write does, too. */
	if (res != -EXDEV && res != -EOPNOTSUPP && res != -ENOSYS && res != -EPERM) {
		step_complete(op, res);
		return;
	}
	c->priv.buffer = rn_payload_get_for(c->ctx->vfs->cfg.pool,
					    rn_min(c->priv.left, BUFFER_STEP), c->account);
	if (c->priv.buffer)
		fill_buffer(c);
	else
		copy_end(c, -ENOMEM);
}

static void kernel_step(struct vfs_copy *c)
{
	off_t from = (off_t)(c->from.offset + c->priv.copied);
	off_t to = (off_t)(c->offset + c->priv.copied);
	ssize_t n = vfs_copy_act(c);

	if (n == 0) {
		n = copy_file_range(c->priv.from_fd, &from, c->priv.to_fd, &to,
				    rn_min(c->priv.left, VFS_COPY_STEP), 0);
		n = n < 0 ? -errno : n;
	}
	c->priv.op.complete = kernel_step_complete;
	vfs_ring_finish(c->ctx->w, &c->priv.op, (int)n);
}

static void copy_next(struct vfs_copy *c)
{
	if (c->priv.buffer)
		fill_buffer(c);
	else
		kernel_step(c);
}

static void copy_begin(struct vfs_copy *c)
{
	const bool sync = !(c->ctx->access.flags & VFS_ASYNC);

	c->stable = sync && !vfs_uncommitted_room(c->node);
	if (c->stable)
		vfs_syncing_begin(&c->priv.syncing, c->node, VFS_SYNCING_PART);
	else if (sync)
		vfs_uncommitted_write(c->node);
	copy_next(c);
}

static void none_complete(struct vfs_ring_op *op, int res)
{
	struct vfs_copy *c = op->owner;

	vfs_file_change_end(&c->priv.change);
	c->priv.error = res;
	finish(c);
}

static int open_both(const struct vfs_copy *c, struct vfs_copy_range *r)
{
	int rc = vfs_copy_range_open(c, r);

	return rc == 0 && vfs_copy_is_within(c) ? -EINVAL : rc;
}

int vfs_copy_measure(const struct vfs_copy *c, uint64_t *count)
{
	struct vfs_copy_range r = { .count = 0 };
	int rc = open_both(c, &r);

	*count = r.count;
	return rc;
}

void vfs_copy(struct vfs_copy *c)
{
	struct vfs_copy_range r = { .count = 0 };
	int rc = open_both(c, &r);

	c->stable = false;
	c->priv.op.owner = c;
	c->priv.buffer = NULL;
	c->priv.copied = 0;
	c->priv.tries = 0;
	c->priv.change = r.change;
	c->priv.from_fd = r.from_fd;
	c->priv.to_fd = r.to_fd;
	c->priv.left = (uint32_t)rn_min(r.count, VFS_COPY_MAX);
	if (rc == 0 && r.count > 0) {
		copy_begin(c);
		return;
	}
	c->priv.op.complete = none_complete;
	vfs_ring_finish(c->ctx->w, &c->priv.op, rc);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * COPY and CLONE.
 *
 * COPY in steps, between which the worker serves its other operations. copy_file_range(2) does each
 * step, so that file systems that can share blocks do. Where it refuses, because the two file
 * systems differ for example, the data go through a payload buffer.
 *
 * A copy leaves the destination as unstable writes do (vfs/node/uncommitted.h). If too many files
 * have uncommitted data already, the end of the copy waits for an fsync instead.
 */
#include <errno.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/util.h"
#include "vfs/base/instance.h"
#include "vfs/data/operation.h"
#include "vfs/export/mounts.h"
#include "vfs/hold/file_change.h"
#include "vfs/meta/attr.h"
#include "vfs/node/uncommitted.h"
#include "vfs/space.h"
#include "vfs/worker/worker_state.h"

/* Bytes of a checked range, and the descriptors of both files. */
struct vfs_copy_range {
	int from_fd, to_fd;
	uint64_t count;
	struct vfs_file_change change; /* of the destination; the caller ends it */
};

static int check_permission(const struct vfs_copy *c)
{
	struct vfs_io in = { .ctx = c->from.ctx, .node = c->from.node, .opened = c->from.opened };
	const struct vfs_io out = { .ctx = c->ctx, .node = c->node, .opened = c->opened };
	int rc = vfs_io_may_read(&in);

	return rc == 0 ? vfs_io_may_write(&out) : rc;
}

/* The size of the source decides, before anything is written (RFC 7862 sections 15.2.3 and
 * 15.13.3). */
static int copy_range_check(const struct vfs_copy *c, struct vfs_copy_range *r)
{
	struct stat st;
	uint64_t size;

	if (fstat(r->from_fd, &st) < 0)
		return -errno;
	size = (uint64_t)st.st_size;
	r->count = size > c->from.offset ? size - c->from.offset : 0;
	if (!c->cut && (c->from.offset > size || c->count > r->count))
		return -EINVAL;
	if (c->count > 0 && c->count < r->count)
		r->count = c->count;
	return c->offset > VFS_OFFSET_MAX || r->count > VFS_OFFSET_MAX - c->offset ? -EFBIG : 0;
}

static int copy_range_open_fds(const struct vfs_copy *c, struct vfs_copy_range *out)
{
	/* The destination first: if both are one file, its descriptor is for the source, too. */
	out->to_fd = vfs_writing_fd(c->ctx, c->node);
	if (out->to_fd < 0)
		return out->to_fd;
	out->from_fd = vfs_node_readable_fd(c->from.ctx, c->from.node);
	return out->from_fd < 0 ? out->from_fd : copy_range_check(c, out);
}

/* Checks the permissions and the range, and opens both files; 0 or -errno, and nothing is to be ended. The thread may act as the
 * caller afterwards. */
static int vfs_copy_range_open(const struct vfs_copy *c, struct vfs_copy_range *out)
{
	int rc = check_permission(c);

	out->change.count = NULL;
	if (rc == 0)
		rc = vfs_file_change_begin(c->ctx, c->node, &out->change);
	if (rc == 0)
		rc = copy_range_open_fds(c, out);
	if (rc < 0)
		vfs_file_change_end(&out->change);
	return rc;
}

/* True if both nodes are of one file, perhaps in different exports. */
static bool vfs_copy_is_within(const struct vfs_copy *c)
{
	return c->from.node->dev == c->node->dev && c->from.node->ino == c->node->ino;
}

/* The next system call writes the destination as WRITE does: for a user without capabilities, so
 * that the kernel clears setuid and setgid bits. 0 or -EPERM. */
static int vfs_copy_act(const struct vfs_copy *c)
{
	if (c->ctx->cred.uid == 0)
		return vfs_act_as_root(c->ctx);
	return vfs_identity_become(&vfs_worker_of(c->ctx)->identity, &vfs_nobody);
}

#define BUFFER_STEP (1u << 20) /* bytes of one system call where a buffer is needed */

/* Ends the copy. An error behind what was copied is not told: the client asks for the rest, and
 * meets it again. */
static int64_t copy_end(struct vfs_copy *c, int64_t error)
{
	const uint32_t copied = c->priv.copied;
	int rc = 0;

	rn_payload_put(c->priv.buffer);
	if (copied)
		vfs_node_changed(c->node);
	vfs_file_change_end(&c->priv.change);
	if (c->stable) {
		if (copied)
			rc = vfs_ring_fsync(
				c->ctx, c->priv.to_fd,
				&(struct vfs_ring_sync){ .offset = c->offset, .len = copied });
		vfs_syncing_end(&c->priv.syncing, c->node, rc);
		if (copied && (rc < 0 || c->priv.syncing.lost))
			return rc < 0 ? vfs_io_answer(rc) : -EIO;
	} else if (!(c->ctx->access.flags & VFS_ASYNC)) {
		vfs_uncommitted_wrote(c->node, copied > 0);
	}
	return copied ? (int64_t)copied : vfs_io_answer(error);
}

/* Each step gives bytes, 0: the source is shorter than it was, or -errno. */
static int buffer_step(struct vfs_copy *c)
{
	struct iovec iov = { c->priv.buffer->data, rn_min(c->priv.left, c->priv.buffer->size) };
	const struct vfs_ring_rw from = { .fd = c->priv.from_fd,
					  .offset = c->from.offset + c->priv.copied,
					  .iov = &iov,
					  .niov = 1,
					  .payload = c->priv.buffer,
					  .remote = !c->from.node->mnt->fs.local };
	const struct vfs_ring_rw to = { .fd = c->priv.to_fd,
					.offset = c->offset + c->priv.copied,
					.iov = &iov,
					.niov = 1,
					.payload = c->priv.buffer,
					.as_user = c->ctx->cred.uid != 0,
					.in_place = true };
	int n = vfs_ring_read(c->ctx, &from);

	if (n <= 0)
		return n;
	iov.iov_len = (size_t)n;
	return vfs_ring_write(c->ctx, &to);
}

static int kernel_step(struct vfs_copy *c)
{
	off_t from = (off_t)(c->from.offset + c->priv.copied);
	off_t to = (off_t)(c->offset + c->priv.copied);
	ssize_t n = vfs_copy_act(c);

	if (n < 0)
		return (int)n;
	n = copy_file_range(c->priv.from_fd, &from, c->priv.to_fd, &to,
			    rn_min(c->priv.left, VFS_COPY_STEP), 0);
	return n < 0 ? -errno : (int)n;
}

/* A container that forbids the call answers EPERM. So does a file that may not be written, and then a write does, too. */
static bool needs_buffer(int res)
{
	return res == -EXDEV || res == -EOPNOTSUPP || res == -ENOSYS || res == -EPERM;
}

static int vfs_copy_step(struct vfs_copy *c)
{
	int n = c->priv.buffer ? 0 : kernel_step(c);

	if (!c->priv.buffer && !needs_buffer(n))
		return n;
	if (!c->priv.buffer)
		c->priv.buffer = rn_payload_get_for(c->ctx->vfs->cfg.pool,
						    rn_min(c->priv.left, BUFFER_STEP), c->account);
	return c->priv.buffer ? buffer_step(c) : -ENOMEM;
}

static int64_t copy_all(struct vfs_copy *c)
{
	const bool sync = !(c->ctx->access.flags & VFS_ASYNC);
	int n = 1;

	c->stable = sync && !vfs_uncommitted_fits(c->node);
	if (c->stable)
		vfs_syncing_begin(&c->priv.syncing, c->node, VFS_SYNCING_PART);
	else if (sync)
		vfs_uncommitted_write(c->node);
	while (n > 0 && c->priv.left > 0) {
		n = vfs_copy_step(c);
		if (n > 0) {
			c->priv.copied += (uint32_t)n;
			c->priv.left -= (uint32_t)n;
		} else if (vfs_io_again(&c->priv.tries, n)) {
			n = 1;
		}
		if (n > 0 && c->priv.left > 0)
			vfs_worker_yield(c->ctx);
	}
	return copy_end(c, n < 0 ? n : 0);
}

static int vfs_copy_open_both(const struct vfs_copy *c, struct vfs_copy_range *r)
{
	int rc = vfs_copy_range_open(c, r);

	return rc == 0 && vfs_copy_is_within(c) ? -EINVAL : rc;
}

int vfs_copy_measure(const struct vfs_copy *c, uint64_t *count)
{
	struct vfs_copy_range r = { .count = 0 };
	int rc = vfs_copy_open_both(c, &r);

	*count = r.count;
	return rc;
}

int64_t vfs_copy(struct vfs_copy *c)
{
	struct vfs_copy_range r = { .count = 0 };
	int rc;

	rn_fiber_move(c->ctx->fiber);
	rc = vfs_copy_open_both(c, &r);
	c->stable = false;
	if (rc < 0 || r.count == 0) {
		vfs_file_change_end(&r.change);
		return vfs_io_answer(rc);
	}
	c->priv.buffer = NULL;
	c->priv.copied = 0;
	c->priv.tries = 0;
	c->priv.change = r.change;
	c->priv.from_fd = r.from_fd;
	c->priv.to_fd = r.to_fd;
	c->priv.left = (uint32_t)rn_min(r.count, VFS_COPY_MAX);
	return copy_all(c);
}

static bool overlaps(const struct vfs_copy *c, uint64_t count)
{
	return vfs_copy_is_within(c) && c->from.offset < c->offset + count &&
	       c->offset < c->from.offset + count;
}

/* A count of 0 is left to the kernel, which takes the end of the source as it is then. */
static int clone_range(const struct vfs_copy *c, const struct vfs_copy_range *r)
{
	const struct file_clone_range range = {
		.src_fd = r->from_fd,
		.src_offset = c->from.offset,
		.src_length = c->count,
		.dest_offset = c->offset,
	};
	int rc;

	for (unsigned tries = 0; tries < VFS_IO_TRIES; tries++) {
		rc = ioctl(r->to_fd, FICLONERANGE, &range) == 0 ? 0 : -errno;
		if (rc != -EINTR && rc != -EAGAIN)
			break;
	}
	/* File systems that do not know the call at all */
	return rc == -ENOTTY || rc == -ENOSYS ? -EOPNOTSUPP : rc;
}

int vfs_clone(const struct vfs_copy *c)
{
	struct vfs_copy_range r;
	int rc = vfs_copy_range_open(c, &r);

	if (rc == 0 && overlaps(c, r.count))
		rc = -EINVAL;
	if (rc == 0)
		rc = vfs_copy_act(c);
	if (rc == 0)
		rc = clone_range(c, &r);
	if (rc == 0)
		vfs_node_changed(c->node);
	vfs_file_change_end(&r.change);
	return (int)vfs_io_answer(rc);
}

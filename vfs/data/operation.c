/* SPDX-License-Identifier: BSD-2-Clause */
/* The beginning and the end of every operation on data. */
#include "vfs/data/operation.h"

#include <errno.h>

#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/worker.h"

void vfs_io_init(struct vfs_io *io, void (*complete)(struct vfs_ring_op *op, int res))
{
	io->result = 0;
	io->priv.op.complete = complete;
	io->priv.op.owner = io;
	io->priv.moved = 0;
	io->priv.window = 0;
	io->priv.tries = 0;
	io->priv.direct = false;
	io->priv.began_ns = 0;
}

void vfs_io_moved(const struct vfs_io *io, uint64_t read, uint64_t written)
{
	const struct vfs_config *cfg = &io->ctx->vfs->cfg;

	if (cfg->moved && (read || written))
		cfg->moved(cfg->moved_ctx, io->ctx->exp->id, read, written);
}

int64_t vfs_io_answer(int64_t result)
{
	switch (result) {
	case -EBADF:
		return -EIO;
	case -EINTR:
		return -EAGAIN;
	default:
		return result;
	}
}

void vfs_io_finish(struct vfs_io *io, int64_t result)
{
	io->result = vfs_io_answer(result);
	io->done(io);
}

static void finish_complete(struct vfs_ring_op *op, int res)
{
	vfs_io_finish(op->owner, res);
}

void vfs_io_finish_later(struct vfs_io *io, int64_t result)
{
	io->priv.op.complete = finish_complete;
	vfs_ring_finish(io->ctx->w, &io->priv.op, (int)result);
}

bool vfs_io_again(struct vfs_io *io, int res)
{
	if (vfs_worker_is_prompt(io->ctx->w))
		return false; /* it was declined */
	return (res == -EINTR || res == -EAGAIN) && io->priv.tries++ < VFS_IO_TRIES;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Counting of bytes, errors and retries, for all operations on data. */
#include "vfs/data/operation.h"

#include <errno.h>

#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"

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
	default:
		return result;
	}
}

bool vfs_io_again(unsigned *tries, int res)
{
	return (res == -EINTR || res == -EAGAIN) && (*tries)++ < VFS_IO_TRIES;
}

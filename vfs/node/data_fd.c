/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "vfs/base/instance.h"
#include "vfs/file_state.h"
#include "vfs/node/node.h"
#include "vfs/vfs_worker.h"
#include "vfs/worker/worker_state.h"

static int data_fd_open_flags(const struct vfs_node *n, enum vfs_fd_kind kind)
{
	static const int flags[VFS_FD_KINDS] = {
		[VFS_FD_READ] = O_RDONLY,
		[VFS_FD_WRITE] = O_RDWR,
		[VFS_FD_READ_DIRECT] = O_RDONLY | O_DIRECT,
		[VFS_FD_WRITE_DIRECT] = O_RDWR | O_DIRECT,
		[VFS_FD_WITNESS] = O_RDONLY,
	};

	/* Anything else must never be opened: a FIFO blocks, a device acts. */
	if (n->type == S_IFREG)
		return flags[kind];
	return n->type == S_IFDIR && kind == VFS_FD_READ ? O_RDONLY | O_DIRECTORY : -EINVAL;
}

/*
 * Takes the node's open_lock, as root. A thread that must not block opens regular files for reading only: to open
 * for writing may read a quota from the disk, a directory is read ahead, an eviction may delete a
 * file, and a gate has to be passed.
 */
static int begin_open(struct vfs_ctx *ctx, struct vfs_node *n, enum vfs_fd_kind kind)
{
	int rc;

	if (vfs_worker_is_prompt(vfs_worker_of(ctx)) && n->type == S_IFREG && kind == VFS_FD_READ &&
	    vfs_fd_has_room(n->vfs) && !vfs_is_gated(n->vfs, &n->fh) &&
	    pthread_mutex_trylock(&n->open_lock) == 0)
		return 0;
	rn_fiber_move(ctx->fiber);
	rc = vfs_act_as_root(ctx);
	if (rc == 0)
		pthread_mutex_lock(&n->open_lock);
	return rc;
}

int vfs_node_fd(struct vfs_ctx *ctx, struct vfs_node *n, enum vfs_fd_kind kind)
{
	int fd = atomic_load_explicit(&n->data_fd[kind], memory_order_acquire);
	int flags, rc;

	if (fd >= 0)
		return fd;
	flags = data_fd_open_flags(n, kind);
	rc = flags < 0 ? flags : begin_open(ctx, n, kind);
	if (rc != 0)
		return rc;
	fd = atomic_load_explicit(&n->data_fd[kind], memory_order_relaxed);
	if (fd < 0) {
		fd = vfs_fd_reopen_data(n->vfs, n->path_fd, flags);
		if (fd >= 0)
			atomic_store_explicit(&n->data_fd[kind], fd, memory_order_release);
	}
	pthread_mutex_unlock(&n->open_lock);
	return fd;
}

int vfs_node_readable_fd(struct vfs_ctx *ctx, struct vfs_node *n)
{
	int fd = atomic_load_explicit(&n->data_fd[VFS_FD_WRITE], memory_order_acquire);

	return fd >= 0 ? fd : vfs_node_fd(ctx, n, VFS_FD_READ);
}

void vfs_node_adopt_fd(struct vfs_node *n, enum vfs_fd_kind kind, int fd)
{
	/* Under the lock: an open of the same kind may be under way. */
	pthread_mutex_lock(&n->open_lock);
	if (atomic_load_explicit(&n->data_fd[kind], memory_order_relaxed) < 0) {
		atomic_store_explicit(&n->data_fd[kind], fd, memory_order_release);
		fd = -1;
	}
	pthread_mutex_unlock(&n->open_lock);
	vfs_fd_close(n->vfs, fd);
}

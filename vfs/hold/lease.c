/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/hold/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "vfs/base/fd_budget.h"
#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/hold/file_fd.h"
#include "vfs/hold/lease_thread.h"
#include "vfs/node/cache.h"
#include "vfs/worker/acting.h"

bool vfs_lease_possible(const struct vfs_node *n)
{
	/* Other machines may open files of other file systems without a word to this kernel. */
	return n->mnt->watch && atomic_load(&n->vfs->leases->tid) != 0;
}

/* Breaks are told by a signal to the thread. */
static int set_owner(const struct vfs_leases *ls, int fd)
{
	const struct f_owner_ex owner = { .type = F_OWNER_TID, .pid = atomic_load(&ls->tid) };

	if (fcntl(fd, F_SETOWN_EX, &owner) != 0 || fcntl(fd, F_SETSIG, VFS_LEASE_SIGNAL) != 0)
		return -errno;
	return 0;
}

static int open_file(struct vfs_node *n)
{
	struct vfs *vfs = n->vfs;
	int fd, rc;

	vfs_cache_close_writers(n);
	fd = vfs_fd_reopen_data(vfs, n->path_fd, O_RDONLY);
	if (fd < 0)
		return fd == -VFS_ELEASE ? -EAGAIN : fd;
	rc = set_owner(vfs->leases, fd);
	if (rc == 0)
		return fd;
	vfs_fd_close(vfs, fd);
	return rc;
}

struct vfs_lease_room vfs_lease_room(const struct vfs *vfs)
{
	const uint64_t used = atomic_load_explicit(&vfs->files->leases, memory_order_relaxed);

	return (struct vfs_lease_room){ .used = (unsigned)used, .most = vfs->cfg.max_leases };
}

int vfs_lease_open(struct vfs_ctx *ctx, struct vfs_node *n)
{
	struct vfs *vfs = n->vfs;
	const struct vfs_lease_room room = vfs_lease_room(vfs);
	int rc = vfs_act_as_root(ctx);

	if (rc != 0)
		return rc;
	if (room.used >= room.most)
		return -EAGAIN;
	return n->type == S_IFDIR ? vfs_fd_reopen(vfs, n->path_fd, O_PATH) : open_file(n);
}

int vfs_lease_take(struct vfs_file *f, int fd)
{
	struct vfs_leases *ls = f->vfs->leases;
	int rc;

	if (!vfs_leases_watch(ls, f, fd))
		return errno == ENOSPC || errno == ENOMEM ? -EAGAIN : -EOPNOTSUPP;
	/* The thread finds the file by the descriptor from the moment that the lease is there. */
	f->lease_fd = fd;
	vfs_lease_table_add(&ls->table, f);
	atomic_fetch_add(&f->vfs->files->leases, 1);
	vfs_fd_set_aside(f->vfs, 1);
	if (f->is_dir || fcntl(fd, F_SETLEASE, F_RDLCK) == 0)
		return 0;
	rc = errno == EINVAL || errno == EACCES ? -EOPNOTSUPP : -EAGAIN;
	vfs_lease_drop(f);
	return rc;
}

bool vfs_lease_holds(const struct vfs_file *f)
{
	return f->lease_fd >= 0 && (f->is_dir || fcntl(f->lease_fd, F_GETLEASE) == F_RDLCK);
}

int vfs_lease_drop(struct vfs_file *f)
{
	int fd = f->lease_fd;

	if (fd < 0)
		return -1;
	vfs_lease_table_remove(&f->vfs->leases->table, f);
	vfs_leases_unwatch(f->vfs->leases, f, fd);
	atomic_fetch_sub(&f->vfs->files->leases, 1);
	vfs_fd_set_aside(f->vfs, -1);
	f->lease_fd = -1;
	/* By itself it would go with the last copy of the descriptor, which a child may have. */
	(void)fcntl(fd, F_SETLEASE, F_UNLCK);
	return fd;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/hold/lease.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "lib/error.h"
#include "vfs/base/instance.h"
#include "vfs/export/mounts.h"
#include "vfs/hold/file_fd.h"
#include "vfs/hold/lease_thread.h"
#include "vfs/node/cache.h"
#include "vfs/worker/worker_state.h"

bool vfs_lease_possible(const struct vfs_node *n, enum vfs_deleg_type type)
{
	/* Other machines may open files of other file systems without a word to this kernel. */
	return n->mnt->watch && atomic_load(&n->vfs->leases->tid) != 0 &&
	       (type == VFS_DELEG_READ || vfs_gate_possible(n->vfs));
}

static int open_for_lease(struct vfs_node *n)
{
	struct vfs *vfs = n->vfs;
	int fd, rc;

	vfs_cache_close_written(n);
	fd = vfs_fd_reopen_data(vfs, n->path_fd, O_RDONLY);
	if (fd < 0)
		return fd == -RN_ELEASE ? -RN_ENOTNOW : fd;
	rc = vfs_leases_own(vfs->leases, fd);
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

static int open_for_gate(struct vfs_node *n, struct vfs_lease_fds *out)
{
	int rc = vfs_gate_probe_open(n, &out->probe);

	if (rc != 0)
		return rc;
	out->gate = true;
	out->fd = vfs_fd_reopen(n->vfs, n->path_fd, O_PATH);
	if (out->fd >= 0)
		return 0;
	vfs_gate_probe_close(n->vfs, &out->probe);
	return out->fd;
}

int vfs_lease_open(struct vfs_ctx *ctx, struct vfs_node *n, enum vfs_deleg_type type,
		   struct vfs_lease_fds *out)
{
	struct vfs *vfs = n->vfs;
	const struct vfs_lease_room room = vfs_lease_room(vfs);
	int rc = vfs_act_as_root(ctx);

	*out = VFS_LEASE_NO_FDS;
	if (rc != 0)
		return rc;
	if (room.used >= room.most)
		return -RN_ENOTNOW;
	if (type == VFS_DELEG_WRITE)
		return open_for_gate(n, out);
	out->fd = n->type == S_IFDIR ? vfs_fd_reopen(vfs, n->path_fd, O_PATH) : open_for_lease(n);
	return out->fd < 0 ? out->fd : 0;
}

void vfs_lease_close(struct vfs *vfs, const struct vfs_lease_fds *fds)
{
	vfs_fd_close(vfs, fds->fd);
	if (fds->gate)
		vfs_gate_probe_close(vfs, &fds->probe);
}

static int set_lease(struct vfs_file *f, const struct vfs_lease_fds *fds)
{
	if (fds->gate)
		return vfs_gate_take(f, fds->probe.fd);
	if (f->is_dir || fcntl(f->lease_fd, F_SETLEASE, F_RDLCK) == 0)
		return 0;
	return errno == EINVAL || errno == EACCES ? -EOPNOTSUPP : -RN_ENOTNOW;
}

int vfs_lease_take(struct vfs_file *f, struct vfs_lease_fds *fds)
{
	struct vfs_leases *ls = f->vfs->leases;
	int rc;

	if (!vfs_leases_watch(ls, f, fds->fd, fds->gate))
		return errno == ENOSPC || errno == ENOMEM ? -RN_ENOTNOW : -EOPNOTSUPP;
	/* The threads find the file from the moment that the lease is there. */
	f->lease_fd = fds->fd;
	vfs_lease_table_add(&ls->table, f);
	atomic_fetch_add(&f->vfs->files->leases, 1);
	vfs_fd_set_aside(f->vfs, 1);
	rc = set_lease(f, fds);
	if (rc == 0)
		fds->fd = -1;
	else
		vfs_lease_drop(f);
	return rc;
}

void vfs_lease_let_holder_write(struct vfs_file *f)
{
	struct vfs_leases *ls = f->vfs->leases;

	if (f->lease_fd < 0 || f->gated || f->is_dir || !vfs_leases_watch(ls, f, f->lease_fd, true))
		return;
	if (!vfs_gate_replace_lease(f))
		vfs_leases_watch_data_no_more(ls, f->lease_fd);
}

bool vfs_lease_holds(const struct vfs_file *f)
{
	return f->lease_fd >= 0 &&
	       (f->is_dir || f->gated || fcntl(f->lease_fd, F_GETLEASE) == F_RDLCK);
}

int vfs_lease_drop(struct vfs_file *f)
{
	int fd = f->lease_fd;

	if (fd < 0)
		return -1;
	vfs_lease_table_remove(&f->vfs->leases->table, f);
	vfs_leases_unwatch(f->vfs->leases, f, fd);
	if (f->gated)
		vfs_gate_drop(f);
	atomic_fetch_sub(&f->vfs->files->leases, 1);
	vfs_fd_set_aside(f->vfs, -1);
	f->lease_fd = -1;
	/* By itself it would go with the last copy of the descriptor, which a child may have. A
	 * directory and a gate have none. */
	(void)fcntl(fd, F_SETLEASE, F_UNLCK);
	return fd;
}

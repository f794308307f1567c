/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/hold/open_gate.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/fanotify.h>

#include "lib/error.h"
#include "vfs/base/instance.h"
#include "vfs/fs/file_system.h"
#include "vfs/hold/gate_thread.h"
#include "vfs/hold/lease_thread.h"
#include "vfs/node/cache.h"

bool vfs_gate_possible(const struct vfs *vfs)
{
	return vfs->gates->group >= 0;
}

/* The kinds of data descriptors that are open, as bits. */
static unsigned open_kinds(const struct vfs_node *n)
{
	unsigned kinds = 0;

	for (unsigned i = 0; i < VFS_FD_KINDS; i++)
		kinds |= atomic_load(&n->data_fd[i]) >= 0 ? 1u << i : 0;
	return kinds;
}

/* One descriptor may stay: that of the holder's WRITEs, if it is there. */
static void close_others(struct vfs_node *n)
{
	const unsigned open = open_kinds(n), write = 1u << VFS_FD_WRITE;

	vfs_cache_close_data(n, open & write ? ~write : ~(1u << VFS_FD_READ));
}

void vfs_gate_probe_close(struct vfs *vfs, const struct vfs_gate_probe *p)
{
	if (!p->is_data_fd)
		vfs_fd_close(vfs, p->fd);
}

int vfs_gate_probe_open(struct vfs_node *n, struct vfs_gate_probe *out)
{
	unsigned open, kind = 0;
	int rc;

	close_others(n);
	open = open_kinds(n);
	if (open & (open - 1))
		return -RN_ENOTNOW;
	*out = (struct vfs_gate_probe){ .is_data_fd = open != 0 };
	while (open >> kind > 1)
		kind++;
	/* The node keeps it open while the caller has a reference. */
	out->fd = open ? atomic_load(&n->data_fd[kind])
		       : vfs_fd_reopen_data(n->vfs, n->path_fd, O_RDONLY);
	if (out->fd < 0)
		return out->fd == -RN_ELEASE ? -RN_ENOTNOW : out->fd;
	rc = vfs_leases_own(n->vfs->leases, out->fd);
	if (rc != 0)
		vfs_gate_probe_close(n->vfs, out);
	return rc;
}

static int gate_mark(const struct vfs_file *f, unsigned how)
{
	return fanotify_mark(f->vfs->gates->group, how, FAN_OPEN_PERM, AT_FDCWD,
			     vfs_proc_path(f->lease_fd).s);
}

/* F_WRLCK: true if nobody else has the file open or mapped, at this moment. F_RDLCK: if nobody has it open to write.
 * There is no lease by fd then. */
static bool gate_is_alone(const struct vfs_file *f, int fd, int type)
{
	struct vfs_gates *gs = f->vfs->gates;

	pthread_mutex_lock(&gs->probing);
	const bool alone = fcntl(fd, F_SETLEASE, type) == 0;
	const int error = errno;

	if (alone)
		(void)fcntl(fd, F_SETLEASE, F_UNLCK);
	pthread_mutex_unlock(&gs->probing);
	errno = error;
	return alone;
}

static void gate_count(struct vfs_file *f, uint32_t by)
{
	atomic_fetch_add(vfs_gated_slot(f->vfs, f->key, f->key_len), by);
	atomic_fetch_add(&f->vfs->files->gates, (uint64_t)(int32_t)by);
	f->gated = by == 1;
}

/* Takes the gate if the lease of that type could be had by fd. */
static int gate_take_lease_type(struct vfs_file *f, int fd, int type)
{
	int rc;

	gate_count(f, 1);
	if (gate_mark(f, FAN_MARK_ADD) != 0) {
		rc = errno == ENOSPC || errno == ENOMEM ? -RN_ENOTNOW : -EOPNOTSUPP;
		gate_count(f, (uint32_t)-1);
		return rc;
	}
	if ((type == F_WRLCK || fcntl(fd, F_GETLEASE) == type) && gate_is_alone(f, fd, type))
		return 0;
	rc = errno == EINVAL || errno == EACCES ? -EOPNOTSUPP : -RN_ENOTNOW;
	vfs_gate_drop(f);
	return rc;
}

int vfs_gate_take(struct vfs_file *f, int probe)
{
	return gate_take_lease_type(f, probe, F_WRLCK);
}

bool vfs_gate_replace_lease(struct vfs_file *f)
{
	return vfs_gate_possible(f->vfs) && gate_take_lease_type(f, f->lease_fd, F_RDLCK) == 0;
}

void vfs_gate_drop(struct vfs_file *f)
{
	(void)gate_mark(f, FAN_MARK_REMOVE);
	gate_count(f, (uint32_t)-1);
	vfs_gates_allow(f);
}

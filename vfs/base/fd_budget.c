/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/base/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "lib/error.h"
#include "vfs/file_state.h"
#include "vfs/fs/file_system.h"
#include "vfs/fs/handle.h"

#define TRIES 50 /* at an exhausted descriptor table, with a pause when nothing can be evicted */
#define PAUSE_NS (2 * 1000 * 1000) /* others give theirs back at the end of their requests */

struct opening {
	int dirfd;
	const char *path; /* NULL: by handle */
	int flags;
	mode_t mode;
	const struct vfs_handle *handle;
};

static int fd_open_once(const struct opening *o)
{
	int fd;

	if (!o->path)
		return vfs_handle_open(o->dirfd, o->handle);
	fd = openat(o->dirfd, o->path, o->flags | O_CLOEXEC, o->mode);
	if (fd < 0)
		return errno == EWOULDBLOCK && (o->flags & O_NONBLOCK) ? -RN_ELEASE : -errno;
	return fd;
}

/* Counted already. What is beyond is connections': it is as if the process had no more. */
static bool too_many(struct vfs *vfs)
{
	return vfs->cfg.max_fds_most && atomic_load(&vfs->fds) > (long)vfs->cfg.max_fds_most;
}

static int fd_open_counted(struct vfs *vfs, const struct opening *o)
{
	struct timespec pause = { .tv_nsec = PAUSE_NS };
	int fd = -RN_EFULL;

	if (atomic_fetch_add(&vfs->fds, 1) >= (long)vfs->cfg.max_fds)
		vfs->evict(vfs);
	for (unsigned i = 0; i < TRIES; i++) {
		fd = too_many(vfs) ? -EMFILE : fd_open_once(o);
		if (fd != -EMFILE && fd != -ENFILE)
			break;
		if (!vfs->evict(vfs))
			nanosleep(&pause, NULL);
		fd = -RN_EFULL;
	}
	if (fd < 0)
		atomic_fetch_sub(&vfs->fds, 1);
	return fd;
}

int vfs_fd_openat(struct vfs *vfs, int dirfd, const char *path, int flags, mode_t mode)
{
	return fd_open_counted(
		vfs,
		&(struct opening){ .dirfd = dirfd, .path = path, .flags = flags, .mode = mode });
}

int vfs_fd_reopen(struct vfs *vfs, int fd, int flags)
{
	return vfs_fd_openat(vfs, AT_FDCWD, vfs_proc_path(fd).s, flags, 0);
}

int vfs_fd_reopen_data(struct vfs *vfs, int fd, int flags)
{
	int copy;

	if (flags & O_DIRECTORY) /* only regular files have leases */
		return vfs_fd_reopen(vfs, fd, flags);
	copy = vfs_fd_reopen(vfs, fd, flags | O_NONBLOCK);
	/* The flag has done its work. On file systems without asynchronous buffered I/O io_uring
	 * would answer -EAGAIN to whatever has to wait for the disk. */
	if (copy >= 0 && fcntl(copy, F_SETFL, flags & O_DIRECT) != 0) {
		int error = -errno;

		vfs_fd_close(vfs, copy);
		return error;
	}
	return copy;
}

bool vfs_fd_has_room(const struct vfs *vfs)
{
	return atomic_load_explicit(&vfs->fds, memory_order_relaxed) < (long)vfs->cfg.max_fds;
}

bool vfs_fd_count_opened(struct vfs *vfs)
{
	if (atomic_fetch_add(&vfs->fds, 1) < (long)vfs->cfg.max_fds)
		return true;
	atomic_fetch_sub(&vfs->fds, 1);
	return false;
}

int vfs_fd_dup(struct vfs *vfs, int fd)
{
	int copy = -EMFILE;

	atomic_fetch_add(&vfs->fds, 1);
	if (!too_many(vfs)) {
		copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		copy = copy < 0 ? -errno : copy;
	}
	if (copy < 0)
		atomic_fetch_sub(&vfs->fds, 1);
	return copy == -EMFILE ? -RN_EFULL : copy;
}

int vfs_fd_open_handle(struct vfs *vfs, int mount_fd, const struct vfs_handle *h)
{
	return fd_open_counted(vfs, &(struct opening){ .dirfd = mount_fd, .handle = h });
}

void vfs_fd_set_aside(struct vfs *vfs, int n)
{
	atomic_fetch_sub(&vfs->fds, n);
}

void vfs_fd_close(struct vfs *vfs, int fd)
{
	if (fd < 0)
		return;
	close(fd);
	atomic_fetch_sub(&vfs->fds, 1);
}

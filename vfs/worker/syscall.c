/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker without io_uring: each operation is a system call when it is started, and waiting is
 * poll(2) on the watched descriptor.
 */
#include "vfs/worker/syscall.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

static int syscall_result(ssize_t n)
{
	return n < 0 ? -errno : (int)n;
}

int vfs_syscall_read(struct vfs_worker *w, const struct vfs_ring_rw *rw)
{
	int res = vfs_identity_root(&w->identity);

	if (res == 0)
		res = syscall_result(
			preadv2(rw->fd, rw->iov, (int)rw->niov, (off_t)rw->offset, rw->flags));
	return res;
}

/* nobody's lack of CAP_FSETID is what clears the set-uid and set-gid bits. */
static int become_writer(struct vfs_worker *w, bool as_user)
{
	return as_user ? vfs_identity_become(&w->identity, &vfs_nobody)
		       : vfs_identity_root(&w->identity);
}

/* Where the kernel has no pwritev2(2), as that of an emulator, glibc writes without flags only. */
static ssize_t write_then_sync(const struct vfs_ring_rw *rw)
{
	ssize_t n = pwritev(rw->fd, rw->iov, (int)rw->niov, (off_t)rw->offset);

	if (n < 0)
		return n;
	return (rw->flags & RWF_SYNC ? fsync(rw->fd) : fdatasync(rw->fd)) == 0 ? n : -1;
}

int vfs_syscall_pwrite(const struct vfs_ring_rw *rw)
{
	ssize_t n = pwritev2(rw->fd, rw->iov, (int)rw->niov, (off_t)rw->offset, rw->flags);

	if (n < 0 && errno == EOPNOTSUPP && rw->flags & (RWF_SYNC | RWF_DSYNC))
		n = write_then_sync(rw);
	return syscall_result(n);
}

int vfs_syscall_write(struct vfs_worker *w, const struct vfs_ring_rw *rw)
{
	int res = become_writer(w, rw->as_user);

	if (res == 0)
		res = vfs_syscall_pwrite(rw);
	return res;
}

int vfs_syscall_fsync(int fd)
{
	return syscall_result(fsync(fd));
}

int vfs_syscall_fallocate(struct vfs_worker *w, const struct vfs_ring_fallocate *f)
{
	int res = become_writer(w, f->as_user);

	if (res == 0)
		res = syscall_result(fallocate(f->fd, f->mode, (off_t)f->offset, (off_t)f->len));
	return res;
}

int vfs_syscall_fadvise(const struct vfs_ring_fadvise *f)
{
	return -posix_fadvise(f->fd, (off_t)f->offset, (off_t)f->len, f->advice);
}

int vfs_syscall_enter(struct vfs_worker *w, int timeout_ms)
{
	struct pollfd p = { .fd = w->watch.fd, .events = POLLIN };
	int n = poll(&p, 1, timeout_ms);

	if (n < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -errno;
	if (n == 0)
		return timeout_ms >= 0 ? -ETIME : 0;
	if (p.revents & POLLNVAL)
		return -EBADF;
	w->watch.readable = true;
	return 0;
}

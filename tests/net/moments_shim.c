/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preloaded into ringnfsd: stops it before the K-th file system call of an operation, a system call or an entry of an
 * io_uring, while tests/net/moments.py changes something, or has the call fail.
 *
 * $MOMENTS_REMOTE: all file systems look like one that other machines have, too. $MOMENTS is a file of struct control, which the test writes; $MOMENTS_FD is a socket: one byte goes to the test at
 * the moment, and one comes back when it has done what it wants.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

struct control {
	_Atomic uint32_t k;	/* 0: calls are not counted */
	_Atomic uint32_t count; /* calls so far */
	uint32_t error;		/* errno of the K-th call; 0: the test is told */
	char call[36];		/* name of the K-th */
	uint32_t goes_on;	/* 1: all calls after the K-th fail, too */
};

static struct control *control;
static int test_fd = -1;
static pthread_mutex_t naming =
	PTHREAD_MUTEX_INITIALIZER; /* calls that fail soon after one another are of several threads */

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("MOMENTS"), *fd = getenv("MOMENTS_FD");
	int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *at;

	if (file < 0 || !fd)
		return;
	at = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	test_fd = atoi(fd);
	control = at == MAP_FAILED ? NULL : at;
}

/* Threads that run operations; others look at the mount table or write records. */
static bool runs_calls(void)
{
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	return !strncmp(name, "worker-", 7) || !strncmp(name, "event-", 6);
}

static void tell_test(void)
{
	char byte = 0;

	while (write(test_fd, &byte, 1) < 0 && errno == EINTR)
		;
	while (read(test_fd, &byte, 1) < 0 && errno == EINTR)
		;
}

/* Counts a call. The errno that it is to fail with, or 0. */
static int moment(const char *call)
{
	uint32_t k = control ? atomic_load(&control->k) : 0, n;

	if (k == 0 || !runs_calls())
		return 0;
	n = atomic_fetch_add(&control->count, 1) + 1;
	if (n < k || (n > k && !control->goes_on))
		return 0;
	pthread_mutex_lock(&naming);
	strncpy(control->call, call, sizeof(control->call) - 1);
	pthread_mutex_unlock(&naming);
	if (control->error)
		return (int)control->error;
	tell_test();
	return 0;
}

#define WRAP(result, name, params, args)                                                           \
	result name params                                                                         \
	{                                                                                          \
		static result(*_Atomic next) params;                                               \
		int error = moment(#name);                                                         \
                                                                                                   \
		if (error) {                                                                       \
			errno = error;                                                             \
			return -1;                                                                 \
		}                                                                                  \
		if (!next)                                                                         \
			next = (result(*) params)dlsym(RTLD_NEXT, #name);                          \
		return next args;                                                                  \
	}

WRAP(int, statx, (int fd, const char *restrict p, int fl, unsigned m, struct statx *restrict o),
     (fd, p, fl, m, o))
WRAP(int, fstatat, (int fd, const char *restrict p, struct stat *restrict o, int fl),
     (fd, p, o, fl))
WRAP(int, fstat, (int fd, struct stat *o), (fd, o))
WRAP(int, mkdirat, (int fd, const char *p, mode_t m), (fd, p, m))
WRAP(int, mknodat, (int fd, const char *p, mode_t m, dev_t d), (fd, p, m, d))
WRAP(int, symlinkat, (const char *t, int fd, const char *p), (t, fd, p))
WRAP(int, unlinkat, (int fd, const char *p, int fl), (fd, p, fl))
WRAP(int, linkat, (int a, const char *b, int c, const char *d, int fl), (a, b, c, d, fl))
WRAP(int, renameat, (int a, const char *b, int c, const char *d), (a, b, c, d))
WRAP(int, renameat2, (int a, const char *b, int c, const char *d, unsigned fl), (a, b, c, d, fl))
WRAP(int, name_to_handle_at, (int a, const char *b, struct file_handle *c, int *d, int fl),
     (a, b, c, d, fl))
WRAP(int, open_by_handle_at, (int a, struct file_handle *b, int fl), (a, b, fl))
WRAP(int, faccessat, (int a, const char *b, int m, int fl), (a, b, m, fl))
WRAP(int, chmod, (const char *p, mode_t m), (p, m))
WRAP(int, fchownat, (int a, const char *b, uid_t u, gid_t g, int fl), (a, b, u, g, fl))
WRAP(int, utimensat, (int a, const char *b, const struct timespec t[2], int fl), (a, b, t, fl))
WRAP(int, ftruncate, (int fd, off_t size), (fd, size))
WRAP(int, fallocate, (int fd, int mode, off_t at, off_t len), (fd, mode, at, len))
WRAP(int, fsync, (int fd), (fd))
WRAP(int, syncfs, (int fd), (fd))
WRAP(ssize_t, pread, (int fd, void *b, size_t n, off_t at), (fd, b, n, at))
WRAP(ssize_t, pwrite, (int fd, const void *b, size_t n, off_t at), (fd, b, n, at))
WRAP(ssize_t, preadv2, (int fd, const struct iovec *v, int n, off_t at, int fl), (fd, v, n, at, fl))
WRAP(ssize_t, pwritev2, (int fd, const struct iovec *v, int n, off_t at, int fl),
     (fd, v, n, at, fl))
WRAP(ssize_t, getxattr, (const char *p, const char *n, void *v, size_t s), (p, n, v, s))
WRAP(int, setxattr, (const char *p, const char *n, const void *v, size_t s, int fl),
     (p, n, v, s, fl))
WRAP(ssize_t, readlinkat, (int fd, const char *restrict p, char *restrict b, size_t n),
     (fd, p, b, n))

int fstatfs(int fd, struct statfs *out)
{
	static int (*_Atomic next)(int, struct statfs *);

	if (!next)
		next = (int (*)(int, struct statfs *))dlsym(RTLD_NEXT, "fstatfs");
	if (next(fd, out) != 0)
		return -1;
	if (getenv("MOMENTS_REMOTE"))
		out->f_type = FUSE_SUPER_MAGIC;
	return 0;
}

int openat(int fd, const char *path, int flags, ...)
{
	int error = moment("openat");
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE)
		mode = va_arg(ap, mode_t);
	va_end(ap);
	if (!error)
		return (int)syscall(SYS_openat, fd, path, flags, mode);
	errno = error;
	return -1;
}

/* Most of what goes by number is no call of a file system. */
static int numbered(long number)
{
	switch (number) {
	case SYS_openat2:
		return moment("openat2");
	case SYS_faccessat2:
		return moment("faccessat2");
	case SYS_getdents64:
		return moment("getdents64");
	default:
		return 0;
	}
}

long syscall(long number, ...)
{
	static long (*_Atomic next)(long, ...);
	long a[6];
	va_list ap;
	int error = numbered(number);

	va_start(ap, number);
	for (unsigned i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (!next)
		next = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	if (!error)
		return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	errno = error;
	return -1;
}

/* An entry that is to fail does nothing; what is said of it is put right by take(). */
static _Atomic uint64_t failing;

static void give(struct io_uring *ring)
{
	struct io_uring_sq *sq = &ring->sq;
	int error;

	for (unsigned i = sq->sqe_head; i != sq->sqe_tail; i++) {
		struct io_uring_sqe *sqe = &sq->sqes[i & sq->ring_mask];

		if (sqe->opcode == IORING_OP_POLL_ADD)
			continue;
		error = moment("io_uring");
		if (error) {
			atomic_store(&failing, sqe->user_data);
			sqe->opcode = IORING_OP_NOP;
			sqe->rw_flags = 0;
			sqe->fd = -1;
			sqe->buf_index = 0;
		}
	}
}

static void take(struct io_uring *ring)
{
	uint64_t data = atomic_load(&failing);
	struct io_uring_cqe *cqe;
	unsigned head;

	if (!data)
		return;
	io_uring_for_each_cqe (ring, head, cqe) {
		if (cqe->user_data == data) {
			cqe->res = -(int)control->error;
			atomic_store(&failing, 0);
		}
	}
}

#define WRAP_RING(name, params, args)                                                              \
	int name params                                                                            \
	{                                                                                          \
		static int(*_Atomic next) params;                                                  \
		int rc;                                                                            \
                                                                                                   \
		if (!next)                                                                         \
			next = (int(*) params)dlsym(RTLD_NEXT, #name);                             \
		give(ring);                                                                        \
		rc = next args;                                                                    \
		take(ring);                                                                        \
		return rc;                                                                         \
	}

WRAP_RING(io_uring_submit, (struct io_uring * ring), (ring))
WRAP_RING(io_uring_submit_and_get_events, (struct io_uring * ring), (ring))
WRAP_RING(io_uring_submit_and_wait_timeout,
	  (struct io_uring * ring, struct io_uring_cqe **cqe, unsigned n,
	   struct __kernel_timespec *ts, sigset_t *mask),
	  (ring, cqe, n, ts, mask))

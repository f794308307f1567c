/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls of the server that fail. The program's definitions take precedence over libc's. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/fuzz/session/counts.h"
#include "tests/fuzz/session/disk.h"
#include "tests/fuzz/session/tree.h"

static atomic_int calls_left, error;
static _Thread_local bool spared;

void ss_errors_spare_me(void)
{
	spared = true;
}

void ss_errors_arm(unsigned how)
{
	static const int errors[] = { EIO, ENOSPC, EDQUOT, EMFILE };

	atomic_store(&error, errors[how & 3]);
	atomic_store(&calls_left, 1 + (int)(how >> 2 & 15));
}

void ss_errors_end(void)
{
	atomic_store(&calls_left, 0);
}

static bool fails(void)
{
	if (spared || atomic_load(&calls_left) <= 0 || atomic_fetch_sub(&calls_left, 1) != 1)
		return false;
	errno = atomic_load(&error);
	ss_count(SS_N_CALL_FAILED);
	return true;
}

int openat(int dirfd, const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	if (flags & (O_CREAT | O_TMPFILE)) {
		va_start(ap, flags);
		mode = va_arg(ap, mode_t);
		va_end(ap);
	}
	return fails() ? -1 : (int)syscall(SYS_openat, dirfd, path, flags, mode);
}

int mkdirat(int dirfd, const char *path, mode_t mode)
{
	return fails() ? -1 : (int)syscall(SYS_mkdirat, dirfd, path, mode);
}

int symlinkat(const char *target, int dirfd, const char *path)
{
	return fails() ? -1 : (int)syscall(SYS_symlinkat, target, dirfd, path);
}

int linkat(int fromfd, const char *from, int tofd, const char *to, int flags)
{
	return fails() ? -1 : (int)syscall(SYS_linkat, fromfd, from, tofd, to, flags);
}

int renameat(int fromfd, const char *from, int tofd, const char *to)
{
	return fails() ? -1 : (int)syscall(SYS_renameat2, fromfd, from, tofd, to, 0);
}

int unlinkat(int dirfd, const char *path, int flags)
{
	return fails() ? -1 : (int)syscall(SYS_unlinkat, dirfd, path, flags);
}

int ftruncate(int fd, off_t size)
{
	return fails() ? -1 : (int)syscall(SYS_ftruncate, fd, size);
}

ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t len,
			unsigned flags)
{
	if (fails())
		return -1;
	if (ss_tree_may_copy(from, to))
		return syscall(SYS_copy_file_range, from, from_at, to, to_at, len, flags);
	errno = EIO;
	return -1;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Features that some kernels, containers and qemu-user lack, and that the server works without (tests/net/lacking.py). Tests of how it uses
 * one of them are skipped where it is missing. */
#ifndef RN_TESTS_KERNEL_CAN_H
#define RN_TESTS_KERNEL_CAN_H

#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/fanotify.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEED_KERNEL_CAN(what)                                                                      \
	do {                                                                                       \
		if (!kernel_can_##what())                                                          \
			cr_skip_test("the kernel cannot " #what);                                  \
	} while (0)

/* Names that are in memory, without a disk. */
static inline bool kernel_can_open_cached(void)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_CACHED };
	const long fd = syscall(SYS_openat2, AT_FDCWD, "/", &how, sizeof(how));

	if (fd >= 0)
		close((int)fd);
	return fd >= 0;
}

/* Data that are in memory, without a disk. */
static inline bool kernel_can_read_cached(void)
{
	char c;
	const int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	const ssize_t n = preadv2(fd, &(struct iovec){ &c, 1 }, 1, 0, RWF_NOWAIT);

	if (fd >= 0)
		close(fd);
	return n == 1;
}

/* A mount without those upon it. */
static inline bool kernel_can_clone_mounts(void)
{
	const long fd = syscall(SYS_open_tree, AT_FDCWD, "/", 1 /* OPEN_TREE_CLONE */ | O_CLOEXEC);

	if (fd >= 0)
		close((int)fd);
	return fd >= 0;
}

/* Files by handle (FAN_REPORT_FID). */
static inline bool kernel_can_watch_files(void)
{
	const int fd = fanotify_init(FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_REPORT_FID, O_RDONLY);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* A table of descriptors that two processes share; qemu-user cannot. */
static inline bool kernel_can_share_descriptors(void)
{
#ifdef __s390__
	const long pid = syscall(SYS_clone, 0ul, (unsigned long)CLONE_FILES, 0ul, 0ul, 0ul);
#else
	const long pid = syscall(SYS_clone, (unsigned long)CLONE_FILES, 0ul, 0ul, 0ul, 0ul);
#endif

	if (pid == 0)
		_exit(0);
	return pid > 0 && waitpid((pid_t)pid, NULL, __WALL) == pid;
}

#endif

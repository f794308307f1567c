/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts descriptors and threads of the process, ends it within a time, and checks at its start that the kernel has the system calls it needs. */
#include "daemon/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "lib/util.h"

#define FDS "/proc/self/fd"
#define THREADS "/proc/self/task"

static uint64_t count_entries(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *e;
	uint64_t n = 0;

	if (!dir)
		return 0;
	while ((e = readdir(dir)))
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

/* The size of the folder is the number since Linux 6.2. To read the folder takes long with many descriptors, and anybody
 * may ask over TCP. A count has the descriptor that reads the folder, too. */
uint64_t process_fds(void)
{
	struct stat st;

	if (stat(FDS, &st) == 0 && st.st_size > 0)
		return (uint64_t)st.st_size;
	const uint64_t n = count_entries(FDS);

	return n ? n - 1 : 0;
}

uint64_t process_threads(void)
{
	return count_entries(THREADS);
}

/* Static: there is one deadline, since the process ends only once. */
static struct {
	const struct rn_logger *log;
	unsigned seconds;
	int status;
} deadline;

void process_leave(int status)
{
	_exit(status);
}

static void *deadline_main(void *arg)
{
	const struct timespec limit = { .tv_sec = deadline.seconds };

	(void)arg;
	nanosleep(&limit, NULL);
	rn_warn(deadline.log,
		"a file system does not answer: exiting without the calls that wait for it");
	process_leave(deadline.status);
	return NULL;
}

void deadline_start(const struct rn_logger *log, unsigned seconds, int status)
{
	pthread_attr_t attr;
	pthread_t thread;
	int rc;

	deadline.log = log;
	deadline.seconds = seconds;
	deadline.status = status;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	rc = pthread_create(&thread, &attr, deadline_main, NULL);
	pthread_attr_destroy(&attr);
	if (rc)
		rn_warn(log, "cannot limit the time that stopping takes: %s", strerror(rc));
}

/* By number: where the kernel refuses some of them, glibc emulates them, and not as they are needed. */
static const struct needed {
	const char *name;
	long number;
	bool spared; /* true: glibc does without where the kernel has none, but not where it is refused */
	long args[5];
} calls[] = {
	{ "clone3", SYS_clone3, true, { 0 } },
	{ "faccessat2", SYS_faccessat2, false, { -1, (long)"", F_OK, AT_EMPTY_PATH } },
	{ "fcntl(F_OFD_SETLK)", SYS_fcntl, false, { -1, F_OFD_SETLK, 0 } },
	{ "getrandom", SYS_getrandom, false, { 0 } },
	{ "name_to_handle_at",
	  SYS_name_to_handle_at,
	  false,
	  { -1, (long)"", 0, 0, AT_EMPTY_PATH } },
	{ "preadv2", SYS_preadv2, true, { -1 } },
	{ "pwritev2", SYS_pwritev2, true, { -1 } },
#ifdef SYS_sync_file_range /* some processors have another one */
	{ "sync_file_range", SYS_sync_file_range, false, { -1 } },
#endif
	{ "statx", SYS_statx, false, { -1, (long)"", AT_EMPTY_PATH } },
};

/* The arguments are such that the kernel does nothing. */
static int try_call(const struct needed *c)
{
	const long *a = c->args;
	const int error = syscall(c->number, a[0], a[1], a[2], a[3], a[4], 0L) < 0 ? errno : 0;

	if (error == EPERM)
		return -EPERM;
	return error == ENOSYS && !c->spared ? -ENOSYS : 0;
}

int system_calls_check(const struct rn_logger *log)
{
	int rc = 0;

	for (size_t i = 0; i < rn_array_size(calls); i++) {
		const int missing = try_call(&calls[i]);

		if (missing == 0)
			continue;
		rn_err(log,
		       "the system call %s is missing (%s): the server needs Linux 5.8 or newer, "
		       "and a "
		       "seccomp filter that allows the call",
		       calls[i].name, strerror(-missing));
		rc = -ENOSYS;
	}
	return rc;
}

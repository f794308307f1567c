/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preloaded into ringnfsd by tests/history/server.py: the wall clock jumps, and memory is short.
 *
 * $WORLD is a file of struct world, which the nemesis writes. Allocations fail in the threads that run calls only: the others would end
 * the server, as they may when it starts.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS 1000000000

struct world {
	_Atomic int64_t ahead;	 /* nanoseconds that the wall clock is ahead of the kernel's */
	_Atomic uint32_t one_in; /* allocations of which one fails; 0: none does */
};

static struct world *world;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("WORLD");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *at;

	if (fd < 0)
		return;
	at = mmap(NULL, sizeof(*world), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	world = at == MAP_FAILED ? NULL : at;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	const int rc = (int)syscall(SYS_clock_gettime, id, ts);
	int64_t ns;

	if (rc != 0 || !world || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
		return rc;
	ns = (int64_t)ts->tv_sec * NS + ts->tv_nsec + atomic_load(&world->ahead);
	ts->tv_sec = ns / NS;
	ts->tv_nsec = ns % NS;
	return 0;
}

time_t time(time_t *t)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	if (t)
		*t = now.tv_sec;
	return now.tv_sec;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	*tv = (struct timeval){ .tv_sec = now.tv_sec, .tv_usec = now.tv_nsec / 1000 };
	return 0;
}

static bool runs_calls(void)
{
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	return !strncmp(name, "worker-", 7) || !strncmp(name, "event-", 6);
}

static bool refuses(void)
{
	static _Atomic uint32_t count;
	const uint32_t one_in = world ? atomic_load(&world->one_in) : 0;

	if (one_in == 0 || !runs_calls() || atomic_fetch_add(&count, 1) % one_in != 0)
		return false;
	errno = ENOMEM;
	return true;
}

/* glibc's own names for what is replaced here. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

void *malloc(size_t size)
{
	return refuses() ? NULL : __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
	return refuses() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return size > 0 && refuses() ? NULL : __libc_realloc(p, size);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lists a directory while it changes.
 *
 *   dirstorm fill N DIR                     create stable.00000 .. in DIR
 *   dirstorm list N ROUNDS DIR [OTHER...]   list DIR ROUNDS times or more
 *
 * While `list` reads DIR, one process for DIR and for each OTHER (the same directory by another
 * way, as on the server) keeps adding and removing entries of its own. Each stable entry must be
 * seen exactly once in each listing, and an entry that is neither stable nor a storm's is an error.
 * Each storm must have done some work for the test to count.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_STORMS = 4, KEPT = 40, ENOUGH = 5 };

static void touch(int dir, const char *name)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0644);

	if (fd < 0)
		err(1, "create %s", name);
	close(fd);
}

static int open_dir(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

static void fill(unsigned n, const char *path)
{
	char name[32];
	int dir = open_dir(path);

	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "stable.%05u", i);
		touch(dir, name);
	}
	close(dir);
}

/* Memory that the processes share. */
struct shared {
	volatile unsigned done[MAX_STORMS]; /* entries added by each storm */
	volatile unsigned stop;
};

/* Adds entries, and removes each KEPT additions later, until stopped. The process is not killed,
 * because a call interrupted by a kill would show in the client's statistics. */
static void storm(unsigned me, const char *path, struct shared *shared)
{
	char name[64];
	int dir = open_dir(path);

	for (unsigned i = 0; !shared->stop; i++) {
		snprintf(name, sizeof(name), "storm.%u.%u", me, i);
		touch(dir, name);
		if (i >= KEPT) {
			snprintf(name, sizeof(name), "storm.%u.%u", me, i - KEPT);
			if (unlinkat(dir, name, 0) < 0)
				err(1, "unlink %s", name);
		}
		shared->done[me] = i + 1;
		usleep(1000);
	}
	exit(0);
}

static void list_once(unsigned n, const char *path)
{
	unsigned char *seen = calloc(n, 1);
	DIR *d = opendir(path);
	struct dirent *e;
	unsigned at, dots = 0;

	if (!d || !seen)
		err(1, "%s", path);
	while (errno = 0, (e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) {
			dots++;
		} else if (sscanf(e->d_name, "stable.%05u", &at) == 1 && at < n) {
			if (seen[at]++)
				errx(1, "%s is listed twice", e->d_name);
		} else if (strncmp(e->d_name, "storm.", 6) != 0) {
			errx(1, "unknown entry %s", e->d_name);
		}
	}
	if (errno)
		err(1, "readdir");
	if (dots != 2)
		errx(1, "%u dot entries instead of 2", dots);
	for (at = 0; at < n; at++) {
		if (!seen[at])
			errx(1, "stable.%05u is not listed", at);
	}
	closedir(d);
	free(seen);
}

/* True if each storm has done enough that a listing must have met it. */
static bool stormy(const struct shared *shared, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (shared->done[i] < ENOUGH)
			return false;
	}
	return true;
}

static void list(unsigned n, unsigned rounds, char **dirs, unsigned ndirs)
{
	struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	time_t limit = time(NULL) + 60;
	pid_t pids[MAX_STORMS];
	unsigned round = 0;
	bool bad = false;
	int status;

	if (shared == MAP_FAILED)
		err(2, "memory");
	for (unsigned i = 0; i < ndirs; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			err(2, "fork");
		if (pids[i] == 0)
			storm(i, dirs[i], shared);
	}
	while (round < rounds || (time(NULL) < limit && !stormy(shared, ndirs))) {
		list_once(n, dirs[0]);
		round++;
	}
	bad = !stormy(shared, ndirs);
	shared->stop = 1;
	for (unsigned i = 0; i < ndirs; i++) {
		waitpid(pids[i], &status, 0);
		bad |= status != 0;
		printf("%s: %u entries added in %u listings\n", dirs[i], shared->done[i], round);
	}
	if (bad)
		errx(1, "a storm failed or did too little");
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "fill") == 0)
		fill((unsigned)strtoul(argv[2], NULL, 0), argv[3]);
	else if (argc >= 5 && argc <= 4 + MAX_STORMS && strcmp(argv[1], "list") == 0)
		list((unsigned)strtoul(argv[2], NULL, 0), (unsigned)strtoul(argv[3], NULL, 0),
		     argv + 4, (unsigned)argc - 4);
	else
		errx(2, "see the comment at the top of dirstorm.c");
	return 0;
}

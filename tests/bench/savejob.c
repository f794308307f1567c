/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Jobs of which delegations, COPY and CLONE spare a client calls. Each prints how many microseconds it took.
 *
 *   savejob make N DIR          N files of 1 KiB, for the others
 *   savejob fill MIB FILE       a file of that many MiB without zeros
 *   savejob reread N FILE       N times: opens a file, reads it, closes it
 *   savejob rewrite N FILE      N times: opens it to read and write, writes it, closes it
 *   savejob overwrite N FILE    N times: opens it to write only, writes it, closes it
 *   savejob hold N DIR          opens and closes each file that make has made; no read, which changes the time of access
 *   savejob stat N DIR          asks for the attributes of each
 *   savejob copy N FROM TO      copies to TO.0, TO.1, ... by copy_file_range(2)
 *   savejob clone N FROM TO     shares the blocks by FICLONE, as cp --reflink does
 *   savejob through N FROM TO   reads and writes 1 MiB at a time
 */
#include <err.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SMALL = 1024, MIB = 1 << 20 };

static unsigned char data[MIB];

static int open_file(const char *path, int flags)
{
	int fd = open(path, flags, 0644);

	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

static void close_file(const char *path, int fd)
{
	if (close(fd))
		err(1, "close of %s", path);
}

static void put(const char *path, int fd, size_t len)
{
	if (write(fd, data, len) != (ssize_t)len)
		err(1, "write of %s", path);
}

static void read_small(const char *path)
{
	int fd = open_file(path, O_RDONLY);

	if (read(fd, data, SMALL + 1) != SMALL)
		err(1, "read of %s", path);
	close_file(path, fd);
}

static void write_small(const char *path, int flags)
{
	int fd = open_file(path, flags);

	put(path, fd, SMALL);
	close_file(path, fd);
}

static void hold_one(const char *path)
{
	close_file(path, open_file(path, O_RDONLY));
}

static void stat_one(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		err(1, "%s", path);
	if (st.st_size != SMALL)
		errx(1, "%s has %lld bytes", path, (long long)st.st_size);
}

static void make_one(const char *path)
{
	write_small(path, O_WRONLY | O_CREAT | O_TRUNC);
}

static void rewrite_one(const char *path)
{
	write_small(path, O_RDWR);
}

static void overwrite_one(const char *path)
{
	write_small(path, O_WRONLY);
}

static int fill(unsigned mib, const char *path)
{
	int fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
	uint64_t x = 88172645463325252U;
	unsigned i;

	while (mib--) {
		for (i = 0; i < MIB; i += sizeof(x)) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			memcpy(data + i, &x, sizeof(x));
		}
		put(path, fd, MIB);
	}
	close_file(path, fd);
	return 1;
}

static void copy_range(int from, int to, const char *path)
{
	ssize_t n;

	do {
		n = copy_file_range(from, NULL, to, NULL, 1U << 30, 0);
		if (n < 0)
			err(1, "copy to %s", path);
	} while (n);
}

static void clone_all(int from, int to, const char *path)
{
	if (ioctl(to, FICLONE, from))
		err(1, "clone to %s", path);
}

static void read_and_write(int from, int to, const char *path)
{
	ssize_t n;

	while ((n = read(from, data, MIB)) > 0)
		put(path, to, (size_t)n);
	if (n < 0)
		err(1, "read for %s", path);
}

static const struct {
	const char *name;
	void (*one)(const char *path);
	int many; /* True: each file of a folder once; false: one file N times. */
} jobs[] = { { "make", make_one, 1 },	    { "hold", hold_one, 1 },
	     { "stat", stat_one, 1 },	    { "reread", read_small, 0 },
	     { "rewrite", rewrite_one, 0 }, { "overwrite", overwrite_one, 0 } };

static const struct {
	const char *name;
	void (*all)(int from, int to, const char *path);
} copies[] = { { "copy", copy_range }, { "clone", clone_all }, { "through", read_and_write } };

static int run_job(const char *name, unsigned n, const char *where)
{
	char path[4096];
	unsigned i, j;

	for (j = 0; j < sizeof(jobs) / sizeof(jobs[0]); j++) {
		if (strcmp(jobs[j].name, name) != 0)
			continue;
		for (i = 0; i < n; i++) {
			if (jobs[j].many)
				snprintf(path, sizeof(path), "%s/file.%u", where, i);
			jobs[j].one(jobs[j].many ? path : where);
		}
		return 1;
	}
	return 0;
}

static void copy_one(unsigned job, const char *from_path, const char *to_path)
{
	int from = open_file(from_path, O_RDONLY);
	int to = open_file(to_path, O_WRONLY | O_CREAT | O_EXCL);

	copies[job].all(from, to, to_path);
	close_file(to_path, to);
	close_file(from_path, from);
}

static int run_copy(const char *name, unsigned n, const char *from, const char *to)
{
	char path[4096];
	unsigned i, j;

	for (j = 0; j < sizeof(copies) / sizeof(copies[0]); j++) {
		if (strcmp(copies[j].name, name) != 0)
			continue;
		for (i = 0; i < n; i++) {
			snprintf(path, sizeof(path), "%s.%u", to, i);
			copy_one(j, from, path);
		}
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 0;
	struct timespec begin, end;
	int known = 0;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	if (n && argc == 4 && strcmp(argv[1], "fill") == 0)
		known = fill(n, argv[3]);
	else if (n && argc == 4)
		known = run_job(argv[1], n, argv[3]);
	else if (n && argc == 5)
		known = run_copy(argv[1], n, argv[3], argv[4]);
	if (!known)
		errx(2, "see the comment at the top of savejob.c");
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%.0f\n", (double)(end.tv_sec - begin.tv_sec) * 1e6 +
				 (double)(end.tv_nsec - begin.tv_nsec) / 1e3);
	return 0;
}

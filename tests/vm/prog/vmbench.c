/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One measurement of a mounted file system; prints rates, higher is better.
 *
 *   vmbench seqwrite MIB FILE       1 MiB writes and fsync, MiB/s
 *   vmbench seqread MIB FILE        1 MiB reads, MiB/s; the caller empties the cache before
 *   vmbench randread OPS FILE       4 KiB O_DIRECT reads by 4 processes, operations/s
 *   vmbench randwrite OPS FILE      4 KiB O_DIRECT writes by 4 processes, operations/s
 *   vmbench fsync N FILE            4 KiB appended and synced, writes/s
 *   vmbench create N DIR            N files created with 1 KiB and closed, files/s
 *   vmbench read N DIR              the created files opened, read and closed, files/s
 *   vmbench stat N DIR              their attributes read from the server ten times, calls/s
 *   vmbench unlink N DIR            the files removed, files/s
 *   vmbench list DIR                entries listed with their attributes, entries/s
 *   vmbench lock N FILE             a byte range locked and unlocked, pairs/s
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MIB = 1 << 20, BLOCK = 4096, PROCS = 4 };

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void *allocate(size_t len)
{
	void *p = aligned_alloc(4096, len);

	if (!p)
		err(2, "memory");
	return memset(p, 0x5a, len);
}

static int open_file(const char *path, int flags)
{
	int fd = open(path, flags, 0644);

	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

static void sequential(bool writing, unsigned mib, const char *path)
{
	unsigned char *buf = allocate(MIB);
	double start = now();
	int fd = open_file(path, writing ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY);

	for (unsigned i = 0; i < mib; i++) {
		ssize_t n = writing ? write(fd, buf, MIB) : read(fd, buf, MIB);

		if (n != MIB)
			err(1, "%s", path);
	}
	if (writing && fsync(fd) < 0)
		err(1, "fsync");
	close(fd);
	printf("%.2f\n", mib / (now() - start));
}

static void synced(unsigned n, const char *path)
{
	unsigned char *buf = allocate(BLOCK);
	int fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
	double start = now();

	for (unsigned i = 0; i < n; i++) {
		if (write(fd, buf, BLOCK) != BLOCK || fsync(fd) < 0)
			err(1, "%s", path);
	}
	printf("%.2f\n", n / (now() - start));
	close(fd);
}

static void random_part(bool writing, unsigned ops, const char *path, unsigned seed)
{
	unsigned char *buf = allocate(BLOCK);
	int fd = open_file(path, (writing ? O_WRONLY : O_RDONLY) | O_DIRECT);
	uint64_t blocks = (uint64_t)lseek(fd, 0, SEEK_END) / BLOCK;

	srandom(seed);
	for (unsigned i = 0; i < ops; i++) {
		off_t off = (off_t)((uint64_t)random() % blocks * BLOCK);
		ssize_t n = writing ? pwrite(fd, buf, BLOCK, off) : pread(fd, buf, BLOCK, off);

		if (n != BLOCK)
			err(1, "%s", path);
	}
	exit(0);
}

static void random_io(bool writing, unsigned ops, const char *path)
{
	double start = now();
	int status, bad = 0;

	for (unsigned i = 0; i < PROCS; i++) {
		pid_t pid = fork();

		if (pid < 0)
			err(2, "fork");
		if (pid == 0)
			random_part(writing, ops / PROCS, path, i + 1);
	}
	while (wait(&status) > 0)
		bad |= status;
	if (bad)
		errx(1, "a process failed");
	printf("%.2f\n", ops / (now() - start));
}

enum { SMALL = 1024, STATS = 10 };

static void create_one(const char *path)
{
	char data[SMALL] = { 1 };
	int fd = open_file(path, O_WRONLY | O_CREAT | O_EXCL);

	if (write(fd, data, sizeof(data)) != sizeof(data) || close(fd) < 0)
		err(1, "%s", path);
}

static void read_one(const char *path)
{
	char data[SMALL + 1];
	int fd = open_file(path, O_RDONLY);

	if (read(fd, data, sizeof(data)) != SMALL || close(fd) < 0)
		err(1, "%s", path);
}

/* statx() with a forced sync, because a plain stat may be answered from the client's cache. */
static void stat_one(const char *path)
{
	struct statx stx;

	for (int i = 0; i < STATS; i++) {
		if (statx(AT_FDCWD, path, AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &stx) < 0)
			err(1, "%s", path);
	}
}

static void unlink_one(const char *path)
{
	if (unlink(path) < 0)
		err(1, "%s", path);
}

static void small_files(void (*one)(const char *path), unsigned each, unsigned n, const char *dir)
{
	double start = now();
	char path[512];

	for (unsigned i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/small.%u", dir, i);
		one(path);
	}
	printf("%.2f\n", n * each / (now() - start));
}

static void locks(unsigned n, const char *path)
{
	struct flock lock = { .l_type = F_WRLCK, .l_len = 10 }, unlock = { .l_type = F_UNLCK };
	int fd = open_file(path, O_RDWR | O_CREAT);
	double start = now();

	for (unsigned i = 0; i < n; i++) {
		if (fcntl(fd, F_SETLK, &lock) < 0 || fcntl(fd, F_SETLK, &unlock) < 0)
			err(1, "%s", path);
	}
	printf("%.2f\n", n / (now() - start));
	close(fd);
}

static void list(const char *path)
{
	double start = now();
	unsigned n = 0;
	DIR *d = opendir(path);
	struct dirent *e;
	struct stat st;

	if (!d)
		err(1, "%s", path);
	while ((e = readdir(d))) {
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			err(1, "%s", e->d_name);
		n++;
	}
	closedir(d);
	printf("%.2f\n", n / (now() - start));
}

int main(int argc, char **argv)
{
	const char *cmd = argc > 1 ? argv[1] : "";
	unsigned n = argc == 4 ? (unsigned)strtoul(argv[2], NULL, 0) : 0;

	if (n && (strcmp(cmd, "seqwrite") == 0 || strcmp(cmd, "seqread") == 0))
		sequential(cmd[3] == 'w', n, argv[3]);
	else if (n && (strcmp(cmd, "randread") == 0 || strcmp(cmd, "randwrite") == 0))
		random_io(cmd[4] == 'w', n, argv[3]);
	else if (n && strcmp(cmd, "fsync") == 0)
		synced(n, argv[3]);
	else if (n && strcmp(cmd, "create") == 0)
		small_files(create_one, 1, n, argv[3]);
	else if (n && strcmp(cmd, "read") == 0)
		small_files(read_one, 1, n, argv[3]);
	else if (n && strcmp(cmd, "stat") == 0)
		small_files(stat_one, STATS, n, argv[3]);
	else if (n && strcmp(cmd, "unlink") == 0)
		small_files(unlink_one, 1, n, argv[3]);
	else if (n && strcmp(cmd, "lock") == 0)
		locks(n, argv[3]);
	else if (argc == 3 && strcmp(cmd, "list") == 0)
		list(argv[2]);
	else
		errx(2, "see the comment at the top of vmbench.c");
	return 0;
}

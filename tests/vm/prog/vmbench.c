/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One measurement of a mounted file system; prints rates, higher is better.
 *
 *   vmbench seqwrite MIB FILE           1 MiB writes and fsync, MiB/s
 *   vmbench seqread MIB FILE            1 MiB reads, MiB/s; the caller empties the cache before
 *   vmbench dirwrite MIB FILE [DEPTH]   1 MiB O_DIRECT writes one behind the other, DEPTH (4) under way, MiB/s
 *   vmbench dirread MIB FILE [DEPTH]    the same, reads
 *   vmbench randread OPS FILE [DEPTH]   4 KiB O_DIRECT reads anywhere, DEPTH (4) under way, operations/s
 *   vmbench randwrite OPS FILE [DEPTH]  the same, writes
 *   vmbench fsync N FILE                4 KiB appended and synced, writes/s
 *   vmbench commit N FILE               a byte range locked, 4 KiB appended, fdatasync, unlocked, times/s
 *   vmbench lock N FILE                 a byte range locked and unlocked, pairs/s
 *   vmbench create N DIR                N files created with 1 KiB and closed, files/s
 *   vmbench read N DIR                  the created files opened, read and closed, files/s
 *   vmbench stat N DIR                  their attributes read from the server ten times, calls/s
 *   vmbench look N DIR                  their attributes once, as the cache has them or not, files/s
 *   vmbench rename N DIR                each of them renamed and renamed back, renames/s
 *   vmbench unlink N DIR                the files removed, files/s
 *   vmbench list DIR                    entries listed with their attributes, entries/s
 *
 * VMBENCH_SYNC in the environment has create, rename and unlink sync what they change, as a server does that answers when it is on disk.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/aio_abi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MIB = 1 << 20, BLOCK = 4096, DEPTH = 4 };

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

/* Appends blocks and syncs each; with a lock as a data base takes it around a commit, or without. */
static void synced(bool locking, unsigned n, const char *path)
{
	struct flock lock = { .l_type = F_WRLCK, .l_len = 10 }, unlock = { .l_type = F_UNLCK };
	unsigned char *buf = allocate(BLOCK);
	int fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);
	double start = now();

	for (unsigned i = 0; i < n; i++) {
		if (locking && fcntl(fd, F_SETLKW, &lock) < 0)
			err(1, "%s", path);
		if (write(fd, buf, BLOCK) != BLOCK || (locking ? fdatasync(fd) : fsync(fd)) < 0)
			err(1, "%s", path);
		if (locking && fcntl(fd, F_SETLK, &unlock) < 0)
			err(1, "%s", path);
	}
	printf("%.2f\n", n / (now() - start));
	close(fd);
}

struct direct {
	aio_context_t context;
	bool anywhere;	 /* false: one behind the other */
	unsigned size;	 /* bytes of an operation */
	unsigned next;	 /* its number */
	uint64_t blocks; /* of that size, in the file */
};

static void submit(struct direct *d, struct iocb *cb)
{
	uint64_t block = d->anywhere ? (uint64_t)random() % d->blocks : d->next++;

	cb->aio_offset = (int64_t)(block * d->size);
	if (syscall(SYS_io_submit, d->context, 1L, &cb) != 1)
		err(1, "io_submit");
}

/* O_DIRECT, so many operations under way at any time. */
static void direct(bool writing, unsigned size, unsigned depth, unsigned ops, const char *path)
{
	int fd = open_file(path, (writing ? O_WRONLY : O_RDONLY) | O_DIRECT);
	struct direct d = { .anywhere = size == BLOCK, .size = size };
	struct iocb *cbs = calloc(depth, sizeof(*cbs));
	struct io_event event;
	double start;

	d.blocks = (uint64_t)lseek(fd, 0, SEEK_END) / size;
	if (!cbs || syscall(SYS_io_setup, depth, &d.context) < 0)
		err(2, "io_setup");
	for (unsigned i = 0; i < depth; i++) {
		cbs[i].aio_data = (uintptr_t)&cbs[i];
		cbs[i].aio_fildes = (uint32_t)fd;
		cbs[i].aio_lio_opcode = writing ? IOCB_CMD_PWRITE : IOCB_CMD_PREAD;
		cbs[i].aio_buf = (uintptr_t)allocate(size);
		cbs[i].aio_nbytes = size;
	}
	start = now();
	for (unsigned i = 0; i < depth && i < ops; i++)
		submit(&d, &cbs[i]);
	for (unsigned done = 0; done < ops; done++) {
		if (syscall(SYS_io_getevents, d.context, 1L, 1L, &event, NULL) != 1)
			err(1, "io_getevents");
		if (event.res != (int64_t)size)
			errx(1, "%s: %lld of %u bytes", path, (long long)event.res, size);
		if (done + depth < ops)
			submit(&d, (struct iocb *)(uintptr_t)event.data);
	}
	printf("%.2f\n", ops / (now() - start));
	close(fd);
}

enum { SMALL = 1024, STATS = 10 };

/* Has the folder of a changed name, or the file, on disk, if asked to. */
static void settle(int fd, const char *path)
{
	static int dir = -1;

	if (!getenv("VMBENCH_SYNC"))
		return;
	if (fd < 0 && dir < 0) {
		char *name = strdup(path);

		dir = open_file(dirname(name), O_RDONLY | O_DIRECTORY);
		free(name);
	}
	if (fsync(fd < 0 ? dir : fd) < 0)
		err(1, "fsync");
}

static void create_one(const char *path)
{
	char data[SMALL] = { 1 };
	int fd = open_file(path, O_WRONLY | O_CREAT | O_EXCL);

	settle(-1, path);
	if (write(fd, data, sizeof(data)) != sizeof(data))
		err(1, "%s", path);
	settle(fd, path);
	if (close(fd) < 0)
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

static void look_one(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		err(1, "%s", path);
}

static void rename_and_settle(const char *from, const char *to)
{
	if (rename(from, to) < 0)
		err(1, "%s", from);
	settle(-1, to);
}

static void rename_one(const char *path)
{
	char other[512];

	snprintf(other, sizeof(other), "%s.renamed", path);
	rename_and_settle(path, other);
	rename_and_settle(other, path);
}

static void unlink_one(const char *path)
{
	if (unlink(path) < 0)
		err(1, "%s", path);
	settle(-1, path);
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

static const struct {
	const char *name;
	void (*one)(const char *path);
	unsigned each; /* operations that `one` counts as */
} of_files[] = { { "create", create_one, 1 }, { "read", read_one, 1 },
		 { "stat", stat_one, STATS }, { "look", look_one, 1 },
		 { "rename", rename_one, 2 }, { "unlink", unlink_one, 1 } };

static const struct {
	const char *name;
	bool writing;
	unsigned size;
} of_blocks[] = { { "dirread", false, MIB },
		  { "dirwrite", true, MIB },
		  { "randread", false, BLOCK },
		  { "randwrite", true, BLOCK } };

static bool run_on_files(const char *cmd, unsigned n, const char *dir)
{
	for (size_t i = 0; i < sizeof(of_files) / sizeof(of_files[0]); i++) {
		if (strcmp(cmd, of_files[i].name) == 0) {
			small_files(of_files[i].one, of_files[i].each, n, dir);
			return true;
		}
	}
	return false;
}

static bool run_direct(const char *cmd, unsigned n, const char *path, unsigned depth)
{
	for (size_t i = 0; i < sizeof(of_blocks) / sizeof(of_blocks[0]); i++) {
		if (strcmp(cmd, of_blocks[i].name) == 0) {
			direct(of_blocks[i].writing, of_blocks[i].size, depth, n, path);
			return true;
		}
	}
	return false;
}

int main(int argc, char **argv)
{
	const char *cmd = argc > 1 ? argv[1] : "";
	unsigned n = argc >= 4 ? (unsigned)strtoul(argv[2], NULL, 0) : 0;
	unsigned depth = argc == 5 ? (unsigned)strtoul(argv[4], NULL, 0) : DEPTH;

	if (n && (strcmp(cmd, "seqwrite") == 0 || strcmp(cmd, "seqread") == 0))
		sequential(cmd[3] == 'w', n, argv[3]);
	else if (n && (strcmp(cmd, "fsync") == 0 || strcmp(cmd, "commit") == 0))
		synced(cmd[0] == 'c', n, argv[3]);
	else if (n && strcmp(cmd, "lock") == 0)
		locks(n, argv[3]);
	else if (argc == 3 && strcmp(cmd, "list") == 0)
		list(argv[2]);
	else if (!n || !depth ||
		 (!run_on_files(cmd, n, argv[3]) && !run_direct(cmd, n, argv[3], depth)))
		errx(2, "see the comment at the top of vmbench.c");
	return 0;
}

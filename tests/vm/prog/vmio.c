/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * File input and output for the tests in the guest, where the shell is not enough.
 *
 *   vmio gen SEED SIZE FILE            write the byte stream of SEED
 *   vmio check SEED SIZE FILE          fail unless FILE is exactly that
 *   vmio direct SIZE FILE              O_DIRECT writes and reads at odd offsets and lengths
 *   vmio append N FILE                 N short O_APPEND records, then all must be there
 *   vmio map SEED SIZE FILE            check the stream of SEED in FILE and put that of SEED + 1,
 *                                      both through mmap(2)
 *   vmio parallel PROCS BYTES DIR      PROCS processes write, read and rewrite at once
 *
 * Byte i of a stream depends on the seed and i alone, so a piece in the wrong place shows.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* Bytes [off, off + len) of the stream. */
static void fill(unsigned char *buf, size_t len, uint64_t seed, uint64_t off)
{
	uint64_t word = 0;

	for (size_t i = 0; i < len; i++) {
		uint64_t at = off + i;

		if (i == 0 || at % 8 == 0)
			word = mix(seed * 0x100000001b3u + at / 8);
		buf[i] = (unsigned char)(word >> (at % 8 * 8));
	}
}

static void *allocate(size_t len)
{
	void *p = aligned_alloc(4096, (len + 4095) / 4096 * 4096);

	if (!p)
		err(2, "memory");
	return p;
}

static void write_all(int fd, const unsigned char *buf, size_t len, off_t off)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, buf, len, off);

		if (n <= 0)
			err(1, "write of %zu at %lld", len, (long long)off);
		buf += n;
		len -= (size_t)n;
		off += n;
	}
}

static size_t read_all(int fd, unsigned char *buf, size_t len, off_t off)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, buf + done, len - done, off + (off_t)done);

		if (n < 0)
			err(1, "read of %zu at %lld", len, (long long)off);
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return done;
}

static int open_file(const char *path, int flags)
{
	int fd = open(path, flags, 0644);

	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

static void close_file(int fd, const char *path)
{
	if (close(fd) < 0)
		err(1, "close of %s", path);
}

/* Fails at the first byte that differs. */
static void compare(const unsigned char *want, const unsigned char *got, size_t len, off_t off)
{
	if (memcmp(want, got, len) == 0)
		return;
	for (size_t i = 0; i < len; i++) {
		if (want[i] != got[i])
			errx(1, "byte %lld: expected %02x, got %02x", (long long)(off + (off_t)i),
			     want[i], got[i]);
	}
}

static void gen_file(uint64_t seed, uint64_t size, const char *path)
{
	unsigned char *buf = allocate(PIECE);
	int fd = open_file(path, O_WRONLY | O_CREAT | O_TRUNC);

	for (uint64_t off = 0; off < size; off += PIECE) {
		size_t n = size - off < PIECE ? size - off : PIECE;

		fill(buf, n, seed, off);
		write_all(fd, buf, n, (off_t)off);
	}
	if (fsync(fd) < 0)
		err(1, "fsync of %s", path);
	close_file(fd, path);
	free(buf);
}

static void check_file(uint64_t seed, uint64_t size, const char *path)
{
	unsigned char *want = allocate(PIECE), *got = allocate(PIECE);
	int fd = open_file(path, O_RDONLY);
	struct stat st;

	if (fstat(fd, &st) < 0)
		err(1, "%s", path);
	if ((uint64_t)st.st_size != size)
		errx(1, "%s: size %lld instead of %llu", path, (long long)st.st_size,
		     (unsigned long long)size);
	for (uint64_t off = 0; off < size; off += PIECE) {
		size_t n = size - off < PIECE ? size - off : PIECE;

		fill(want, n, seed, off);
		if (read_all(fd, got, n, (off_t)off) != n)
			errx(1, "%s: ends early", path);
		compare(want, got, n, (off_t)off);
	}
	if (read_all(fd, got, 1, (off_t)size) != 0)
		errx(1, "%s: does not end", path);
	close_file(fd, path);
	free(want);
	free(got);
}

/* Applies the same writes to the file and to a copy in memory, and compares them. */
static void direct(uint64_t size, const char *path)
{
	static const struct {
		uint64_t off;
		size_t len;
	} steps[] = {
		{ 0, 4096 },	     { 1, 1 },	      { 511, 513 },	 { 4095, 2 },
		{ 4097, 4095 },	     { 8191, 12289 }, { 100003, 65537 }, { 65535, 131073 },
		{ 262143, 1048577 }, { 3, 300001 },
	};
	unsigned char *model = calloc(1, size), *buf = allocate(2 << 20);
	int fd = open_file(path, O_RDWR | O_CREAT | O_TRUNC | O_DIRECT);
	uint64_t end = 0;

	if (!model)
		err(2, "memory");
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		/* The buffer's address is odd, too. */
		unsigned char *from = buf + i % 3;

		if (steps[i].off + steps[i].len > size)
			continue;
		fill(from, steps[i].len, i + 100, steps[i].off);
		memcpy(model + steps[i].off, from, steps[i].len);
		write_all(fd, from, steps[i].len, (off_t)steps[i].off);
		if (steps[i].off + steps[i].len > end)
			end = steps[i].off + steps[i].len;
	}
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		uint64_t off = steps[i].off + 1;
		size_t n = off >= end ? 0 : end - off < steps[i].len ? end - off : steps[i].len;

		if (read_all(fd, buf + i % 5, n, (off_t)off) != n)
			errx(1, "direct read of %zu at %llu is short", n, (unsigned long long)off);
		compare(model + off, buf + i % 5, n, (off_t)off);
	}
	/* A read across the end returns the rest, and one behind it nothing. */
	if (read_all(fd, buf, 5000, (off_t)end - 7) != 7 ||
	    read_all(fd, buf, 4096, (off_t)end) != 0)
		errx(1, "direct read over the end");
	close_file(fd, path);
	fd = open_file(path, O_RDONLY);
	for (uint64_t off = 0; off < end; off += PIECE) {
		size_t n = end - off < PIECE ? end - off : PIECE;

		if (read_all(fd, buf, n, (off_t)off) != n)
			errx(1, "buffered read is short");
		compare(model + off, buf, n, (off_t)off);
	}
	close_file(fd, path);
	free(model);
	free(buf);
}

static void append(unsigned n, const char *path)
{
	char line[64];
	FILE *f;

	for (unsigned i = 0; i < n; i++) {
		int fd = open_file(path, O_WRONLY | O_CREAT | O_APPEND);
		int len = snprintf(line, sizeof(line), "record %u of %u\n", i, n);

		if (write(fd, line, (size_t)len) != len)
			err(1, "append to %s", path);
		close_file(fd, path);
	}
	f = fopen(path, "r");
	if (!f)
		err(1, "%s", path);
	for (unsigned i = 0, at; i < n; i++) {
		if (!fgets(line, sizeof(line), f) || sscanf(line, "record %u", &at) != 1 || at != i)
			errx(1, "record %u is not where it belongs", i);
	}
	if (fgetc(f) != EOF)
		errx(1, "more than was appended");
	fclose(f);
}

static void map(uint64_t seed, uint64_t size, const char *path)
{
	unsigned char *want = allocate(size);
	int fd = open_file(path, O_RDWR);
	unsigned char *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (p == MAP_FAILED)
		err(1, "mmap of %s", path);
	fill(want, size, seed, 0);
	compare(want, p, size, 0);
	fill(p, size, seed + 1, 0);
	if (msync(p, size, MS_SYNC) < 0 || munmap(p, size) < 0)
		err(1, "msync of %s", path);
	close_file(fd, path);
	free(want);
}

/* One of several processes: writes its own file, and its stripes of a shared file. */
static void worker(unsigned me, unsigned procs, uint64_t bytes, const char *dir)
{
	enum { STRIPE = 65536 };
	unsigned char *buf = allocate(STRIPE), *want = allocate(STRIPE);
	uint64_t stripes = bytes / STRIPE;
	char own[512], shared[512];
	int fd;

	snprintf(own, sizeof(own), "%s/own.%u", dir, me);
	snprintf(shared, sizeof(shared), "%s/shared", dir);
	gen_file(me, bytes + me, own);
	fd = open_file(shared, O_RDWR | O_CREAT);
	for (uint64_t i = 0; i < stripes; i++) {
		/* Each process goes through its stripes in a different order. */
		uint64_t s = (i * 7 + me) % stripes * procs + me;

		fill(buf, STRIPE, 77, s * STRIPE);
		write_all(fd, buf, STRIPE, (off_t)(s * STRIPE));
		if (i % 4 == 0) {
			if (read_all(fd, want, STRIPE, (off_t)(s * STRIPE)) != STRIPE)
				errx(1, "stripe %llu is short", (unsigned long long)s);
			compare(buf, want, STRIPE, (off_t)(s * STRIPE));
		}
	}
	close_file(fd, shared);
	check_file(me, bytes + me, own);
	/* Overwrites the file with a new length. */
	gen_file(me + 1000, bytes / 2 + me, own);
	exit(0);
}

/* The number of stripes shares no factor with 7, so that the order is a permutation. */
static void parallel(unsigned procs, uint64_t bytes, const char *dir)
{
	int status, bad = 0;

	if (bytes % 65536 != 0 || bytes / 65536 % 7 == 0)
		errx(2, "BYTES is a multiple of 64 KiB and not of 448 KiB");
	for (unsigned i = 0; i < procs; i++) {
		pid_t pid = fork();

		if (pid < 0)
			err(2, "fork");
		if (pid == 0)
			worker(i, procs, bytes, dir);
	}
	while (wait(&status) > 0)
		bad |= status;
	if (bad)
		errx(1, "a process failed");
}

int main(int argc, char **argv)
{
	const char *cmd = argc > 1 ? argv[1] : "";

	if (argc == 5 && strcmp(cmd, "gen") == 0)
		gen_file(strtoull(argv[2], NULL, 0), strtoull(argv[3], NULL, 0), argv[4]);
	else if (argc == 5 && strcmp(cmd, "check") == 0)
		check_file(strtoull(argv[2], NULL, 0), strtoull(argv[3], NULL, 0), argv[4]);
	else if (argc == 4 && strcmp(cmd, "direct") == 0)
		direct(strtoull(argv[2], NULL, 0), argv[3]);
	else if (argc == 4 && strcmp(cmd, "append") == 0)
		append((unsigned)strtoul(argv[2], NULL, 0), argv[3]);
	else if (argc == 5 && strcmp(cmd, "map") == 0)
		map(strtoull(argv[2], NULL, 0), strtoull(argv[3], NULL, 0), argv[4]);
	else if (argc == 5 && strcmp(cmd, "parallel") == 0)
		parallel((unsigned)strtoul(argv[2], NULL, 0), strtoull(argv[3], NULL, 0), argv[4]);
	else
		errx(2, "see the comment at the top of vmio.c");
	return 0;
}

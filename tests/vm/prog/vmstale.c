/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looks for stale data: the same directory by several ways (mounts of several clients, and the
 * server's own path), in each a process that writes and one that reads.
 *
 *   vmstale FILES SECONDS GAP DIR DIR [DIR...]
 *
 * A file holds a number. A writer opens it, writes the next one, and closes it; one at a time for
 * each file. NFS promises that who opens a file afterwards reads that number (close-to-open
 * consistency). So a reader notes, before it opens a file, which write has been closed, and after it
 * has read, which has been begun: the number lies between the two. Prints the counts of writes and
 * reads by each way; the status is 1 if a number was stale, or from the future, or if a way did nothing.
 *
 * GAP: milliseconds between a write's close and the next write of the same file, at least: on a busy machine it is several times as long as
 * the write took. NFSv3 tells two states of a file apart by the ctime alone, which goes by the tick (4 ms) before Linux 6.13; and Linux's
 * CLOSE follows close(2). The kernel's threads that send it share the processor with all that runs here: after each part of the gap a call
 * goes to the server and back, which needs the same threads, and readers pause.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_WAYS = 6, MAX_FILES = 256, DIGITS = 20, SHOWN = 10 };

struct file {
	pthread_mutex_t writing;
	_Atomic uint64_t begun, closed;
};

/* Memory that the processes share. */
struct shared {
	_Atomic bool stop;
	_Atomic unsigned wrong;
	_Atomic uint64_t writes[MAX_WAYS], reads[MAX_WAYS];
	useconds_t gap; /* microseconds */
	struct file file[MAX_FILES];
};

static int open_file(const char *dir, unsigned i, int flags)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/stale.%03u", dir, i);
	int fd = open(path, flags, 0666);

	if (fd < 0)
		err(1, "%s", path);
	return fd;
}

static void put_number(const char *dir, unsigned i, uint64_t number, int flags)
{
	int fd = open_file(dir, i, O_WRONLY | flags);
	char text[DIGITS + 1];

	snprintf(text, sizeof(text), "%0*llu", DIGITS, (unsigned long long)number);
	if (pwrite(fd, text, DIGITS, 0) != DIGITS || close(fd) != 0)
		err(1, "%s: write of file %u", dir, i);
}

static uint64_t get_number(const char *dir, unsigned i)
{
	int fd = open_file(dir, i, O_RDONLY);
	char text[DIGITS + 1] = "";

	if (pread(fd, text, DIGITS, 0) != DIGITS)
		err(1, "%s: read of file %u", dir, i);
	close(fd);
	return strtoull(text, NULL, 10);
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

/* Waits for at least the gap, until calls that followed a write, such as its CLOSE, have been sent. */
static void settle(useconds_t gap, const char *dir)
{
	enum { PARTS = 4 };
	struct statfs fs;

	for (unsigned i = 0; i < PARTS; i++) {
		usleep(gap / PARTS);
		if (statfs(dir, &fs) != 0)
			err(1, "%s", dir);
	}
}

static void write_one(struct shared *s, unsigned way, const char *dir, unsigned i)
{
	enum { FACTOR = 5 };
	struct file *f = &s->file[i];
	uint64_t number;

	pthread_mutex_lock(&f->writing);
	number = atomic_load(&f->begun) + 1;
	atomic_store(&f->begun, number);
	const uint64_t began = now_us();
	put_number(dir, i, number, 0);
	atomic_store(&f->closed, number);
	const useconds_t took = (useconds_t)(now_us() - began);

	settle(s->gap > FACTOR * took ? s->gap : FACTOR * took, dir);
	pthread_mutex_unlock(&f->writing);
	atomic_fetch_add(&s->writes[way], 1);
}

static void read_one(struct shared *s, unsigned way, const char *dir, unsigned i)
{
	const uint64_t least = atomic_load(&s->file[i].closed);
	const uint64_t number = get_number(dir, i);
	const uint64_t most = atomic_load(&s->file[i].begun);

	atomic_fetch_add(&s->reads[way], 1);
	if (number >= least && number <= most)
		return;
	if (atomic_fetch_add(&s->wrong, 1) < SHOWN)
		warnx("%s: file %u has %llu, not %llu to %llu", dir, i, (unsigned long long)number,
		      (unsigned long long)least, (unsigned long long)most);
}

/* Reads a file several times, as a delegation pays only then; writes less often. A local read takes no time: without a pause it would have
 * the processor to itself. */
static void work(struct shared *s, unsigned way, const char *dir, unsigned files, bool writer)
{
	unsigned seed = 2 * way + writer + 1;

	while (!atomic_load(&s->stop)) {
		const unsigned i = (unsigned)rand_r(&seed) % files;

		if (writer) {
			write_one(s, way, dir, i);
			usleep(20000);
			continue;
		}
		for (unsigned n = 0; n < 8; n++)
			read_one(s, way, dir, i);
		usleep(1000);
	}
	exit(0);
}

static struct shared *make_shared(void)
{
	struct shared *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pthread_mutexattr_t a;

	if (s == MAP_FAILED)
		err(1, "mmap");
	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	for (unsigned i = 0; i < MAX_FILES; i++)
		pthread_mutex_init(&s->file[i].writing, &a);
	return s;
}

static int report(const struct shared *s, char **dirs, unsigned ways)
{
	bool idle = false;

	for (unsigned i = 0; i < ways; i++) {
		printf("%s: %llu writes, %llu reads\n", dirs[i], (unsigned long long)s->writes[i],
		       (unsigned long long)s->reads[i]);
		idle |= s->writes[i] == 0 || s->reads[i] == 0;
	}
	printf("%u wrong\n", s->wrong);
	return s->wrong || idle;
}

int main(int argc, char **argv)
{
	const unsigned files = argc > 5 ? (unsigned)atoi(argv[1]) : 0;
	const unsigned ways = (unsigned)argc - 4;
	struct shared *s;
	int status, bad = 0;

	if (files < 1 || files > MAX_FILES || ways > MAX_WAYS)
		errx(2, "usage: vmstale FILES SECONDS GAP DIR DIR [DIR...]");
	s = make_shared();
	s->gap = (useconds_t)atoi(argv[3]) * 1000;
	for (unsigned i = 0; i < files; i++)
		put_number(argv[4], i, 0, O_CREAT | O_TRUNC);
	for (unsigned i = 0; i < 2 * ways; i++) {
		if (fork() == 0)
			work(s, i / 2, argv[4 + i / 2], files, i % 2);
	}
	sleep((unsigned)atoi(argv[2]));
	atomic_store(&s->stop, true);
	while (wait(&status) > 0)
		bad |= status;
	return report(s, argv + 4, ways) || bad;
}

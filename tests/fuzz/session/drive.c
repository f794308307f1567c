/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main() of fuzz_session without a fuzzer, for compilers and sanitizers that have none:
 *
 * fuzz_session [--seed N] [--runs N] [--seconds N] [FILE|FOLDER ...]
 *
 * Replays the files (default: the target's corpus), then runs sessions made from them by the seed.
 * The same seed makes the same sessions, but threads may run them in a different order. A finding
 * names its session and leaves it in ./finding-SEED-NUMBER.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/session/finding.h"
#include "tests/fuzz/session/mutate.h"
#include "tests/fuzz/session/run.h"
#include "tests/fuzz/session/step.h"

#define FILES_MAX 20000u
#define SKIPPED 77

struct file {
	uint8_t *data;
	size_t size;
};

static struct {
	struct file file[FILES_MAX];
	unsigned files;
	unsigned long seed, runs, seconds, number;
	const uint8_t *data; /* bytes of the running session */
	size_t size;
} drive = { .runs = 60 };

static void on_abort(int sig)
{
	char name[64];
	int n = snprintf(name, sizeof(name), "finding-%lu-%lu", drive.seed, drive.number);
	int fd = n > 0 ? open(name, O_CREAT | O_WRONLY | O_TRUNC, 0644) : -1;

	if (fd >= 0 && write(fd, drive.data, drive.size) == (ssize_t)drive.size)
		dprintf(STDERR_FILENO, "the session is in %s\n", name);
	signal(sig, SIG_DFL);
	raise(sig);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int load_file(const char *path)
{
	FILE *f = drive.files < FILES_MAX ? fopen(path, "rb") : NULL;
	struct file *to = &drive.file[drive.files];

	if (!f) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	to->data = malloc(SS_INPUT_MAX);
	to->size = to->data ? fread(to->data, 1, SS_INPUT_MAX, f) : 0;
	fclose(f);
	drive.files++;
	return to->data ? 0 : -1;
}

/* Sorted by name, so that a seed means the same on every machine. */
static int load_folder(const char *path)
{
	static char *names[FILES_MAX];
	unsigned n = 0;
	int err = 0;
	DIR *d = opendir(path);

	if (!d) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	for (struct dirent *de; n < FILES_MAX && (de = readdir(d));)
		if (de->d_name[0] != '.')
			names[n++] = strdup(de->d_name);
	closedir(d);
	qsort(names, n, sizeof(names[0]), by_name);
	for (unsigned i = 0; i < n; i++) {
		char full[4096];

		snprintf(full, sizeof(full), "%s/%s", path, names[i]);
		err |= load_file(full);
		free(names[i]);
	}
	return err;
}

static int load(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? load_folder(path) : load_file(path);
}

static int parse(int argc, char **argv)
{
	const char *root = getenv("FUZZ_CORPUS");
	char corpus[4096];

	for (int i = 1; i < argc; i++) {
		unsigned long *to = !strcmp(argv[i], "--seed")	    ? &drive.seed
				    : !strcmp(argv[i], "--runs")    ? &drive.runs
				    : !strcmp(argv[i], "--seconds") ? &drive.seconds
								    : NULL;
		if (to && i + 1 < argc)
			*to = strtoul(argv[++i], NULL, 0);
		else if (to || load(argv[i]) < 0)
			return -1;
	}
	snprintf(corpus, sizeof(corpus), "%s/fuzz_session", root ? root : "tests/fuzz/corpus");
	if (!drive.files && load(corpus) < 0)
		return -1;
	return drive.files ? 0 : -1;
}

static void run_one(const uint8_t *data, size_t size)
{
	drive.data = data;
	drive.size = size;
	ss_run(data, size);
	drive.number++;
}

/* Makes a session from one or two sessions of the corpus by some changes. */
static size_t make_session(uint64_t *rng, uint8_t *out)
{
	const struct file *a = &drive.file[ss_random(rng, drive.files)];
	const struct file *b = &drive.file[ss_random(rng, drive.files)];
	size_t size = a->size;

	if (ss_random(rng, 3))
		memcpy(out, a->data, a->size);
	else
		size = ss_cross(a->data, a->size, b->data, b->size, out, SS_INPUT_MAX, *rng);
	/* Made sessions do not join the corpus: otherwise all seeds would come to the same
	 * sessions. */
	for (unsigned n = 1 + ss_random(rng, 4); n; n--)
		size = ss_mutate(out, size, SS_INPUT_MAX, ss_random(rng, UINT32_MAX), NULL);
	return size;
}

static void run_made(void)
{
	int64_t until = drive.seconds ? ss_now_ms() + (int64_t)drive.seconds * 1000 : INT64_MAX;
	uint64_t rng = drive.seed << 32; /* seeds give random sequences that are far apart */
	uint8_t *session = malloc(SS_INPUT_MAX);

	for (unsigned long i = 0; session && ss_now_ms() < until; i++) {
		if (!drive.seconds && i == drive.runs)
			break;
		run_one(session, make_session(&rng, session));
	}
	free(session);
}

int main(int argc, char **argv)
{
	if (parse(argc, argv) < 0) {
		fprintf(stderr, "no sessions to start from\n");
		return 1;
	}
	const char *why = ss_start();
	if (why) {
		printf("skip: %s\n", why);
		return SKIPPED;
	}
	signal(SIGABRT, on_abort);
	for (unsigned i = 0; i < drive.files; i++)
		run_one(drive.file[i].data, drive.file[i].size);
	unsigned long replayed = drive.number;
	run_made();
	ss_stop();
	printf("%lu sessions replayed, %lu made from seed %lu\n", replayed, drive.number - replayed,
	       drive.seed);
	for (unsigned i = 0; i < drive.files; i++)
		free(drive.file[i].data);
	return 0;
}

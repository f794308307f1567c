/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * main() of a fuzz target without a fuzzer: runs every file of $FUZZ_CORPUS/<target's name>, or the
 * files named as arguments. No file at all is a failure, so that a lost corpus is noticed.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	if (!f) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return -1;
	}
	size_t cap = 4u << 20;
	uint8_t *buf = malloc(cap);
	size_t len = buf ? fread(buf, 1, cap, f) : 0;
	fclose(f);
	/* An exact copy, so that AddressSanitizer sees a read past the end. */
	uint8_t *exact = malloc(len ? len : 1);
	if (!buf || !exact) {
		free(buf);
		free(exact);
		return -1;
	}
	memcpy(exact, buf, len);
	free(buf);
	LLVMFuzzerTestOneInput(exact, len);
	free(exact);
	return 0;
}

static int replay_corpus(const char *root, const char *target)
{
	char dir[4096];
	snprintf(dir, sizeof(dir), "%s/%s", root, target);
	DIR *d = opendir(dir);
	if (!d) {
		fprintf(stderr, "%s: %s\n", dir, strerror(errno));
		return -1;
	}
	int ran = 0;
	for (struct dirent *de; (de = readdir(d));) {
		char path[8192];
		if (de->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, de->d_name);
		if (replay_file(path) < 0) {
			closedir(d);
			return -1;
		}
		ran++;
	}
	closedir(d);
	return ran;
}

int main(int argc, char **argv)
{
	int ran = 0;
	for (int i = 1; i < argc; i++, ran++)
		if (replay_file(argv[i]) < 0)
			return 1;
	if (argc == 1) {
		const char *root = getenv("FUZZ_CORPUS");
		const char *name = strrchr(argv[0], '/');
		ran = replay_corpus(root ? root : "tests/fuzz/corpus", name ? name + 1 : argv[0]);
	}
	printf("%d inputs replayed\n", ran);
	return ran > 0 ? 0 : 1;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an application does to N files of a folder, one after the other: filejob JOB N DIR
 * create: makes them, empty; write: writes 100 bytes into each; stat, open (and reads), chmod,
 * rename, unlink (after rename). Each file is closed at once.
 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void open_and(const char *path, int flags, char how)
{
	char data[100] = "";
	ssize_t n = 0;
	int fd = open(path, flags, 0644);

	if (fd < 0)
		err(1, "%s", path);
	if (how == 'r')
		n = read(fd, data, sizeof(data));
	else if (how == 'w')
		n = write(fd, data, sizeof(data));
	if (n < 0 || close(fd))
		err(1, "%s", path);
}

static void create_one(const char *path, const char *renamed)
{
	(void)renamed;
	open_and(path, O_CREAT | O_EXCL | O_WRONLY, 0);
}

static void write_one(const char *path, const char *renamed)
{
	(void)renamed;
	open_and(path, O_WRONLY, 'w');
}

static void open_one(const char *path, const char *renamed)
{
	(void)renamed;
	open_and(path, O_RDONLY, 'r');
}

static void stat_one(const char *path, const char *renamed)
{
	struct stat st;

	(void)renamed;
	if (stat(path, &st))
		err(1, "%s", path);
}

static void chmod_one(const char *path, const char *renamed)
{
	(void)renamed;
	if (chmod(path, 0600))
		err(1, "%s", path);
}

static void rename_one(const char *path, const char *renamed)
{
	if (rename(path, renamed))
		err(1, "%s", path);
}

static void unlink_one(const char *path, const char *renamed)
{
	(void)path;
	if (unlink(renamed))
		err(1, "%s", renamed);
}

static const struct {
	const char *name;
	void (*one)(const char *path, const char *renamed);
} jobs[] = { { "create", create_one }, { "write", write_one }, { "open", open_one },
	     { "stat", stat_one },     { "chmod", chmod_one }, { "rename", rename_one },
	     { "unlink", unlink_one } };

int main(int argc, char **argv)
{
	unsigned i, j, n = argc == 4 ? (unsigned)atoi(argv[2]) : 0;
	char path[4096], renamed[4096];

	for (j = 0; n && j < sizeof(jobs) / sizeof(jobs[0]); j++) {
		if (strcmp(jobs[j].name, argv[1]) != 0)
			continue;
		for (i = 0; i < n; i++) {
			snprintf(path, sizeof(path), "%s/file.%u", argv[3], i);
			snprintf(renamed, sizeof(renamed), "%s/renamed.%u", argv[3], i);
			jobs[j].one(path, renamed);
		}
		return 0;
	}
	errx(2, "usage: filejob create|write|stat|open|chmod|rename|unlink N DIR");
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/exports_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_LIMIT = 16 << 20 };

static int exp_file_read_fd(int fd, char **text, size_t *len)
{
	size_t cap = 0;
	char *buf = NULL;

	*len = 0;
	for (;;) {
		ssize_t n;

		if (*len == cap) {
			char *grown = cap < FILE_LIMIT ? realloc(buf, cap + 65536) : NULL;

			if (!grown) {
				free(buf);
				return cap < FILE_LIMIT ? -ENOMEM : -EFBIG;
			}
			buf = grown;
			cap += 65536;
		}
		n = read(fd, buf + *len, cap - *len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int rc = n ? -errno : 0;

			*text = buf;
			if (rc)
				free(buf);
			return rc;
		}
		*len += (size_t)n;
	}
}

static int exp_file_read(const char *path, char **text, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return -errno;
	rc = exp_file_read_fd(fd, text, len);
	close(fd);
	return rc;
}

static int pass_file(const char *path, const struct exp_file_sink *sink)
{
	char *text = NULL;
	size_t len = 0;
	int rc = exp_file_read(path, &text, &len);

	if (rc == -ENOMEM)
		return rc;
	if (rc) {
		sink->unread(sink->arg, path, -rc);
		return 0;
	}
	rc = sink->text(sink->arg, path, text, len);
	free(text);
	return rc;
}

static int is_table(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);
	size_t suffix = sizeof(".exports") - 1;

	return entry->d_name[0] != '.' && len > suffix &&
	       !strcmp(entry->d_name + len - suffix, ".exports");
}

static int pass_entry(const char *dir, const char *name, const struct exp_file_sink *sink)
{
	struct stat st;
	char *path;
	int rc = 0;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return -ENOMEM;
	if (stat(path, &st) || S_ISREG(st.st_mode))
		rc = pass_file(path, sink);
	free(path);
	return rc;
}

static int pass_dir(const char *dir, const struct exp_file_sink *sink)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, is_table, versionsort);
	int rc = 0;

	if (n < 0) {
		if (errno != ENOENT)
			sink->unread(sink->arg, dir, errno);
		return 0;
	}
	for (int i = 0; i < n; i++) {
		if (!rc)
			rc = pass_entry(dir, entries[i]->d_name, sink);
		free(entries[i]);
	}
	free(entries);
	return rc;
}

int exp_files_read(const char *file, const char *dir, const struct exp_file_sink *sink)
{
	int rc = file ? pass_file(file, sink) : 0;

	return rc || !dir ? rc : pass_dir(dir, sink);
}

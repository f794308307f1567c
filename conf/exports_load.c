/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of the export table: one file and a directory of further ones. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/exports_builder.h"

enum { FILE_LIMIT = 16 << 20 };

static int read_all(int fd, char **text, size_t *len)
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

static int read_file(const char *path, char **text, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int rc;

	if (fd < 0)
		return -errno;
	rc = read_all(fd, text, len);
	close(fd);
	return rc;
}

static int load_file(struct exp_builder *builder, const char *path, struct cfg_diags *diags)
{
	char *text = NULL;
	size_t len = 0;
	int rc = read_file(path, &text, &len);

	if (rc == -ENOMEM)
		return rc;
	if (rc) {
		cfg_diag_add(diags, (struct cfg_place){ .file = path }, CFG_ERROR,
			     "cannot be read: %s", strerror(-rc));
		return 0;
	}
	rc = exp_builder_parse(builder, path, text, len, diags);
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

static int load_entry(struct exp_builder *builder, const char *dir, const char *name,
		      struct cfg_diags *diags)
{
	struct stat st;
	char *path;
	int rc = 0;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return -ENOMEM;
	if (stat(path, &st) || S_ISREG(st.st_mode))
		rc = load_file(builder, path, diags);
	free(path);
	return rc;
}

static int load_dir(struct exp_builder *builder, const char *dir, struct cfg_diags *diags)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, is_table, versionsort);
	int rc = 0;

	if (n < 0) {
		/* A directory that does not exist holds no tables. */
		if (errno != ENOENT)
			cfg_diag_add(diags, (struct cfg_place){ .file = dir }, CFG_ERROR,
				     "cannot be read: %s", strerror(errno));
		return 0;
	}
	for (int i = 0; i < n; i++) {
		if (!rc)
			rc = load_entry(builder, dir, entries[i]->d_name, diags);
		free(entries[i]);
	}
	free(entries);
	return rc;
}

static int finish(struct exp_builder *builder, const struct exp_load_opts *opts,
		  struct cfg_diags *diags, struct exp_table **table)
{
	int rc = exp_builder_finish(builder, opts, diags, table);

	if (!rc && opts->strict && diags->errors) {
		exp_table_unref(*table);
		*table = NULL;
		rc = -EINVAL;
	}
	return rc;
}

int exp_table_load(const struct exp_load_opts *opts, struct cfg_diags *diags,
		   struct exp_table **table)
{
	struct exp_builder builder;
	int rc = 0;

	*table = NULL;
	exp_builder_init(&builder);
	builder.strict = opts->strict;
	if (opts->file && opts->text)
		rc = exp_builder_parse(&builder, opts->file, opts->text, opts->text_len, diags);
	else if (opts->file)
		rc = load_file(&builder, opts->file, diags);
	if (!rc && opts->dir)
		rc = load_dir(&builder, opts->dir, diags);
	if (!rc)
		rc = finish(&builder, opts, diags, table);
	exp_builder_free(&builder);
	return rc;
}

int exp_table_parse(const char *name, const char *text, size_t len,
		    const struct exp_load_opts *opts, struct cfg_diags *diags,
		    struct exp_table **table)
{
	struct exp_builder builder;
	int rc;

	*table = NULL;
	exp_builder_init(&builder);
	builder.strict = opts->strict;
	rc = exp_builder_parse(&builder, name, text, len, diags);
	if (!rc)
		rc = finish(&builder, opts, diags, table);
	exp_builder_free(&builder);
	return rc;
}

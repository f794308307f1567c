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
			int err = n ? -errno : 0;

			*text = buf;
			if (err)
				free(buf);
			return err;
		}
		*len += (size_t)n;
	}
}

static int read_file(const char *path, char **text, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	err = read_all(fd, text, len);
	close(fd);
	return err;
}

static int load_file(struct exp_builder *builder, const char *path, struct cfg_diags *diags)
{
	char *text = NULL;
	size_t len = 0;
	int err = read_file(path, &text, &len);

	if (err == -ENOMEM)
		return err;
	if (err) {
		cfg_diag_add(diags, (struct cfg_place){ .file = path }, CFG_ERROR,
			     "cannot be read: %s", strerror(-err));
		return 0;
	}
	err = exp_builder_parse(builder, path, text, len, diags);
	free(text);
	return err;
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
	int err = 0;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		return -ENOMEM;
	if (stat(path, &st) || S_ISREG(st.st_mode))
		err = load_file(builder, path, diags);
	free(path);
	return err;
}

static int load_dir(struct exp_builder *builder, const char *dir, struct cfg_diags *diags)
{
	struct dirent **entries;
	int n = scandir(dir, &entries, is_table, versionsort);
	int err = 0;

	if (n < 0) {
		/* A directory that does not exist holds no tables. */
		if (errno != ENOENT)
			cfg_diag_add(diags, (struct cfg_place){ .file = dir }, CFG_ERROR,
				     "cannot be read: %s", strerror(errno));
		return 0;
	}
	for (int i = 0; i < n; i++) {
		if (!err)
			err = load_entry(builder, dir, entries[i]->d_name, diags);
		free(entries[i]);
	}
	free(entries);
	return err;
}

static int finish(struct exp_builder *builder, const struct exp_load_opts *opts,
		  struct cfg_diags *diags, struct exp_table **table)
{
	int err = exp_builder_finish(builder, opts, diags, table);

	if (!err && opts->strict && diags->errors) {
		exp_table_unref(*table);
		*table = NULL;
		err = -EINVAL;
	}
	return err;
}

int exp_table_load(const struct exp_load_opts *opts, struct cfg_diags *diags,
		   struct exp_table **table)
{
	struct exp_builder builder;
	int err = 0;

	*table = NULL;
	exp_builder_init(&builder);
	builder.strict = opts->strict;
	if (opts->file)
		err = load_file(&builder, opts->file, diags);
	if (!err && opts->dir)
		err = load_dir(&builder, opts->dir, diags);
	if (!err)
		err = finish(&builder, opts, diags, table);
	exp_builder_free(&builder);
	return err;
}

int exp_table_parse(const char *name, const char *text, size_t len,
		    const struct exp_load_opts *opts, struct cfg_diags *diags,
		    struct exp_table **table)
{
	struct exp_builder builder;
	int err;

	*table = NULL;
	exp_builder_init(&builder);
	builder.strict = opts->strict;
	err = exp_builder_parse(&builder, name, text, len, diags);
	if (!err)
		err = finish(&builder, opts, diags, table);
	exp_builder_free(&builder);
	return err;
}

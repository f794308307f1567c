/* SPDX-License-Identifier: BSD-2-Clause */
/* From the files and folders of exports to a table: paths, files, names that the name service does not know. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/exports.h"
#include "conf/exports_private.h"

static bool exp_path_climbs(const char *path)
{
	for (const char *at = strstr(path, "/.."); at; at = strstr(at + 1, "/.."))
		if (at[3] == '/' || !at[3])
			return true;
	return false;
}

bool exp_path_clean(char *path)
{
	char *from = path;
	char *to = path;

	if (exp_path_climbs(path))
		return false;
	while (*from) {
		size_t len;

		from += strspn(from, "/");
		len = strcspn(from, "/");
		if (len && !(len == 1 && *from == '.')) {
			*to++ = '/';
			memmove(to, from, len);
			to += len;
		}
		from += len;
	}
	if (to == path)
		*to++ = '/';
	*to = '\0';
	return true;
}

struct path_reader {
	void (*fn)(void *arg, const char *path);
	void *arg;
	int error; /* of a file that cannot be read */
	struct exp_word word;
	struct cfg_diags diags;
};

static void skip_line(struct path_reader *r, struct exp_source *src)
{
	int c;

	for (;;) {
		exp_source_skip_blanks(src);
		c = exp_source_peek(src).c;
		if (c == '\n' || c == EOF)
			return;
		exp_source_word(src, true, &r->word, &r->diags);
	}
}

static int exp_paths_read_text(void *arg, const char *file, const char *text, size_t len)
{
	struct path_reader *r = arg;
	struct exp_source src;

	exp_source_init(&src, file, text, len);
	while (exp_source_next_line(&src)) {
		exp_source_word(&src, false, &r->word, &r->diags);
		if (!r->word.errors && r->word.text[0] == '/' && r->word.len <= EXP_PATH_MAX &&
		    exp_path_clean(r->word.text))
			r->fn(r->arg, r->word.text);
		skip_line(r, &src);
	}
	return 0;
}

static void read_failed(void *arg, const char *path, int error)
{
	struct path_reader *r = arg;

	(void)path;
	r->error = error;
}

int exp_paths_each(const char *file, const char *dir, void (*fn)(void *arg, const char *path),
		   void *arg)
{
	struct path_reader *r = malloc(sizeof(*r));
	const struct exp_file_sink sink = { exp_paths_read_text, read_failed, r };
	struct stat st;
	int rc;

	if (!r)
		return -ENOMEM;
	r->fn = fn;
	r->arg = arg;
	r->error = 0;
	cfg_diags_init(&r->diags);
	if (stat(file, &st)) {
		r->error = errno == ENOENT ? 0 : errno;
		file = NULL;
	} else if (!S_ISREG(st.st_mode)) {
		r->error = EINVAL;
		file = NULL;
	}
	rc = exp_files_read(file, dir, &sink);
	if (!rc)
		rc = -r->error;
	cfg_diags_free(&r->diags);
	free(r);
	return rc;
}

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

static struct cfg_position exp_client_position(const struct exp_client *c)
{
	return (struct cfg_position){ .file = c->file ? c->file : "temporary", .line = c->line };
}

/* False if the name service does not answer. */
static bool check_host(const struct exp_export *e, const struct exp_client *c,
		       const struct exp_resolver *resolver, struct cfg_diags *diags)
{
	const struct cfg_position at = exp_client_position(c);
	struct exp_addr addrs[EXP_MAX_ADDRS];
	int n = resolver->forward(resolver->arg, c->name, addrs, EXP_MAX_ADDRS);

	if (n > 0)
		return true;
	if (n == 0 || n == -ENOENT) {
		cfg_diag_add(diags, at, CFG_WARNING,
			     "%s: host %s has no address: it is not let in before the name "
			     "service knows it",
			     e->path, c->name);
		return true;
	}
	cfg_diag_add(diags, at, CFG_WARNING,
		     "%s: the name service does not answer for host %s: it is not let in "
		     "before that, and further names were not checked",
		     e->path, c->name);
	return false;
}

static void check_netgroup(const struct exp_export *e, const struct exp_client *c,
			   const struct exp_resolver *resolver, struct cfg_diags *diags)
{
	const struct cfg_position at = exp_client_position(c);

	if (resolver->has_netgroup && !resolver->has_netgroup(resolver->arg, c->name))
		cfg_diag_add(diags, at, CFG_WARNING,
			     "%s: netgroup @%s is unknown or empty: it lets nobody in", e->path,
			     c->name);
}

void exp_names_check(const struct exp_table *table, const struct exp_resolver *resolver,
		     struct cfg_diags *diags)
{
	for (unsigned i = 0; i < table->n_exports; i++) {
		const struct exp_export *e = &table->exports[i];

		for (unsigned j = 0; j < e->n_clients; j++) {
			const struct exp_client *c = &e->clients[j];

			if (c->kind == EXP_CLIENT_NETGROUP)
				check_netgroup(e, c, resolver, diags);
			if (c->kind == EXP_CLIENT_HOST && c->name &&
			    !check_host(e, c, resolver, diags))
				return;
		}
	}
}

/* The files of the export table: one file and a directory of further ones. */

struct loader {
	struct exp_builder builder;
	struct cfg_diags *diags;
};

static int load_text(void *arg, const char *path, const char *text, size_t len)
{
	struct loader *loader = arg;

	return exp_builder_parse(&loader->builder, path, text, len, loader->diags);
}

static void load_failed(void *arg, const char *path, int error)
{
	struct loader *loader = arg;

	cfg_diag_add(loader->diags, (struct cfg_position){ .file = path }, CFG_ERROR,
		     "cannot be read: %s", strerror(error));
}

static int exp_load_finish(struct exp_builder *builder, const struct exp_load_opts *opts,
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
	struct loader loader = { .diags = diags };
	const struct exp_file_sink sink = { load_text, load_failed, &loader };
	int rc = 0;

	*table = NULL;
	exp_builder_init(&loader.builder);
	loader.builder.strict = opts->strict;
	if (opts->file && opts->text)
		rc = load_text(&loader, opts->file, opts->text, opts->text_len);
	if (!rc)
		rc = exp_files_read(opts->text ? NULL : opts->file, opts->dir, &sink);
	if (!rc)
		rc = exp_load_finish(&loader.builder, opts, diags, table);
	exp_builder_free(&loader.builder);
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
		rc = exp_load_finish(&builder, opts, diags, table);
	exp_builder_free(&builder);
	return rc;
}

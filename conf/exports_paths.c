/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/exports_paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "conf/exports.h"
#include "conf/exports_files.h"
#include "conf/exports_source.h"

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

/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of the export table: one file and a directory of further ones. */
#include <errno.h>
#include <string.h>

#include "conf/exports_builder.h"
#include "conf/exports_files.h"

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

	cfg_diag_add(loader->diags, (struct cfg_place){ .file = path }, CFG_ERROR,
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

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A change is written as a line of exports(5) and parsed as such, beside drafts that are made of the clients
 * of the table. Messages call that line by what the person has named.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/exports.h"
#include "conf/exports_private.h"

#define MESSAGE_NAMES 400 /* bytes of names in one message */

struct changing {
	struct exp_builder builder;
	struct cfg_diags *diags;
	const struct exp_table *old;
	struct exp_draft draft; /* the line, taken out of the builder */
	char *title;		/* of the line, in messages */
	char *path;
	const struct exp_load_opts *opts;
};

/* Bytes that mean nothing to the parser stay as they are; others are written in octal. */
static void exp_change_put_word(FILE *out, const char *text, const char *plain)
{
	for (const char *s = text; *s; s++) {
		const bool same = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
				  (*s >= '0' && *s <= '9') || (s > text && *s == '-') ||
				  strchr(plain, *s);

		if (same)
			fputc(*s, out);
		else
			fprintf(out, "\\%03o", (unsigned)(unsigned char)*s);
	}
}

static char *exp_change_line(const struct exp_change *change, size_t *len)
{
	char *text = NULL;
	FILE *out = open_memstream(&text, len);

	if (!out)
		return NULL;
	exp_change_put_word(out, change->path, "/._");
	fputc(' ', out);
	exp_change_put_word(out, change->client, "._*?@/:[]");
	if (change->options && *change->options) {
		fputc('(', out);
		exp_change_put_word(out, change->options, "._/:=,-+@");
		fputc(')', out);
	}
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static int exp_change_refuse(struct cfg_diags *diags, const char *title, const char *why)
{
	cfg_diag_add(diags, (struct cfg_position){ .file = title }, CFG_ERROR, "%s", why);
	return -EINVAL;
}

/* Parses the line into c->draft. */
static int exp_change_parse(struct changing *c, const struct exp_change *change)
{
	const unsigned errors = c->diags->errors;
	size_t len;
	char *text;
	int rc;

	if (asprintf(&c->title, "%s:%s", change->client, change->path) < 0)
		c->title = NULL;
	text = c->title ? exp_change_line(change, &len) : NULL;
	if (!text)
		return -ENOMEM;
	if (!*change->client)
		rc = exp_change_refuse(c->diags, c->title,
				       "no client is named; write * for all machines");
	else
		rc = exp_builder_parse(&c->builder, c->title, text, len, c->diags);
	free(text);
	if (rc)
		return rc;
	if (c->builder.n != 1 || c->diags->errors != errors)
		return -EINVAL;
	c->draft = c->builder.drafts[--c->builder.n];
	c->draft.client.file = NULL;
	c->draft.client.line = 0;
	c->path = strdup(c->draft.path);
	return c->path ? 0 : -ENOMEM;
}

/* The name of a file of the old table, in the builder. */
static int copy_files(struct changing *c, const char **names)
{
	for (size_t i = 0; i < c->old->n_files; i++) {
		names[i] = exp_builder_file(&c->builder, c->old->files[i]);
		if (!names[i])
			return -ENOMEM;
	}
	return 0;
}

static const char *copied_name(const struct changing *c, const char **names, const char *file)
{
	for (size_t i = 0; file && i < c->old->n_files; i++)
		if (c->old->files[i] == file)
			return names[i];
	return NULL;
}

static bool copy_text(const char *from, char **to)
{
	*to = from ? strdup(from) : NULL;
	return !from || *to;
}

static int copy_client(struct changing *c, const struct exp_export *e,
		       const struct exp_client *client, const char *file)
{
	const char *mp = client->opts.mountpoint;
	struct exp_draft d = { .client = *client, .options.opts = client->opts };

	d.client.file = file;
	d.at = (struct cfg_position){ .file = file ? file : c->title, .line = client->line };
	d.options.opts.mountpoint = d.options.opts.locations = NULL;
	d.options.mp = !mp ? EXP_MP_NONE : strcmp(mp, e->path) == 0 ? EXP_MP_SELF : EXP_MP_PATH;
	const bool spec = copy_text(client->spec, &d.client.spec);
	const bool name = copy_text(client->name, &d.client.name);
	const bool path = copy_text(e->path, &d.path);
	const bool mounted = copy_text(d.options.mp == EXP_MP_PATH ? mp : NULL, &d.options.mp_path);
	const bool located = copy_text(client->opts.locations, &d.options.locations);

	if (spec && name && path && mounted && located)
		return exp_builder_add(&c->builder, &d);
	exp_draft_free(&d);
	return -ENOMEM;
}

/* The client of the old table that the line names; NULL: none. */
static const struct exp_client *find_meant(const struct changing *c)
{
	const struct exp_export *e = exp_table_by_path(c->old, c->path);

	for (unsigned i = 0; e && i < e->n_clients; i++)
		if (exp_client_same(&e->clients[i], &c->draft.client))
			return &e->clients[i];
	return NULL;
}

/* The new client, whose draft is used up. */
static int add_draft(struct changing *c)
{
	struct exp_draft draft = c->draft;

	memset(&c->draft, 0, sizeof(c->draft));
	return exp_builder_add(&c->builder, &draft);
}

/* Adds drafts of all clients of the old table but meant; add: the new one stands in its place. */
static int copy_table(struct changing *c, const struct exp_client *meant, bool add)
{
	const char **names = calloc(c->old->n_files + 1, sizeof(*names));
	int rc = names ? copy_files(c, names) : -ENOMEM;

	for (unsigned i = 0; i < c->old->n_exports && !rc; i++) {
		const struct exp_export *e = &c->old->exports[i];

		for (unsigned j = 0; j < e->n_clients && !rc; j++) {
			const struct exp_client *client = &e->clients[j];

			if (client != meant)
				rc = copy_client(c, e, client, copied_name(c, names, client->file));
			else if (add)
				rc = add_draft(c);
		}
	}
	free(names);
	return rc;
}

/* The path of the change alone is looked at. */
static void exp_change_ask(void *ctx, const char *const *path, size_t n, bool *answers)
{
	const struct changing *c = ctx;

	for (size_t i = 0; i < n; i++) {
		answers[i] = !path[i] || strcmp(path[i], c->path) == 0;
		if (path[i] && answers[i] && c->opts->ask)
			c->opts->ask(c->opts->ask_ctx, &path[i], 1, &answers[i]);
	}
}

static int exp_change_finish(struct changing *c, struct exp_table **out)
{
	const struct exp_load_opts opts = {
		.check_paths = c->opts && c->opts->check_paths,
		.shared = c->opts && c->opts->shared,
		.ask = exp_change_ask,
		.ask_ctx = c,
	};
	const unsigned errors = c->diags->errors;
	int rc = exp_builder_finish(&c->builder, &opts, c->diags, out);

	if (rc)
		return rc;
	rc = c->diags->errors == errors ? exp_table_copy_refused(*out, c->old) : -EINVAL;
	if (rc) {
		exp_table_unref(*out);
		*out = NULL;
	}
	return rc;
}

/* All clients share the identity of their export, and their file handles end with it. */
static int check_identity(struct changing *c, struct exp_table **table)
{
	const struct exp_export *was = exp_table_by_path(c->old, c->path);
	const struct exp_export *is = exp_table_by_path(*table, c->path);

	if (!was || !is || was->id == is->id)
		return 0;
	exp_table_unref(*table);
	*table = NULL;
	return exp_change_refuse(
		c->diags, c->title,
		"fsid= would end the file handles of the export's other clients: leave it out");
}

static void note_meant(struct changing *c, const struct exp_client *meant, bool add)
{
	const struct cfg_position at = { .file = c->title };

	if (meant && meant->file)
		cfg_diag_add(c->diags, at, CFG_NOTE, "%s line %u %s", meant->file, meant->line,
			     add ? "names it, too, and holds again from the next reload on"
				 : "names it: it is back from the next reload on");
	else if (meant && add)
		cfg_diag_add(c->diags, at, CFG_NOTE, "it replaces an earlier temporary one");
}

static void exp_change_done(struct changing *c)
{
	exp_draft_free(&c->draft);
	exp_builder_free(&c->builder);
	free(c->title);
	free(c->path);
}

/* A path whose lines are in error takes no change: what they were to restrict is not known. */
static int check_refused(const struct changing *c)
{
	for (unsigned i = 0; i < c->old->n_refused; i++) {
		const struct exp_refused *r = &c->old->refused[i];

		if (strcmp(r->path, c->path) != 0)
			continue;
		cfg_diag_add(c->diags, (struct cfg_position){ .file = c->title }, CFG_ERROR,
			     "%s is in error in %s line %u: correct it there and reload", r->path,
			     r->file, r->line);
		return -EINVAL;
	}
	return 0;
}

int exp_table_add(const struct exp_table *old, const struct exp_change *change,
		  const struct exp_load_opts *opts, struct cfg_diags *diags, struct exp_table **out)
{
	struct changing c = { .diags = diags, .old = old, .opts = opts };
	const struct exp_client *meant;

	*out = NULL;
	exp_builder_init(&c.builder);
	int rc = exp_change_parse(&c, change);

	if (!rc)
		rc = check_refused(&c);
	if (!rc) {
		meant = find_meant(&c);
		note_meant(&c, meant, true);
		rc = copy_table(&c, meant, true);
		if (!rc && !meant)
			rc = add_draft(&c);
	}
	if (!rc)
		rc = exp_change_finish(&c, out);
	if (!rc)
		rc = check_identity(&c, out);
	exp_change_done(&c);
	return rc;
}

static int explain_missing(struct changing *c)
{
	const struct exp_export *e = exp_table_by_path(c->old, c->path);
	char names[MESSAGE_NAMES] = "";
	size_t n = 0;

	if (!e && check_refused(c) == 0)
		cfg_diag_add(c->diags, (struct cfg_position){ .file = c->title }, CFG_ERROR,
			     "%s is not exported", c->path);
	if (!e)
		return -EINVAL;
	for (unsigned i = 0; i < e->n_clients && n < sizeof(names); i++)
		n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", i ? ", " : "",
				      e->clients[i].spec);
	cfg_diag_add(c->diags, (struct cfg_position){ .file = c->title }, CFG_ERROR,
		     "%s is exported to %s, and not to %s: write the client as it stands there",
		     c->path, names, c->draft.client.spec);
	return -EINVAL;
}

int exp_table_remove(const struct exp_table *old, const struct exp_change *change,
		     struct cfg_diags *diags, struct exp_table **out)
{
	const struct exp_change bare = { .client = change->client, .path = change->path };
	struct changing c = { .diags = diags, .old = old };
	const struct exp_client *meant = NULL;

	*out = NULL;
	exp_builder_init(&c.builder);
	int rc = exp_change_parse(&c, &bare);

	if (!rc) {
		meant = find_meant(&c);
		rc = meant ? copy_table(&c, meant, false) : explain_missing(&c);
	}
	if (!rc) {
		note_meant(&c, meant, false);
		rc = exp_change_finish(&c, out);
	}
	exp_change_done(&c);
	return rc;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/ganesha/ganesha_exports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/util.h"
#include "tools/ganesha/ganesha_clients.h"
#include "tools/ganesha/ganesha_other.h"

#define ID_MOST 65535

struct conversion {
	struct ganesha_said *said;
	const struct ganesha_item *tree, *defaults; /* EXPORT_DEFAULTS, or NULL */
	struct ganesha_rights rights;		    /* of EXPORT_DEFAULTS */
	bool failed;				    /* a value there is wrong */
	int rc;
};

/* An EXPORT block. */
struct export
{
	const struct ganesha_item *block;
	const char *path;   /* NULL: none that can be used */
	const char *pseudo; /* NULL: not given */
	bool root;	    /* of NFSv4 */
	long id;	    /* -1: none */
	struct ganesha_rights rights;
	struct ganesha_clients clients;
	bool good;
};

static void ganesha_export_refuse(struct conversion *c, struct export *e, unsigned line,
				  const char *what, const char *right)
{
	ganesha_say(c->said, GANESHA_ERROR, line, "%s: %s", what, right);
	e->good = false;
}

/* The parameter's one value. NULL: it is not there, or wrong, which was said. */
static const char *value_of(struct conversion *c, struct export *e, const char *name)
{
	const struct ganesha_item *item = ganesha_find(e->block, name, NULL);

	if (!item)
		return NULL;
	if (item->block || item->n != 1 || ganesha_find(e->block, name, item)) {
		ganesha_export_refuse(c, e, item->line, name,
				      "it stands there once, with one value");
		return NULL;
	}
	return item->value[0];
}

static bool ganesha_path_climbs(const char *path)
{
	const size_t len = strlen(path);

	return strstr(path, "/../") || (len >= 3 && strcmp(path + len - 3, "/..") == 0);
}

static void take_path(struct conversion *c, struct export *e)
{
	e->path = value_of(c, e, "Path");
	if (e->path && e->path[0] != '/')
		ganesha_export_refuse(c, e, e->block->line, "Path", "an absolute path is expected");
	else if (e->path && ganesha_path_climbs(e->path))
		ganesha_export_refuse(c, e, e->block->line, "Path",
				      "a path without \"..\" is expected");
	else if (!e->path && e->good)
		ganesha_export_refuse(c, e, e->block->line, "Path", "it is missing");
}

static void ganesha_export_take_id(struct conversion *c, struct export *e)
{
	const char *text = value_of(c, e, "Export_Id");
	char *end;

	e->id = -1;
	if (!text)
		return;
	errno = 0;
	e->id = strtol(text, &end, 0);
	if (errno || *end || end == text || e->id < 0 || e->id > ID_MOST)
		ganesha_export_refuse(c, e, e->block->line, "Export_Id",
				      "a number from 0 to 65535 is expected");
}

/* True if another file may have blocks: EXPORT_DEFAULTS, without which rights would be too wide, or more exports. */
static bool has_directive(const struct ganesha_item *tree)
{
	for (const struct ganesha_item *item = tree->first; item; item = item->next)
		if (item->name[0] == '%')
			return true;
	return false;
}

/*
 * The root of NFSv4 is the export with fsid=0. Others are not seen there, so only the one export of a file becomes the root.
 * Other ids keep handles good if the path changes.
 */
static void take_pseudo(struct conversion *c, struct export *e)
{
	const struct ganesha_item *first = ganesha_find(c->tree, "EXPORT", NULL);
	const bool only = !ganesha_find(c->tree, "EXPORT", first) && !has_directive(c->tree);

	e->pseudo = value_of(c, e, "Pseudo");
	e->root = only && e->pseudo && strcmp(e->pseudo, "/") == 0;
	if (!e->pseudo || !e->path || (strcmp(e->pseudo, e->path) == 0 && !e->root))
		return;
	if (e->root)
		ganesha_say(c->said, GANESHA_NOTE, e->block->line,
			    "Pseudo = /: the export is the root of NFSv4, by fsid=0");
	else if (strcmp(e->pseudo, "/") == 0)
		ganesha_say(c->said, GANESHA_WARNING, e->block->line,
			    "Pseudo = /: NFSv4 clients mount %s in the place of that, since "
			    "fsid=0 would hide the other exports from them",
			    e->path);
	else
		ganesha_say(c->said, GANESHA_NOTE, e->block->line,
			    "Pseudo = %s: NFSv4 clients mount %s in the place of that", e->pseudo,
			    e->path);
}

/* An FSAL that is stacked upon another one has that within it. */
static void check_fsal(struct conversion *c, struct export *e)
{
	static const char *const local[] = { "VFS", "XFS", "LUSTRE", "GPFS" };
	const struct ganesha_item *fsal = ganesha_find(e->block, "FSAL", NULL), *inner, *name;

	while (fsal && (inner = ganesha_find(fsal, "FSAL", NULL)))
		fsal = inner;
	name = fsal ? ganesha_find(fsal, "Name", NULL) : NULL;
	if (!name || name->n != 1)
		return;
	for (size_t i = 0; i < rn_array_size(local); i++)
		if (strcasecmp(local[i], name->value[0]) == 0)
			return;
	ganesha_say(c->said, GANESHA_ERROR, name->line,
		    "FSAL %s: exports are directories of this machine here: mount what it serves, "
		    "and export that",
		    name->value[0]);
	e->good = false;
}

static void ganesha_export_add_client(struct conversion *c, struct export *e, const char *spec,
				      unsigned line, const struct ganesha_rights *rights)
{
	const int rc = ganesha_clients_add(c->said, &e->clients, spec, line, rights);

	if (rc == -ENOMEM)
		c->rc = rc;
	e->good &= rc == 0;
}

static void add_block(struct conversion *c, struct export *e, const struct ganesha_item *block)
{
	struct ganesha_rights rights = e->rights;
	const struct ganesha_item *list = ganesha_find(block, "Clients", NULL);

	e->good &= ganesha_rights_read(c->said, block, &rights);
	e->good &= ganesha_other_client(c->said, block);
	if (!list)
		ganesha_say(c->said, GANESHA_WARNING, block->line, "CLIENT without Clients");
	for (; list; list = ganesha_find(block, "Clients", list))
		for (size_t i = 0; i < list->n; i++)
			ganesha_export_add_client(c, e, list->value[i], list->line, &rights);
}

/* The clients of EXPORT_DEFAULTS are for exports that name none. */
static void take_clients(struct conversion *c, struct export *e)
{
	const struct ganesha_item *from = e->block, *block = ganesha_find(from, "CLIENT", NULL);

	if (!block) {
		from = c->defaults;
		block = ganesha_find(from, "CLIENT", NULL);
	}
	for (; block; block = ganesha_find(from, "CLIENT", block))
		add_block(c, e, block);
	ganesha_export_add_client(c, e, "*", e->block->line, &e->rights);
	if (e->good)
		e->good = ganesha_clients_check(c->said, &e->clients);
}

/* Bytes that mean nothing in exports(5) stay as they are; others are written in octal. */
static void ganesha_put_path(FILE *out, const char *path)
{
	for (const char *s = path; *s; s++) {
		if ((*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
		    (*s >= '0' && *s <= '9') || strchr("/._-", *s))
			fputc(*s, out);
		else
			fprintf(out, "\\%03o", (unsigned)(unsigned char)*s);
	}
}

static void ganesha_put_client(struct conversion *c, const struct export *e,
			       const struct ganesha_client *client)
{
	char *options = ganesha_rights_options(&client->rights);

	if (!options) {
		c->rc = -ENOMEM;
		return;
	}
	fprintf(c->said->out, " %s(%s", client->spec, options);
	free(options);
	if (e->root)
		fputs(",fsid=0", c->said->out);
	else if (e->id > 0)
		fprintf(c->said->out, ",fsid=%ld", e->id);
	ganesha_other_options(e->block, c->said->out);
	fputc(')', c->said->out);
}

static void ganesha_put_export(struct conversion *c, const struct export *e)
{
	unsigned admitted = 0;

	for (size_t i = 0; i < e->clients.n; i++)
		admitted += !e->clients.client[i].never &&
			    !ganesha_rights_none(&e->clients.client[i].rights);
	if (e->good && !admitted)
		ganesha_say(c->said, GANESHA_WARNING, e->block->line,
			    "nobody has access to %s: Access_Type is None where it is not given",
			    e->path);
	if (!e->good || !admitted)
		fputs("# not converted: ", c->said->out);
	ganesha_put_path(c->said->out, e->path);
	for (size_t i = 0; i < e->clients.n; i++) {
		const struct ganesha_client *client = &e->clients.client[i];

		if (!client->never && !ganesha_rights_none(&client->rights))
			ganesha_put_client(c, e, client);
	}
	fputs("\n\n", c->said->out);
}

static const char *word_of(const struct ganesha_item *block, const char *name)
{
	const struct ganesha_item *item = ganesha_find(block, name, NULL);

	return item && item->n == 1 ? item->value[0] : NULL;
}

/* exports(5) has one export for each path, and one path for each fsid. A path's last / does not count. */
static bool same_path(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);

	while (n > 1 && a[n - 1] == '/')
		n--;
	while (m > 1 && b[m - 1] == '/')
		m--;
	return n == m && memcmp(a, b, n) == 0;
}

/* Of the blocks with one path or id, all but the first are refused. */
static void check_twice(struct conversion *c, struct export *e)
{
	const struct ganesha_item *other = NULL, *id = ganesha_find(e->block, "Export_Id", NULL);
	const bool root = e->pseudo && strcmp(e->pseudo, "/") == 0;

	while ((other = ganesha_find(c->tree, "EXPORT", other)) && other != e->block) {
		const char *path = word_of(other, "Path"), *number = word_of(other, "Export_Id"),
			   *pseudo = word_of(other, "Pseudo");

		if (path && e->path && same_path(path, e->path))
			ganesha_export_refuse(
				c, e, e->block->line, e->path,
				"another block exports it, too: here a path has one export");
		if (id && number && e->id >= 0 && strtol(number, NULL, 0) == e->id)
			ganesha_export_refuse(c, e, id->line, "Export_Id",
					      "another block has it, too");
		if (root && pseudo && strcmp(pseudo, "/") == 0)
			ganesha_export_refuse(c, e, e->block->line, "Pseudo = /",
					      "another block has it, too");
	}
}

static void convert(struct conversion *c, const struct ganesha_item *block)
{
	struct export e = { .block = block, .rights = c->rights, .good = !c->failed };

	take_path(c, &e);
	ganesha_export_take_id(c, &e);
	take_pseudo(c, &e);
	check_fsal(c, &e);
	check_twice(c, &e);
	e.good &= ganesha_rights_read(c->said, block, &e.rights);
	e.good &= ganesha_other_export(c->said, block);
	take_clients(c, &e);
	if (e.path && e.path[0] == '/')
		ganesha_put_export(c, &e);
	ganesha_clients_free(&e.clients);
}

static void convert_all(struct conversion *c)
{
	const struct ganesha_item *item = NULL;

	fputs("# Lines of exports(5), by ringnfsctl exports import --ganesha. Check them: "
	      "ringnfsctl "
	      "exports check FILE\n"
	      "# Users that are squashed are 65534 here, and 4294967294 in nfs-ganesha, unless it "
	      "says others.\n\n",
	      c->said->out);
	c->defaults = ganesha_find(c->tree, "EXPORT_DEFAULTS", NULL);
	if (c->defaults)
		c->failed = !ganesha_rights_read(c->said, c->defaults, &c->rights);
	else
		c->failed = has_directive(c->tree);
	c->failed |= !ganesha_other_blocks(c->said, c->tree);
	while ((item = ganesha_find(c->tree, "EXPORT", item)) && c->rc == 0)
		convert(c, item);
}

int ganesha_to_exports(const char *text, size_t len, struct ganesha_said *said)
{
	struct conversion c = { .said = said, .rights = ganesha_rights_default() };
	struct ganesha_error err;
	struct ganesha_item *tree = ganesha_parse(text, len, &err);

	if (!tree && !err.text[0])
		return -ENOMEM;
	if (!tree) {
		ganesha_say(said, GANESHA_ERROR, err.line, "%s", err.text);
		return -EINVAL;
	}
	c.tree = tree;
	convert_all(&c);
	ganesha_free(tree);
	return c.rc;
}

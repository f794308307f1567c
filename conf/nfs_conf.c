/* SPDX-License-Identifier: BSD-2-Clause */
/* nfs.conf(5), which configures the kernel's server, compared with the settings in force. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "conf/settings_schema.h"
#include "lib/utf8.h"
#include "lib/util.h"

enum { INCLUDES_MAX = 8, NAME_MAX_LEN = 64, LINES_MAX = 100000 };

/* Forms of a value in nfs.conf(5). */
enum form {
	FORM_SWITCH, /* y or n; written as `yes` or `no` of the row, or not compared if that is NULL */
	FORM_PORT,    /* 0 stands for the default port */
	FORM_SECONDS, /* a number of seconds */
	FORM_TEXT,    /* the same form as here */
	FORM_NOWHERE, /* without a setting here */
};

/* A key of nfs.conf(5), and the settings that say the same. */
struct counterpart {
	const char *section, *name;
	const char *key[2]; /* SECTION.NAME; the second may be NULL */
	enum form form;
	const char *yes, *no;
	const char *effect; /* of the difference */
};

#define SWITCH .form = FORM_SWITCH, .yes = "yes", .no = "no"

static const struct counterpart counterparts[] = {
	{ "mountd",
	  "manage-gids",
	  { "nfs3.manage_gids", "nfs4.manage_gids" },
	  SWITCH,
	  .effect = "it decides whether the groups of a user are those of this machine, or those "
		    "that the client claims" },
	{ "mountd", "port", { "tcp.mount_port" }, .form = FORM_PORT },
	{ "nfsd",
	  "host",
	  { "tcp.listen", "rdma.listen" },
	  .form = FORM_TEXT,
	  .effect = "without it all addresses of this machine are served" },
	{ "nfsd", "port", { "tcp.port" }, .form = FORM_PORT },
	{ "nfsd", "grace-time", { "nfs4.grace_time" }, .form = FORM_SECONDS },
	{ "nfsd", "lease-time", { "nfs4.lease_time" }, .form = FORM_SECONDS },
	{ "nfsd", "udp", { "udp.nfs" }, SWITCH },
	{ "nfsd", "tcp", { "tcp.enabled" }, SWITCH },
	{ "nfsd", "vers2", { "nfs2.enabled" }, SWITCH },
	{ "nfsd", "vers3", { "nfs3.enabled" }, SWITCH },
	{ "nfsd", "vers4", { "nfs4.enabled" }, SWITCH },
	{ "nfsd", "vers4.0", { "nfs4.minor_min" }, .form = FORM_SWITCH, .no = "1" },
	{ "nfsd", "vers4.1", { "nfs4.minor_max" }, .form = FORM_SWITCH, .no = "0" },
	{ "nfsd", "vers4.2", { "nfs4.minor_max" }, .form = FORM_SWITCH, .no = "1" },
	{ "nfsd", "rdma", { "rdma.enabled" }, .form = FORM_SWITCH, .no = "no" },
	{ "nfsd", "rdma-port", { "rdma.port" }, .form = FORM_PORT },
	{ "statd", "port", { "nlm.statd_port" }, .form = FORM_PORT },
	{ "exports", "rootdir", .form = FORM_NOWHERE,
	  .effect = "the paths in the exports files are taken as they are, not below that "
		    "directory" },
};

/* Value of a key; a later file or line replaces it. */
struct found {
	char *value; /* NULL: not given */
	char *file;
	unsigned line;
};

struct comparison {
	struct cfg_diags *diags;
	struct found found[rn_array_size(counterparts)];
	unsigned files; /* read so far */
	bool no_memory;
};

static char *trim(char *text)
{
	char *end;

	text += strspn(text, " \t\r\n");
	end = text + strlen(text);
	while (end > text && strchr(" \t\r\n", end[-1]))
		end--;
	*end = '\0';
	if (end - text >= 2 && (*text == '"' || *text == '\'') && end[-1] == *text) {
		end[-1] = '\0';
		text++;
	}
	return text;
}

static void nfs_conf_keep_value(struct comparison *c, const char *section, const char *name,
				const char *value, struct cfg_position at)
{
	for (size_t i = 0; i < rn_array_size(counterparts); i++) {
		struct found *f = &c->found[i];

		if (strcasecmp(section, counterparts[i].section) != 0 ||
		    strcasecmp(name, counterparts[i].name) != 0)
			continue;
		free(f->value);
		free(f->file);
		*f = (struct found){ strdup(value), strdup(at.file), at.line };
		c->no_memory |= !f->value || !f->file;
	}
}

/* A file that is being read: those that it was included by wait below it. */
struct reading {
	FILE *in;
	char *path;
	unsigned line;
	char section[NAME_MAX_LEN];
};

struct readings {
	struct reading file[INCLUDES_MAX];
	unsigned n;
};

/* Puts a file on top, to be read next. path is the callee's from now on. */
static void open_nfs_conf(struct comparison *c, struct readings *all, char *path)
{
	FILE *in = path && c->files < INCLUDES_MAX ? fopen(path, "re") : NULL;

	c->no_memory |= !path;
	if (!in && path && c->files < INCLUDES_MAX && errno != ENOENT)
		cfg_diag_add(c->diags, (struct cfg_position){ .file = path }, CFG_WARNING,
			     "cannot be read and compared with ringnfs.conf: %s", strerror(errno));
	c->files++;
	if (in)
		all->file[all->n++] = (struct reading){ .in = in, .path = path };
	else
		free(path);
}

/* `include = FILE`, relative to the folder of the file that says so. With a "-" before the name a missing file is no
 * error, here neither. */
static char *included(const char *name, const char *from)
{
	const char *slash = strrchr(from, '/');
	char *path = NULL;

	name += *name == '-';
	if (*name == '/' || !slash)
		return strdup(name);
	return asprintf(&path, "%.*s/%s", (int)(slash - from), from, name) < 0 ? NULL : path;
}

static void read_nfs_conf_line(struct comparison *c, struct readings *all, char *line)
{
	struct reading *r = &all->file[all->n - 1];
	const size_t bom = r->line == 1 ? rn_utf8_bom(line, strlen(line)) : 0;
	char *text = trim(line + bom), *equals = strchr(text, '=');

	if (*text == '#' || *text == ';')
		return;
	if (*text == '[') {
		text[strcspn(text, "]")] = '\0';
		snprintf(r->section, sizeof(r->section), "%s", trim(text + 1));
		return;
	}
	if (!equals)
		return;
	*equals = '\0';
	text = trim(text);
	if (strcasecmp(text, "include") == 0)
		open_nfs_conf(c, all, included(trim(equals + 1), r->path));
	else
		nfs_conf_keep_value(c, r->section, text, trim(equals + 1),
				    (struct cfg_position){ r->path, r->line, 0 });
}

/* Reads a file, and where it includes another that one first. */
static void read_nfs_conf(struct comparison *c, const char *path)
{
	struct readings all = { .n = 0 };
	char line[CFG_VALUE_MAX];

	open_nfs_conf(c, &all, strdup(path));
	while (all.n > 0) {
		struct reading *r = &all.file[all.n - 1];

		if (++r->line < LINES_MAX && fgets(line, sizeof(line), r->in)) {
			read_nfs_conf_line(c, &all, line);
			continue;
		}
		fclose(r->in);
		free(r->path);
		all.n--;
	}
}

static int is_conf(const struct dirent *entry)
{
	const size_t len = strlen(entry->d_name);

	return entry->d_name[0] != '.' && len > 5 && strcmp(entry->d_name + len - 5, ".conf") == 0;
}

static void read_nfs_conf_dir(struct comparison *c, const char *path)
{
	struct dirent **entries = NULL;
	char *dir = NULL;
	int n = asprintf(&dir, "%s.d", path) < 0 ? -1 : scandir(dir, &entries, is_conf, alphasort);

	for (int i = 0; i < n; i++) {
		char *file = NULL;

		if (asprintf(&file, "%s/%s", dir, entries[i]->d_name) >= 0) {
			c->files = 0;
			read_nfs_conf(c, file);
			free(file);
		}
		free(entries[i]);
	}
	free(entries);
	free(dir);
}

/* 1, 0, or -1 if the text is neither. */
static int parse_switch(const char *text)
{
	static const char *const words[][6] = { { "n", "no", "0", "f", "false", "off" },
						{ "y", "yes", "1", "t", "true", "on" } };

	for (int value = 0; value < 2; value++)
		for (size_t i = 0; i < rn_array_size(words[0]); i++)
			if (strcasecmp(text, words[value][i]) == 0)
				return value;
	return -1;
}

/* The value as ringnfs.conf has it. False: nothing to compare. */
static bool translate(const struct counterpart *row, const char *value, char text[CFG_VALUE_MAX])
{
	const int on = parse_switch(value);
	const char *word = on > 0 ? row->yes : row->no;

	if (row->form == FORM_SWITCH) {
		if (on < 0 || !word)
			return false;
		value = word;
	}
	if (row->form == FORM_PORT && strcmp(value, "0") == 0)
		return false;
	snprintf(text, CFG_VALUE_MAX, "%s%s", value, row->form == FORM_SECONDS ? "s" : "");
	return true;
}

/* True if the key has its default, and that is not what the text says. Then `now` has the value. */
static bool nfs_conf_differs(const struct cfg_settings *settings, const char *key, const char *text,
			     char now[CFG_VALUE_MAX])
{
	char wrong[CFG_TEXT_MAX], wanted[CFG_VALUE_MAX];
	struct cfg_settings other = { 0 };
	unsigned i = 0;

	while (strcmp(cfg_rows[i].key, key) != 0)
		i++;
	if (settings->origin[i].name)
		return false;
	cfg_value_print(&cfg_rows[i], settings, now);
	const int rc = cfg_value_parse(&cfg_rows[i], &other, text, wrong);

	if (!rc)
		cfg_value_print(&cfg_rows[i], &other, wanted);
	cfg_value_clear(&cfg_rows[i], &other);
	return rc || strcmp(now, wanted) != 0;
}

static void compare_key(struct comparison *c, const struct cfg_settings *settings,
			const struct counterpart *row, const struct found *f)
{
	const struct cfg_position at = { f->file, f->line, 0 };
	char text[CFG_VALUE_MAX], now[2][CFG_VALUE_MAX];
	const char *const effect = row->effect ? row->effect : "";
	const char *const colon = row->effect ? ": " : "";

	if (row->form == FORM_NOWHERE) {
		cfg_diag_add(c->diags, at, CFG_WARNING, "[%s] %s=%s has no counterpart here%s%s",
			     row->section, row->name, f->value, colon, effect);
		return;
	}
	if (!translate(row, f->value, text))
		return;
	for (unsigned i = 0; i < 2 && row->key[i]; i++) {
		if (!nfs_conf_differs(settings, row->key[i], text, now[i]))
			continue;
		cfg_diag_add(
			c->diags, at, CFG_WARNING,
			"[%s] %s=%s, which the kernel's server obeys, but here %s is %s%s%s; set "
			"%s in ringnfs.conf, to %s or as it is",
			row->section, row->name, f->value, row->key[i], *now[i] ? now[i] : "empty",
			colon, effect, row->key[i], text);
	}
}

int cfg_compare_nfs_conf(const struct cfg_settings *settings, const char *path,
			 struct cfg_diags *diags)
{
	struct comparison c = { .diags = diags };

	read_nfs_conf(&c, path);
	read_nfs_conf_dir(&c, path);
	for (size_t i = 0; i < rn_array_size(counterparts); i++) {
		if (c.found[i].value && c.found[i].file)
			compare_key(&c, settings, &counterparts[i], &c.found[i]);
		free(c.found[i].value);
		free(c.found[i].file);
	}
	return c.no_memory ? -ENOMEM : 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A mount unit is named after its mount point, and each prefix of an export's path may be one. Which of them are is not known
 * here: other generators run at the same time, and units may be written by hand. The manager passes over units that do not
 * exist, so all prefixes are named. Of the mounts below an export those are named that fstab(5) has.
 *
 * No file system but the root is looked at: one that does not answer would hold up the manager.
 */
#include "systemd/generator/gather.h"

#include <errno.h>
#include <fcntl.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/exports.h"
#include "conf/settings.h"
#include "systemd/generator/mount_unit.h"
#include "systemd/generator/resolve.h"

struct gatherer {
	const char *root_path;
	int root;
	struct needs *needs;
};

/* The set gets where the path leads. */
static void add_resolved(struct gatherer *g, struct path_set *set, const char *path)
{
	char *resolved = set->full ? NULL : resolve_path(g->root, path);

	if (resolved)
		path_set_add(set, resolved, strlen(resolved));
	else
		set->full = true;
	free(resolved);
}

static void gather_export(void *arg, const char *path)
{
	struct gatherer *g = arg;

	add_resolved(g, &g->needs->exports, path);
}

/* Adds the path and what is above it, as far as there can be units of such names. "/" is always mounted. */
static void add_prefixes(struct path_set *places, const char *path)
{
	char name[MOUNT_UNIT_SIZE];

	for (size_t len = path_next_prefix(path, 1); len; len = path_next_prefix(path, len)) {
		if (!mount_unit_name(path, len, name))
			return;
		path_set_add(places, path, len);
	}
}

static bool is_below_export(const struct path_set *exports, const char *path)
{
	for (size_t len = 1; len; len = path_next_prefix(path, len))
		if (path_set_has(exports, path, len))
			return true;
	return false;
}

static void take_mount(struct gatherer *g, const struct mntent *entry)
{
	struct needs *needs = g->needs;
	char *path;

	if (entry->mnt_dir[0] != '/' || !exp_path_clean(entry->mnt_dir))
		return;
	path = resolve_path(g->root, entry->mnt_dir);
	if (!path)
		return;
	path_set_add(&needs->fstab, path, strlen(path));
	if (is_below_export(&needs->exports, path))
		add_prefixes(&needs->places, path);
	free(path);
}

/* The path of a file below the root in use; NULL without memory. */
static char *below_root(const struct gatherer *g, const char *path)
{
	char *full;

	return asprintf(&full, "%s%s", g->root_path, path) < 0 ? NULL : full;
}

/* One that is missing or no regular file has nothing for us; a pipe would hold up the manager. */
static bool is_regular(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode);
}

static int gather_fstab(struct gatherer *g)
{
	char *path = below_root(g, "/etc/fstab"), line[8192];
	FILE *f = path && is_regular(path) ? setmntent(path, "re") : NULL;
	struct mntent entry;
	int rc = path ? 0 : -ENOMEM;

	while (f && getmntent_r(f, &entry, line, sizeof(line)))
		take_mount(g, &entry);
	if (f)
		endmntent(f);
	free(path);
	return rc;
}

/* Settings in force, as far as their file is right: the server refuses the others itself. */
static int load_settings(const struct gatherer *g, struct cfg_settings *settings)
{
	char *path = below_root(g, RN_SYSCONFDIR "/ringnfs.conf");
	struct cfg_diags diags;
	int rc = cfg_set_defaults(settings);

	cfg_diags_init(&diags);
	if (!rc && !path)
		rc = -ENOMEM;
	if (!rc && is_regular(path) && cfg_load(settings, path, &diags) == -ENOMEM)
		rc = -ENOMEM;
	cfg_diags_free(&diags);
	free(path);
	return rc;
}

/* True if a tmpfs of its own there would hide something of the path, or the path would be in it. */
static bool touches_tmp(const struct gatherer *g, const char *path)
{
	static const char *const dirs[] = { "/tmp", "/var/tmp" };
	bool touches = false;

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		char *dir = resolve_path(g->root, dirs[i]);

		touches |= !dir || path_within(path, dir) || path_within(dir, path);
		free(dir);
	}
	return touches;
}

static bool own_files_touch_tmp(struct gatherer *g, const struct cfg_settings *s)
{
	const char *const paths[] = { s->server.state_dir,
				      s->server.exports_file,
				      s->server.exports_dir,
				      s->server.control_socket,
				      s->nfs4.idmap_file,
				      s->gss.keytab,
				      s->tls.certificate,
				      s->tls.key,
				      s->tls.ca,
				      s->tls.crl,
				      s->tls.user_map };
	bool touches = false;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		char *path = paths[i][0] == '/' ? resolve_path(g->root, paths[i]) : NULL;

		touches |= path && touches_tmp(g, path);
		free(path);
	}
	return touches;
}

/* The exports are too many to be named: all of fstab(5) is waited for, as if "/" were exported. */
static void be_coarse(struct needs *needs)
{
	path_set_free(&needs->exports);
	path_set_free(&needs->places);
	path_set_add(&needs->exports, "/", 1);
}

static int gather_exports(struct gatherer *g, const struct cfg_settings *settings)
{
	const struct cfg_server *server = &settings->server;
	struct needs *needs = g->needs;
	char *file = below_root(g, server->exports_file), *dir = below_root(g, server->exports_dir);
	int rc = -ENOMEM;

	if (file && dir)
		rc = exp_paths_each(file, dir, gather_export, g);
	free(file);
	free(dir);
	if (rc == -ENOMEM)
		return rc;
	needs->private_tmp = !rc && !needs->exports.full && !own_files_touch_tmp(g, settings);
	path_set_sort(&needs->exports);
	for (size_t i = 0; i < needs->exports.n; i++) {
		const char *path = needs->exports.paths[i];

		needs->private_tmp &= !touches_tmp(g, path);
		add_prefixes(&needs->places, path);
	}
	if (needs->exports.full || needs->places.full)
		be_coarse(needs);
	return 0;
}

int needs_gather(const char *root, struct needs *needs)
{
	struct gatherer g = { .root_path = root, .needs = needs };
	struct cfg_settings settings = { 0 };
	int rc;

	*needs = (struct needs){ 0 };
	g.root = open(*root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (g.root < 0)
		return -errno;
	rc = load_settings(&g, &settings);
	if (!rc)
		rc = gather_exports(&g, &settings);
	if (!rc)
		rc = gather_fstab(&g);
	path_set_sort(&needs->places);
	path_set_sort(&needs->fstab);
	cfg_free(&settings);
	close(g.root);
	return rc;
}

void needs_free(struct needs *needs)
{
	path_set_free(&needs->exports);
	path_set_free(&needs->places);
	path_set_free(&needs->fstab);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a path to the line of exports(5) that governs it: the deepest one that names the host, as rpc.mountd chooses. A
 * line is found by its path as written, and by the path without symbolic links that it leads to. A line in error decides, too: what
 * it was to restrict is nobody's until it is mended.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/exports.h"
#include "daemon/export_set_private.h"
#include "lib/error.h"
#include "vfs/vfs.h"

/* The line that is written with the path of a directory comes before those that lead there by links, and those in error last. */
static int export_line_rank(const struct export_line *l)
{
	return !l->e ? 2 : l->path != l->e->path;
}

static int export_line_compare(const void *a, const void *b)
{
	const struct export_line *x = a, *y = b;
	const int d = strcmp(x->path, y->path);

	return d != 0 ? d : export_line_rank(x) - export_line_rank(y);
}

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int compare_names(const void *a, const void *b)
{
	const struct export_line *x = a, *y = b;

	return x->folds != y->folds ? y->folds - x->folds
				    : strcmp(last_name(x->path), last_name(y->path));
}

/* The first line with that path; others may follow. NULL: none. */
static const struct export_line *first_at(const struct export_set *set, const char *path)
{
	unsigned low = 0, high = set->n_lines;

	while (low < high) {
		const unsigned mid = low + (high - low) / 2;

		if (strcmp(set->line[mid].path, path) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low < set->n_lines && strcmp(set->line[low].path, path) == 0 ? &set->line[low]
									    : NULL;
}

/* Cuts a path to the one above. False: it is the root. */
static bool export_line_cut_path(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || path[1] == '\0')
		return false;
	slash[slash == path] = '\0';
	return true;
}

/* True if the directory that has that entry folds the case of its names, or that is not known. */
static bool entry_folds_case(const struct export_opener *op, const char *path)
{
	char dir[PATH_MAX];
	bool folds;
	int fd;

	if (strlen(path) >= sizeof(dir))
		return true;
	strcpy(dir, path);
	if (!export_line_cut_path(dir))
		return false;
	if (!path_probe_answers(op->probe, dir))
		return true;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno != ENOENT;
	folds = vfs_dir_folds_case(fd);
	close(fd);
	return folds;
}

static bool lies_in_another(const struct export_set *set, const char *path)
{
	char above[PATH_MAX];

	if (strlen(path) >= sizeof(above))
		return false;
	strcpy(above, path);
	while (export_line_cut_path(above))
		if (first_at(set, above))
			return true;
	return false;
}

/* The path without symbolic links, of which the last names need not be there; as it is written if its file system does not answer.
 * NULL: no memory. */
static char *export_line_resolve(const struct export_opener *op, const char *path)
{
	char above[PATH_MAX], *real = NULL, *whole;

	if (strlen(path) >= sizeof(above) || !path_probe_answers(op->probe, path))
		return strdup(path);
	strcpy(above, path);
	do
		real = realpath(above, NULL);
	while (!real && errno == ENOENT && export_line_cut_path(above));
	if (!real)
		return strdup(path);
	const char *rest = path + strlen(above);

	if (asprintf(&whole, "%s%s%s", strcmp(real, "/") == 0 && *rest ? "" : real,
		     *rest && *rest != '/' ? "/" : "", rest) < 0)
		whole = NULL;
	free(real);
	return whole;
}

/* Finds the mounts that the path and the directory above it lie on. */
static void find_mounts(const struct vfs_mount_table *t, struct export_line *l)
{
	for (size_t i = 0; i < t->n; i++) {
		const char *at = t->entry[i].path;
		const size_t len = strlen(at);
		const bool above = vfs_path_below(l->path, at) && strcmp(l->path, at) != 0;

		if (len > l->dir_mount && above)
			l->dir_mount = len;
		if (len > l->mount && (above || strcmp(l->path, at) == 0))
			l->mount = len;
	}
}

static int export_line_add(struct export_set *set, const struct export_opener *op, const char *path,
			   const struct exp_export *e)
{
	const struct vfs_export *exp = e ? set->place[e->index].exp : NULL;
	const char *real = exp ? vfs_export_real_path(exp) : NULL;

	if (!real) {
		char *found = export_line_resolve(op, path);

		if (!found)
			return -ENOMEM;
		set->real[set->n_real++] = found;
		real = found;
	}
	set->line[set->n_lines++] = (struct export_line){ .path = path, .e = e };
	if (strcmp(real, path) != 0)
		set->line[set->n_lines++] = (struct export_line){ .path = real, .e = e };
	set->nested[set->n_nested++] = (struct export_line){ .path = real, .e = e };
	return 0;
}

/* Keeps those that lie within another one. */
static void sort_nested(struct export_set *set, const struct export_opener *op)
{
	const unsigned n = set->n_nested;

	set->n_nested = 0;
	for (unsigned i = 0; i < n; i++) {
		struct export_line l = set->nested[i];

		if (!lies_in_another(set, l.path))
			continue;
		find_mounts(op->table, &l);
		l.folds = entry_folds_case(op, l.path);
		set->n_folding += l.folds;
		set->nested[set->n_nested++] = l;
	}
	if (set->n_nested > 0)
		qsort(set->nested, set->n_nested, sizeof(*set->nested), compare_names);
}

int export_set_index_lines(struct export_set *set, const struct export_opener *op)
{
	const struct exp_table *t = set->table;
	const unsigned most = t->n_exports + t->n_refused;
	int rc = 0;

	set->line = calloc(2 * (size_t)most + 1, sizeof(*set->line));
	set->nested = calloc((size_t)most + 1, sizeof(*set->nested));
	set->real = calloc((size_t)most + 1, sizeof(*set->real));
	if (!set->line || !set->nested || !set->real)
		return -ENOMEM;
	for (unsigned i = 0; rc == 0 && i < t->n_exports; i++)
		rc = export_line_add(set, op, t->exports[i].path, &t->exports[i]);
	for (unsigned i = 0; rc == 0 && i < t->n_refused; i++)
		if (t->refused[i].path[0] == '/')
			rc = export_line_add(set, op, t->refused[i].path, NULL);
	if (rc < 0)
		return rc;
	if (set->n_lines > 0)
		qsort(set->line, set->n_lines, sizeof(*set->line), export_line_compare);
	sort_nested(set, op);
	return 0;
}

void export_set_free_lines(struct export_set *set)
{
	for (unsigned i = 0; i < set->n_real; i++)
		free(set->real[i]);
	free(set->real);
	free(set->line);
	free(set->nested);
}

/* Among the lines with that path one that is for the peer, or perhaps: 0 or -RN_EUNNAMED. -EACCES: none
 * is, and *e is one of them; -EPERM: none is, and one is in error; -ENOENT: there are none. */
static int match_at(const struct export_set *set, const char *path, const struct sockaddr *peer,
		    const struct exp_export **e)
{
	const struct export_line *l = first_at(set, path), *end = set->line + set->n_lines;
	const struct exp_opts *opts;
	int rc = l ? -EACCES : -ENOENT;

	for (*e = l ? l->e : NULL; rc == -EACCES && l < end && strcmp(l->path, path) == 0; l++) {
		rc = l->e ? exp_match(set->matcher, l->e, peer, &opts) : -EPERM;
		if (rc != -EACCES)
			*e = l->e;
	}
	return rc;
}

/* True if a line with that result has the last word on what lies below its path. */
static bool decides(int rc)
{
	return rc == 0 || rc == -RN_EUNNAMED || rc == -EPERM;
}

/* export_set_line_of() for the path as it is written. */
static int deepest_at(const struct export_set *set, const char *path, const struct sockaddr *peer,
		      const struct exp_export **e, size_t *length)
{
	const struct exp_export *deepest = NULL;
	char at[PATH_MAX];
	int rc = -ENOENT;

	strcpy(at, path);
	do {
		const int found = match_at(set, at, peer, e);

		if (found != -ENOENT && (found != -EACCES || !deepest)) {
			deepest = *e;
			*length = strlen(at);
			rc = found;
		}
	} while (!decides(rc) && export_line_cut_path(at));
	*e = deepest;
	return rc;
}

/* Fills real with where the path leads that goes on behind its first length bytes, the path of e. False: that is the same path, or it is
 * not known. */
static bool replace_links(const struct export_set *set, const struct exp_export *e,
			  const char *path, size_t length, char *real)
{
	const struct vfs_export *exp = set->place[e->index].exp;
	const char *root = exp ? vfs_export_real_path(exp) : NULL;
	const char *rest = path + length + (path[length] == '/');

	return root && (strlen(root) != length || strncmp(root, path, length) != 0) && *rest &&
	       snprintf(real, PATH_MAX, "%s/%s", strcmp(root, "/") == 0 ? "" : root, rest) <
		       PATH_MAX;
}

int export_set_line_of(const struct export_set *set, const char *path, const struct sockaddr *peer,
		       const struct exp_export **e, size_t *length)
{
	const struct exp_export *deeper;
	char real[PATH_MAX];
	size_t until;
	int rc;

	*e = NULL;
	*length = 0;
	if (path[0] != '/' || strlen(path) >= sizeof(real))
		return -ENOENT;
	rc = deepest_at(set, path, peer, e, length);
	/* The rest of the path may lead on to a line that is written without the links of this one's. */
	if (*e && replace_links(set, *e, path, *length, real)) {
		const int found = deepest_at(set, real, peer, &deeper, &until);
		const size_t behind = found != -ENOENT ? strlen(real) - until : 0;

		if (found != -ENOENT && deeper != *e && behind < strlen(path) - *length &&
		    (found != -EACCES || rc == -EACCES)) {
			*e = deeper;
			*length = strlen(path) - behind;
			rc = found;
		}
	}
	return rc;
}

int export_set_governs(const struct export_set *set, const struct vfs_export *outer,
		       const char *path, const struct sockaddr *peer)
{
	const size_t least = strlen(vfs_export_real_path(outer));
	const struct exp_export *e;
	char at[PATH_MAX];
	int rc = -ENOENT;

	if (path[0] != '/' || strlen(path) >= sizeof(at))
		return 0;
	strcpy(at, path);
	while (!decides(rc) && strlen(at) > least) {
		rc = match_at(set, at, peer, &e);
		if (!export_line_cut_path(at))
			break;
	}
	if (rc == 0)
		return e->id != vfs_export_id(outer);
	return rc == -EPERM ? 1 : rc == -RN_EUNNAMED ? rc : 0;
}

static int compare_name(const struct export_line *l, const char *name, uint32_t len)
{
	const char *last = last_name(l->path);
	const int d = strncmp(last, name, len);

	return d != 0 ? d : last[len] != '\0';
}

static bool pass(const struct export_set *set, const struct export_line *l,
		 bool (*each)(void *arg, const struct vfs_nested *n), void *arg)
{
	const struct vfs_nested n = {
		.real_path = l->path,
		.mount = l->mount,
		.dir_mount = l->dir_mount,
		.exp = l->e ? set->place[l->e->index].exp : NULL,
		.id = l->e ? l->e->id : 0,
		.refused = !l->e,
	};

	return each(arg, &n);
}

void export_set_nested(const struct export_set *set, const char *name, uint32_t len,
		       bool (*each)(void *arg, const struct vfs_nested *n), void *arg)
{
	unsigned low = set->n_folding, high = set->n_nested;

	for (unsigned i = 0; i < set->n_folding; i++)
		if (!pass(set, &set->nested[i], each, arg))
			return;
	while (low < high) {
		const unsigned mid = low + (high - low) / 2;

		if (compare_name(&set->nested[mid], name, len) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < set->n_nested && compare_name(&set->nested[low], name, len) == 0; low++)
		if (!pass(set, &set->nested[low], each, arg))
			return;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a path to the line of exports(5) that governs it: the deepest one that names the host, as rpc.mountd chooses. A
 * line is found by its path as written, and by the path without symbolic links that it leads to.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/exports_match.h"
#include "daemon/export_set_private.h"

static bool is_written_so(const struct export_line *l)
{
	return l->path == l->e->path;
}

/* Orders lines by path; the one that is written with the path of a directory comes before those that lead there by links. */
static int compare_paths(const void *a, const void *b)
{
	const struct export_line *x = a, *y = b;
	const int d = strcmp(x->path, y->path);

	return d != 0 ? d : is_written_so(y) - is_written_so(x);
}

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static int compare_names(const void *a, const void *b)
{
	const struct export_line *x = a, *y = b;

	return strcmp(last_name(x->path), last_name(y->path));
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
static bool cut(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || path[1] == '\0')
		return false;
	slash[slash == path] = '\0';
	return true;
}

static bool lies_in_another(const struct export_set *set, const char *path)
{
	char above[PATH_MAX];

	if (strlen(path) >= sizeof(above))
		return false;
	strcpy(above, path);
	while (cut(above))
		if (first_at(set, above))
			return true;
	return false;
}

int export_set_index_lines(struct export_set *set)
{
	const unsigned most = 2 * set->table->n_exports;

	set->line = calloc(most + 1, sizeof(*set->line));
	set->nested = calloc(set->table->n_exports + 1, sizeof(*set->nested));
	if (!set->line || !set->nested)
		return -ENOMEM;
	for (unsigned i = 0; i < set->table->n_exports; i++) {
		const struct exp_export *e = &set->table->exports[i];
		const struct vfs_export *exp = set->place[i].exp;
		const char *real = exp ? vfs_export_real_path(exp) : e->path;

		set->line[set->n_lines++] = (struct export_line){ e->path, e };
		if (strcmp(real, e->path) != 0)
			set->line[set->n_lines++] = (struct export_line){ real, e };
	}
	if (set->n_lines > 0)
		qsort(set->line, set->n_lines, sizeof(*set->line), compare_paths);
	for (unsigned i = 0; i < set->table->n_exports; i++) {
		const struct vfs_export *exp = set->place[i].exp;
		const char *real = exp ? vfs_export_real_path(exp) : NULL;

		if (real && lies_in_another(set, real))
			set->nested[set->n_nested++] =
				(struct export_line){ real, &set->table->exports[i] };
	}
	if (set->n_nested > 0)
		qsort(set->nested, set->n_nested, sizeof(*set->nested), compare_names);
	return 0;
}

/* Among the lines with that path one that is for the peer, or perhaps: 0 or -EAGAIN. -EACCES: none
 * is, and *e is one of them; -ENOENT: there are none. */
static int match_at(const struct export_set *set, const char *path, const struct sockaddr *peer,
		    const struct exp_export **e)
{
	const struct export_line *l = first_at(set, path), *end = set->line + set->n_lines;
	const struct exp_opts *opts;
	int rc = l ? -EACCES : -ENOENT;

	for (*e = l ? l->e : NULL; rc == -EACCES && l < end && strcmp(l->path, path) == 0; l++) {
		rc = exp_match(set->matcher, l->e, peer, &opts);
		if (rc != -EACCES)
			*e = l->e;
	}
	return rc;
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
	} while (rc != 0 && rc != -EAGAIN && cut(at));
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
		const size_t behind = deeper ? strlen(real) - until : 0;

		if (deeper && deeper != *e && behind < strlen(path) - *length &&
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
	while (rc != 0 && rc != -EAGAIN && strlen(at) > least) {
		rc = match_at(set, at, peer, &e);
		if (!cut(at))
			break;
	}
	if (rc == 0)
		return e->id != vfs_export_id(outer);
	return rc == -EAGAIN ? rc : 0;
}

static int compare_name(const struct export_line *l, const char *name, uint32_t len)
{
	const char *last = last_name(l->path);
	const int d = strncmp(last, name, len);

	return d != 0 ? d : last[len] != '\0';
}

void export_set_nested(const struct export_set *set, const char *name, uint32_t len,
		       bool (*each)(void *arg, struct vfs_export *exp), void *arg)
{
	unsigned low = 0, high = set->n_nested;

	while (low < high) {
		const unsigned mid = low + (high - low) / 2;

		if (compare_name(&set->nested[mid], name, len) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < set->n_nested && compare_name(&set->nested[low], name, len) == 0; low++)
		if (!each(arg, set->place[set->nested[low].e->index].exp))
			return;
}

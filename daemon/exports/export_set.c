/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a path to the line of exports(5) that governs it: the deepest one that names the host, as rpc.mountd chooses. A
 * line is found by its path as written, and by the path without symbolic links that it leads to. A line in error decides, too: what
 * it was to restrict is nobody's until it is mended.
 */
#include "daemon/exports/export_set.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/exports.h"
#include "daemon/daemon_drain.h"
#include "daemon/exports/export_set_private.h"
#include "daemon/exports/path_probe.h"
#include "lib/error.h"
#include "vfs/deleg.h"
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

/* True if the directory folds the case of its names, or that is not known. */
static bool path_folds_case(const char *dir)
{
	bool folds;
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

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
static char *export_line_resolve(const char *path, bool answers)
{
	char above[PATH_MAX], *real = NULL, *whole;

	if (strlen(path) >= sizeof(above) || !answers)
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

static int export_line_add(struct export_set *set, const char *path, const struct exp_export *e,
			   bool answers)
{
	const struct vfs_export *exp = e ? set->place[e->index].exp : NULL;
	const char *real = exp ? vfs_export_real_path(exp) : NULL;

	if (!real) {
		char *found = export_line_resolve(path, answers);

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

/* The nested lines in directories that fold case. Lines of one directory that follow one another have one question. 0 or -ENOMEM. */
static int find_folding(struct export_set *set, const struct export_opener *op)
{
	const char **dir = calloc(set->n_nested + 1, sizeof(*dir)), *last = "";
	bool *answers = calloc(set->n_nested + 1, sizeof(*answers));
	int rc = dir && answers ? 0 : -ENOMEM;

	for (unsigned i = 0; !rc && i < set->n_nested; i++) {
		char *above = strdup(set->nested[i].path);

		rc = above ? 0 : -ENOMEM;
		if (above && export_line_cut_path(above) && strcmp(above, last) != 0)
			dir[i] = last = above;
		else
			free(above);
	}
	if (!rc)
		path_probe_ask(op->probe, dir, set->n_nested, answers);
	for (unsigned i = 0; !rc && i < set->n_nested; i++) {
		set->nested[i].folds =
			dir[i] ? !answers[i] || path_folds_case(dir[i]) : set->nested[i - 1].folds;
		set->n_folding += set->nested[i].folds;
	}
	for (unsigned i = 0; dir && i < set->n_nested; i++)
		free((char *)(uintptr_t)dir[i]);
	free(dir);
	free(answers);
	return rc;
}

/* Keeps those that lie within another one. 0 or -ENOMEM. */
static int sort_nested(struct export_set *set, const struct export_opener *op)
{
	const unsigned n = set->n_nested;
	int rc;

	set->n_nested = 0;
	for (unsigned i = 0; i < n; i++) {
		if (!lies_in_another(set, set->nested[i].path))
			continue;
		set->nested[set->n_nested] = set->nested[i];
		find_mounts(op->table, &set->nested[set->n_nested++]);
	}
	rc = find_folding(set, op);
	if (set->n_nested > 0)
		qsort(set->nested, set->n_nested, sizeof(*set->nested), compare_names);
	return rc;
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
		rc = export_line_add(set, t->exports[i].path, &t->exports[i], op->answers[i]);
	for (unsigned i = 0; rc == 0 && i < t->n_refused; i++)
		if (t->refused[i].path[0] == '/')
			rc = export_line_add(set, t->refused[i].path, NULL,
					     op->answers[t->n_exports + i]);
	if (rc < 0)
		return rc;
	if (set->n_lines > 0)
		qsort(set->line, set->n_lines, sizeof(*set->line), export_line_compare);
	return sort_nested(set, op);
}

static void export_set_free_lines(struct export_set *set)
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
		 const struct sockaddr *peer, bool (*each)(void *arg, const struct vfs_nested *n),
		 void *arg)
{
	struct vfs_nested n = {
		.real_path = l->path,
		.mount = l->mount,
		.dir_mount = l->dir_mount,
		.exp = l->e ? set->place[l->e->index].exp : NULL,
		.id = l->e ? l->e->id : 0,
		.refused = !l->e,
		.rc = -EPERM,
	};

	if (l->e)
		n.rc = export_set_admits(set, l->e, peer, &n.access);
	return each(arg, &n);
}

void export_set_nested(const struct export_set *set, const char *name, uint32_t len,
		       const struct sockaddr *peer,
		       bool (*each)(void *arg, const struct vfs_nested *n), void *arg)
{
	unsigned low = set->n_folding, high = set->n_nested;

	for (unsigned i = 0; i < set->n_folding; i++)
		if (!pass(set, &set->nested[i], peer, each, arg))
			return;
	while (low < high) {
		const unsigned mid = low + (high - low) / 2;

		if (compare_name(&set->nested[mid], name, len) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < set->n_nested && compare_name(&set->nested[low], name, len) == 0; low++)
		if (!pass(set, &set->nested[low], peer, each, arg))
			return;
}

static void source_put(struct set_source *source)
{
	while (source && atomic_fetch_sub(&source->refs, 1) == 1) {
		struct set_source *files = source->files;

		exp_matcher_free(source->matcher);
		cfg_diags_free(&source->diags);
		free(source);
		source = files;
	}
}

void export_set_put(struct export_set *set)
{
	if (!set || atomic_fetch_sub(&set->refs, 1) != 1)
		return;
	for (unsigned i = 0; set->place && i < set->table->n_exports; i++)
		export_place_clear(&set->place[i]);
	free(set->place);
	export_set_free_lines(set);
	source_put(set->source);
	exp_table_unref(set->table);
	free(set);
}

struct set_view *export_set_view_new(struct export_set *set)
{
	struct set_view *view = aligned_alloc(CACHE_LINE, sizeof(*view));

	if (!view)
		return NULL;
	atomic_init(&view->refs, 1);
	view->set = set;
	atomic_fetch_add(&set->refs, 1);
	return view;
}

struct set_view *export_set_view_get(struct exports *ex)
{
	int cpu = sched_getcpu();
	struct stripe *s = &ex->stripe[cpu > 0 ? (unsigned)cpu % STRIPES : 0];

	pthread_mutex_lock(&s->lock);
	struct set_view *view = s->view;
	atomic_fetch_add(&view->refs, 1);
	pthread_mutex_unlock(&s->lock);
	return view;
}

void export_set_view_put(struct set_view *view)
{
	if (!view || atomic_fetch_sub(&view->refs, 1) != 1)
		return;
	export_set_put(view->set);
	free(view);
}

/* The promise is about the directory, so that of one client's options counts for all. */
static bool promises_nfs_only(const struct exp_export *e)
{
	for (unsigned i = 0; i < e->n_clients; i++)
		if (e->clients[i].opts.flags & EXP_NFS_ONLY)
			return true;
	return false;
}

/* Delegations that were given on a promise that is no longer made are recalled. */
static void set_promises(const struct exports *ex, const struct export_set *set)
{
	bool taken_back = false;

	for (unsigned i = 0; i < set->table->n_exports; i++) {
		const bool promised = promises_nfs_only(&set->table->exports[i]);
		struct vfs_export *exp = set->place[i].exp;

		if (!exp)
			continue;
		taken_back |= vfs_export_is_nfs_only(exp) && !promised;
		vfs_export_set_nfs_only(exp, promised);
	}
	if (taken_back)
		vfs_deleg_recall_unguarded(ex->cfg.vfs);
}

static void set_draining(struct exports *ex, const struct export_set *set)
{
	pthread_mutex_lock(&ex->drain_lock);
	for (unsigned i = 0; ex->cfg.drain && i < set->table->n_exports; i++) {
		struct vfs_export *exp = set->place[i].exp;

		if (exp)
			vfs_export_set_draining(
				exp, drain_covers(ex->cfg.drain, set->table->exports[i].path));
	}
	pthread_mutex_unlock(&ex->drain_lock);
}

int export_set_use(struct exports *ex, struct export_set *set)
{
	struct set_view *view[STRIPES] = { NULL };
	int rc = 0;

	set_draining(ex, set);
	if (set->n_nested > 0)
		atomic_store(&ex->any_nested, true);
	for (unsigned i = 0; i < STRIPES && !rc; i++) {
		view[i] = export_set_view_new(set);
		rc = view[i] ? 0 : -ENOMEM;
	}
	for (unsigned i = 0; i < STRIPES; i++) {
		struct stripe *s = &ex->stripe[i];
		struct set_view *old = view[i];

		if (!rc) {
			pthread_mutex_lock(&s->lock);
			old = s->view;
			s->view = view[i];
			pthread_mutex_unlock(&s->lock);
		}
		export_set_view_put(old);
	}
	/* Again, as the drain may have changed after the first time. */
	set_draining(ex, set);
	if (!rc)
		atomic_store(&ex->any_nested, set->n_nested > 0);
	if (!rc)
		set_promises(ex, set);
	/* Raised after the sets are replaced: a reader of the new number sees the new set. 0 is
	 * never used. */
	if (!rc && atomic_fetch_add(&ex->generation, 1) == UINT32_MAX)
		atomic_fetch_add(&ex->generation, 1);
	return rc;
}

int exports_new(const struct exports_config *cfg, struct exports **out)
{
	struct exports *ex = aligned_alloc(CACHE_LINE, sizeof(*ex));
	const struct making first = { .why = cfg->load.strict || cfg->must_be_whole ? TO_RELOAD
										    : TO_START };
	struct export_set *set = NULL;
	int rc;

	if (!ex)
		return -ENOMEM;
	*ex = (struct exports){ .cfg = *cfg };
	pthread_mutex_init(&ex->change_lock, NULL);
	pthread_mutex_init(&ex->drain_lock, NULL);
	for (unsigned i = 0; i < STRIPES; i++)
		pthread_mutex_init(&ex->stripe[i].lock, NULL);
	ex->probe = path_probe_new(cfg->log);
	rc = ex->probe ? 0 : -ENOMEM;
	if (!rc)
		rc = mount_watch_new(
			/* opened before the paths are looked up, so that no mount is missed */
			&ex->watch);
	if (!rc)
		rc = export_set_build(ex, &first, &set);
	if (!rc) {
		rc = export_set_use(ex, set);
		if (!rc)
			export_set_check_names(ex, set);
	}
	export_set_put(set);
	if (rc)
		exports_free(ex);
	else
		*out = ex;
	return rc;
}

void exports_free(struct exports *ex)
{
	mount_watch_free(ex->watch);
	path_probe_free(ex->probe);
	pthread_mutex_destroy(&ex->change_lock);
	pthread_mutex_destroy(&ex->drain_lock);
	for (unsigned i = 0; i < STRIPES; i++) {
		export_set_view_put(ex->stripe[i].view);
		pthread_mutex_destroy(&ex->stripe[i].lock);
	}
	free(ex);
}

struct exports_now export_set_now_of(struct set_view *view)
{
	const struct set_source *source = view->set->source;

	return (struct exports_now){ .table = view->set->table,
				     .place = view->set->place,
				     .matcher = view->set->matcher,
				     .diags = &source->diags,
				     .file_diags =
					     source->files ? &source->files->diags : &source->diags,
				     .edits = source->edits,
				     .view = view };
}

void exports_now_get(struct exports *ex, struct exports_now *now)
{
	*now = export_set_now_of(export_set_view_get(ex));
}

void exports_now_put(struct exports_now *now)
{
	export_set_view_put(now->view);
	*now = (struct exports_now){ .table = NULL };
}

void exports_health(struct exports *ex, struct exports_health *out)
{
	struct set_view *view = export_set_view_get(ex);
	const struct export_set *set = view->set;
	unsigned n[EXPORT_WAITS + 1] = { 0 };

	for (unsigned i = 0; i < set->table->n_exports; i++)
		n[set->place[i].state]++;
	*out = (struct exports_health){ .served = n[EXPORT_SERVED],
					.in_error = set->table->n_refused,
					.failed = n[EXPORT_FAILED],
					.unmounted = n[EXPORT_UNMOUNTED],
					.removed = n[EXPORT_REMOVED],
					.waiting = n[EXPORT_WAITS],
					.reload_refused = atomic_load(&ex->reload_refused) };
	export_set_view_put(view);
}

void exports_outcome_free(struct exports_outcome *out)
{
	exports_now_put(&out->was);
	exports_now_put(&out->is);
	free(out->revoked.holder);
	*out = (struct exports_outcome){ .revoked = { 0 } };
}

void exports_follow_drain(struct exports *ex)
{
	struct set_view *view = export_set_view_get(ex);

	set_draining(ex, view->set);
	export_set_view_put(view);
}

uint32_t exports_generation(struct exports *ex)
{
	return atomic_load_explicit(&ex->generation, memory_order_acquire);
}

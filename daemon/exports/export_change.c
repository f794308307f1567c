/* SPDX-License-Identifier: BSD-2-Clause */
/* Making a set of exports: what the files or a change say, and where their paths lead. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conf/exports.h"
#include "daemon/exports/export_set_private.h"
#include "daemon/exports/path_probe.h"
#include "daemon/logs.h"
#include "daemon/names/names.h"
#include "daemon/workers/fs_queues.h"
#include "vfs/mount_table.h"
#include "vfs/vfs.h"

static void export_set_discard_log(void *ctx, enum rn_level level, const char *fmt, va_list ap)
{
	(void)ctx;
	(void)level;
	(void)fmt;
	(void)ap;
}

static const struct rn_logger silent = { .level = RN_ERROR, .write = export_set_discard_log };

/* True if nothing of the export has changed but perhaps its mount. */
static bool is_followed(const struct making *m, const struct exp_export *e, bool known)
{
	return m->why == TO_FOLLOW ||
	       (m->edit && known && strcmp(e->path, m->edit->change.path) != 0);
}

static int find_place(struct exports *ex, struct export_set *set, const struct making *m,
		      struct export_opener *op, const struct exp_export *e)
{
	const struct exp_export *was = m->old ? exp_table_by_path(m->old->table, e->path) : NULL;
	const bool known = was && was->id == e->id;
	struct export_place *place = &set->place[e->index];

	op->mounts_only = is_followed(m, e, known);
	const int rc = export_place_find(op, e, known ? &m->old->place[was->index] : NULL, place);

	if (place->exp && ex->cfg.fs_queues && m->why != TO_TRY)
		fs_queues_put(ex->cfg.fs_queues,
			      &(struct fs_queue_export){ e->id, e->path, place->dev,
							 vfs_export_is_local(place->exp) });
	/* A change of one export does not fail because of another, which stays as it was. */
	return m->edit && op->mounts_only && rc != -ENOMEM ? 0 : rc;
}

/* Asks whether the file systems of all paths answer: of exports, and behind them of lines in error. NULL: no memory. */
static bool *ask_all(struct path_probe *probe, const struct exp_table *t)
{
	const size_t lines = (size_t)t->n_exports + t->n_refused;
	size_t n = lines;

	for (unsigned i = 0; i < t->n_exports; i++)
		n += t->exports[i].n_clients;
	const char **path = calloc(n + 1, sizeof(*path)), **mp = path + lines;
	bool *answers = calloc(n + 1, sizeof(*answers)), *mounted = answers + lines;

	if (!path || !answers) {
		free(path);
		free(answers);
		return NULL;
	}
	for (unsigned i = 0; i < t->n_exports; i++) {
		const struct exp_export *e = &t->exports[i];

		path[i] = e->path;
		for (unsigned j = 0; j < e->n_clients; j++, mp++)
			if (e->clients[j].opts.mountpoint != e->path)
				*mp = e->clients[j].opts.mountpoint;
	}
	for (unsigned i = 0; i < t->n_refused; i++)
		path[t->n_exports + i] = t->refused[i].path;
	path_probe_ask(probe, path, n, answers);
	for (unsigned i = 0; i < t->n_exports; i++)
		for (unsigned j = 0; j < t->exports[i].n_clients; j++)
			answers[i] &= *mounted++;
	free(path);
	return answers;
}

/* Finds the places of all exports. 0, or the first error. */
static int export_set_find_all(struct exports *ex, struct export_set *set, const struct making *m)
{
	struct vfs_mount_table table;
	struct export_opener op = { .vfs = ex->cfg.vfs,
				    .io_mode = ex->cfg.io_mode,
				    .log = m->why == TO_TRY ? &silent : ex->cfg.log,
				    .shared = ex->cfg.load.shared,
				    .probe = ex->probe,
				    .table = &table };
	int first = vfs_mount_table_load(&table);

	if (first < 0)
		return first;
	bool *answers = ask_all(ex->probe, set->table);

	op.answers = answers;
	op.seen = vfs_fs_seen_new();
	set->place = answers ? calloc(set->table->n_exports + 1, sizeof(set->place[0])) : NULL;
	if (!set->place)
		first = -ENOMEM;
	for (unsigned i = 0; set->place && i < set->table->n_exports; i++) {
		const int rc = find_place(ex, set, m, &op, &set->table->exports[i]);

		if (rc && !first)
			first = rc;
	}
	if (set->place && export_set_index_lines(set, &op) < 0)
		first = -ENOMEM;
	free(answers);
	vfs_fs_seen_free(op.seen);
	vfs_mount_table_free(&table);
	return first;
}

static bool export_set_ask_host(void *arg, const struct exp_addr *addr,
				void (*run)(void *job, bool cancelled), void *job)
{
	struct sockaddr_storage peer;

	exp_addr_to_sockaddr(addr, &peer);
	return askers_ask(arg, ASK_HOSTS, (const struct sockaddr *)&peer, run, job);
}

static int new_matcher(struct exports *ex, struct export_set *set)
{
	const struct exp_match_conf conf = { .later = export_set_ask_host,
					     .later_arg = ex->cfg.askers };
	struct exp_resolver resolver;

	exp_resolver_system(&resolver);
	int rc = exp_matcher_new(set->table, &resolver, &conf, &set->source->matcher);

	set->matcher = set->source->matcher;
	return rc;
}

/* Checks the exports' names with the name service, on a thread that may wait for it. */
struct names_job {
	struct exp_table *table;
	const struct rn_logger *log;
};

static void names_run(void *arg, bool cancelled)
{
	struct names_job *job = arg;
	struct exp_resolver resolver;
	struct cfg_diags diags;

	cfg_diags_init(&diags);
	exp_resolver_system(&resolver);
	if (!cancelled)
		exp_names_check(job->table, &resolver, &diags);
	log_diags(job->log, &diags);
	cfg_diags_free(&diags);
	exp_table_unref(job->table);
	free(job);
}

void export_set_check_names(struct exports *ex, const struct export_set *set)
{
	struct names_job *job = ex->cfg.askers ? malloc(sizeof(*job)) : NULL;

	if (!job)
		return;
	*job = (struct names_job){ exp_table_ref(set->table), ex->cfg.log };
	if (!askers_ask(ex->cfg.askers, ASK_HOSTS, NULL, names_run, job))
		names_run(job, true);
}

/* An empty set, to be filled. NULL: no memory. */
static struct export_set *set_new(void)
{
	struct export_set *set = calloc(1, sizeof(*set));
	struct set_source *source = calloc(1, sizeof(*source));

	if (!set || !source) {
		free(set);
		free(source);
		return NULL;
	}
	atomic_init(&set->refs, 1);
	atomic_init(&source->refs, 1);
	cfg_diags_init(&source->diags);
	set->source = source;
	return set;
}

static int load_files(struct exports *ex, struct export_set *set, const struct making *m)
{
	struct exp_load_opts load = ex->cfg.load;

	load.ask = path_probe_ask;
	load.ask_ctx = ex->probe;
	if (m->draft && m->draft->name) {
		load.file = m->draft->name;
		load.text = m->draft->text;
		load.text_len = m->draft->len;
	}
	return exp_table_load(&load, &set->source->diags, &set->table);
}

static int edit_table(struct exports *ex, struct export_set *set, const struct making *m)
{
	struct set_source *source = m->old->source;
	struct exp_load_opts load = ex->cfg.load;

	load.ask = path_probe_ask;
	load.ask_ctx = ex->probe;
	set->source->edits = source->edits + 1;
	set->source->files = source->files ? source->files : source;
	atomic_fetch_add(&set->source->files->refs, 1);
	if (m->edit->remove)
		return exp_table_remove(m->old->table, &m->edit->change, &set->source->diags,
					&set->table);
	return exp_table_add(m->old->table, &m->edit->change, &load, &set->source->diags,
			     &set->table);
}

static int set_load(struct exports *ex, struct export_set *set, const struct making *m)
{
	const int rc = m->edit ? edit_table(ex, set, m) : load_files(ex, set, m);

	if (m->why != TO_TRY)
		log_diags(ex->cfg.log, &set->source->diags);
	return rc;
}

/* The log has these already. */
static void report_failed(struct export_set *set, const struct making *m)
{
	for (unsigned i = 0; set->place && i < set->table->n_exports; i++) {
		const struct exp_export *e = &set->table->exports[i];
		const struct exp_client *c = &e->clients[0];

		if (m->edit && strcmp(e->path, m->edit->change.path) != 0)
			continue;
		if (set->place[i].state == EXPORT_FAILED && set->place[i].why)
			cfg_diag_add(&set->source->diags,
				     (struct cfg_position){ .file = c->file ? c->file : "temporary",
							    .line = c->line },
				     CFG_ERROR, "export %s: %s", e->path, set->place[i].why);
	}
}

int export_set_build(struct exports *ex, const struct making *m, struct export_set **out)
{
	struct export_set *set = set_new();
	const bool whole = m->why != TO_START;
	int rc = set ? set_load(ex, set, m) : -ENOMEM;

	*out = set;
	if (!rc && whole && set->source->diags.errors)
		rc = -EINVAL;
	if (!rc)
		rc = new_matcher(ex, set);
	if (!rc) {
		rc = export_set_find_all(ex, set, m);
		if (rc != -ENOMEM && whole)
			report_failed(set, m);
		else if (rc != -ENOMEM)
			rc = 0;
	}
	if (rc == -ENOMEM) {
		export_set_put(set);
		*out = NULL;
	}
	return rc;
}

/* A set with the same exports for the same clients, whose places are to be found. NULL: no memory. */
static struct export_set *export_set_like(const struct export_set *old)
{
	struct export_set *set = calloc(1, sizeof(*set));

	if (!set)
		return NULL;
	atomic_init(&set->refs, 1);
	set->table = exp_table_ref(old->table);
	set->matcher = old->matcher;
	set->source = old->source;
	atomic_fetch_add(&set->source->refs, 1);
	return set;
}

/* Changes of the exports in force: reloads, temporary changes, mounts that come and go; and what clients lose by them. */

/* Exports that clients lose when a new set replaces an old one: see struct vfs_exports_lost. */
struct loss {
	const struct export_set *old;
	struct export_set *now;
};

/* NULL: the export is gone, or its path leads to another directory. */
static const struct exp_export *what_is_left(const struct loss *l, const struct exp_export *was)
{
	const struct exp_export *is = exp_table_by_id(l->now->table, was->id);

	if (!is)
		return NULL;
	return export_place_same(&l->old->place[was->index], &l->now->place[is->index]) ? is : NULL;
}

static bool is_absent(const struct exp_opts *opts)
{
	return opts->flags & EXP_REFER;
}

/* True if both have the same client lines, and none is now sent to other servers. Other options may differ. A netgroup may
 * have changed, so a line with one never compares equal. */
static bool same_clients(const struct exp_export *a, const struct exp_export *b)
{
	if (a->n_clients != b->n_clients)
		return false;
	for (unsigned i = 0; i < a->n_clients; i++)
		if (a->clients[i].kind == EXP_CLIENT_NETGROUP ||
		    strcmp(a->clients[i].spec, b->clients[i].spec) != 0 ||
		    is_absent(&a->clients[i].opts) != is_absent(&b->clients[i].opts))
			return false;
	return true;
}

static bool export_change_is_lost(void *ctx, uint32_t id, const struct sockaddr *peer)
{
	const struct loss *l = ctx;
	const struct exp_export *was = exp_table_by_id(l->old->table, id), *is;
	const struct exp_opts *opts;
	int rc;

	if (!was || !l->old->place[was->index].exp)
		return false;
	is = what_is_left(l, was);
	if (!is)
		return true;
	if (exp_match_wait(l->old->matcher, was, peer, &opts) != 0)
		return false;
	rc = exp_match_wait(l->now->matcher, is, peer, &opts);
	return rc == -EACCES || (rc == 0 && is_absent(opts));
}

/* Collects the exports that some client may have lost; returns their number. */
static unsigned find_lost(const struct loss *l, uint32_t *ids)
{
	unsigned n = 0;

	for (unsigned i = 0; i < l->old->table->n_exports; i++) {
		const struct exp_export *was = &l->old->table->exports[i];
		const struct exp_export *is = what_is_left(l, was);

		if (l->old->place[i].exp && !(is && same_clients(was, is)))
			ids[n++] = was->id;
	}
	return n;
}

/* Closes descriptors below exports that are gone or lead to another directory, so that they do not
 * pin the file system. */
static void forget_gone(struct exports *ex, const struct export_set *old,
			const struct export_set *now)
{
	for (unsigned i = 0; i < old->table->n_exports; i++) {
		const struct exp_export *was = &old->table->exports[i];
		const struct exp_export *is = exp_table_by_id(now->table, was->id);

		if (old->place[i].exp && (!is || now->place[is->index].exp != old->place[i].exp))
			vfs_forget_export(ex->cfg.vfs, was->id);
	}
}

/* Drops submounts that are no longer where they were. */
static void check_submounts(const struct exports *ex)
{
	struct vfs_mount_table t;

	if (vfs_mount_table_load(&t) != 0)
		return;
	vfs_mounts_changed(ex->cfg.vfs, &t);
	vfs_mount_table_free(&t);
}

/* Puts the new set in force, finds out what clients lose by it, counts that in out unless that is NULL, and has the hook end the
 * clients' state. With TO_TRY it only finds out and counts. */
static int set_follow(struct exports *ex, const struct loss *loss, enum purpose why,
		      struct exports_outcome *out)
{
	struct vfs_exports_lost lost = { .lost = export_change_is_lost,
					 .ctx = (void *)(uintptr_t)loss };
	const size_t most = loss->old->table->n_exports + 1;
	uint32_t *ids = calloc(2 * most, sizeof(*ids));
	int rc = ids ? 0 : -ENOMEM;

	if (!rc && why != TO_TRY)
		rc = export_set_use(ex, loss->now);
	if (!rc) {
		lost.ids = ids;
		lost.some = ids + most;
		lost.n = find_lost(loss, ids);
		if (out)
			ex->hooks.count(ex->hooks.ctx, &lost, &out->revoked);
	}
	if (!rc && why != TO_TRY) {
		ex->hooks.revoke(ex->hooks.ctx, &lost);
		forget_gone(ex, loss->old, loss->now);
	}
	free(ids);
	return rc;
}

/* Takes references of both views. */
static int export_change_report(struct exports *ex, struct export_set *now,
				struct exports_outcome *out)
{
	struct set_view *view = export_set_view_new(now);

	if (!view)
		return -ENOMEM;
	out->is = export_set_now_of(view);
	exports_now_get(ex, &out->was);
	return 0;
}

static void log_edits(const struct exports *ex, enum purpose why, const struct export_set *old)
{
	if (why == TO_RELOAD && old->source->edits)
		rn_notice(ex->cfg.log, "%u temporary changes of the exports end with this reload",
			  old->source->edits);
}

/* Under change_lock. m->old is set here. */
static int export_change_apply(struct exports *ex, struct making *m, struct exports_outcome *out)
{
	struct set_view *old = export_set_view_get(ex);
	struct export_set *now = NULL;

	m->old = old->set;
	int rc = export_set_build(ex, m, &now);

	if (now && out && export_change_report(ex, now, out) != 0)
		rc = -ENOMEM;
	if (!rc) {
		const struct loss loss = { .old = old->set, .now = now };

		rc = set_follow(ex, &loss, m->why, out);
	}
	if (!rc && m->why != TO_TRY) {
		log_edits(ex, m->edit ? TO_FOLLOW : m->why, old->set);
		check_submounts(ex);
		export_set_check_names(ex, now);
	}
	export_set_put(now);
	export_set_view_put(old);
	return rc;
}

static int export_change_apply_locked(struct exports *ex, struct making *m,
				      struct exports_outcome *out)
{
	if (out)
		*out = (struct exports_outcome){ .revoked = { 0 } };
	pthread_mutex_lock(&ex->change_lock);
	const int rc = export_change_apply(ex, m, out);

	pthread_mutex_unlock(&ex->change_lock);
	return rc;
}

int exports_reload(struct exports *ex, struct exports_outcome *out)
{
	struct making m = { .why = TO_RELOAD };
	const int rc = export_change_apply_locked(ex, &m, out);

	atomic_store(&ex->reload_refused, rc != 0);
	return rc;
}

int exports_try(struct exports *ex, const char *name, const char *text, size_t len,
		struct exports_outcome *out)
{
	const struct draft_text draft = { name, text, len };
	struct making m = { .why = TO_TRY, .draft = &draft };

	return export_change_apply_locked(ex, &m, out);
}

int exports_edit(struct exports *ex, const struct exports_edit *edit, bool only_try,
		 struct exports_outcome *out)
{
	struct making m = { .why = only_try ? TO_TRY : TO_RELOAD, .edit = edit };

	return export_change_apply_locked(ex, &m, out);
}

static bool export_change_differs(const struct export_set *old, const struct export_set *now)
{
	for (unsigned i = 0; i < now->table->n_exports; i++)
		if (!export_place_unchanged(&now->table->exports[i], &old->place[i],
					    &now->place[i]))
			return true;
	return false;
}

/* Called when the mount table has changed. */
static int follow_mounts(struct exports *ex, struct export_set *old)
{
	const struct making m = { .why = TO_FOLLOW, .old = old };
	struct export_set *now = export_set_like(old);
	int rc = now ? export_set_find_all(ex, now, &m) : -ENOMEM;
	const struct loss loss = { .old = old, .now = now };

	if (!now || !now->place)
		rc = rc ? rc : -ENOMEM;
	else if (rc != -ENOMEM)
		rc = export_change_differs(old, now) ? set_follow(ex, &loss, TO_FOLLOW, NULL) : 0;
	export_set_put(now);
	return rc;
}

static bool mounts_changed(void *ctx)
{
	struct exports *ex = ctx;
	struct set_view *old;
	int rc;

	pthread_mutex_lock(&ex->change_lock);
	old = export_set_view_get(ex);
	rc = follow_mounts(ex, old->set);
	check_submounts(ex);
	export_set_view_put(old);
	pthread_mutex_unlock(&ex->change_lock);
	if (rc)
		rn_err(ex->cfg.log, "cannot look for mounted file systems: %s", strerror(-rc));
	/* Looks again after a file system did not answer: the change may be its own. */
	return rc == 0 && !path_probe_waits(ex->probe);
}

/* True if a directory that is served was renamed or removed, or one is there again. Paths are looked at only if theirs was. */
static bool roots_changed(void *ctx)
{
	struct exports *ex = ctx;
	struct set_view *view = export_set_view_get(ex);
	const struct export_set *set = view->set;
	bool changed = false;

	for (unsigned i = 0; i < set->table->n_exports && !changed; i++) {
		const struct export_place *p = &set->place[i];
		const char *path = set->table->exports[i].path;

		changed = export_place_renamed(p) ||
			  (p->state == EXPORT_REMOVED && !p->why &&
			   path_probe_answers(ex->probe, path) && access(path, F_OK) == 0);
	}
	export_set_view_put(view);
	return changed;
}

int exports_watch(struct exports *ex, const struct exports_hooks *hooks)
{
	ex->hooks = *hooks;
	return mount_watch_run(ex->watch,
			       &(struct mount_watch_calls){ mounts_changed, roots_changed, ex });
}

void exports_unwatch(struct exports *ex)
{
	mount_watch_free(ex->watch);
	ex->watch = NULL;
}

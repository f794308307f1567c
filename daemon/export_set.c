/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/export_set.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "conf/exports_addr.h"
#include "conf/exports_match.h"
#include "conf/exports_names.h"
#include "daemon/askers.h"
#include "daemon/drain.h"
#include "daemon/export_place.h"
#include "daemon/lanes.h"
#include "daemon/log_sink.h"
#include "daemon/mount_watch.h"
#include "daemon/path_probe.h"
#include "daemon/workers.h"
#include "vfs/deleg.h"
#include "vfs/mount_table.h"
#include "vfs/vfs.h"

#define STRIPES 16u /* locks; processors with the same remainder share one */
#define CACHE_LINE 64u

/* Parts of a set that do not depend on mounts: sets that differ in places only share it. */
struct set_source {
	_Atomic unsigned refs;
	struct exp_matcher *matcher;
	struct cfg_diags diags; /* messages about the files or the change that the table is from */
	struct set_source *files; /* with the messages about the files; NULL: it is itself */
	unsigned edits;		  /* temporary changes of what the files say */
};

struct export_set {
	struct exp_table *table;
	struct set_source *source;
	struct exp_matcher *matcher; /* the source's */
	struct export_place *place;  /* indexed by exp_export.index */
	_Atomic unsigned refs;
};

/* The set in force as requests on some of the processors see it: every call asks for its export, so
 * they share neither a lock nor a counter with the others. Holds a reference of the set. */
struct set_view {
	_Alignas(CACHE_LINE) _Atomic unsigned refs;
	struct export_set *set;
};

/* Lock order: lock is the innermost; nothing is called under it. */
struct stripe {
	_Alignas(CACHE_LINE) pthread_mutex_t lock; /* guards view */
	struct set_view *view;
};

struct exports {
	struct exports_config cfg;
	_Atomic uint32_t generation;
	pthread_mutex_t change_lock; /* outermost: one change of sets at a time */
	pthread_mutex_t drain_lock;  /* a leaf: exports follow the drain */
	struct mount_watch *watch;
	struct path_probe *probe;
	struct exports_hooks hooks;
	struct stripe stripe[STRIPES];
};

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

static void set_put(struct export_set *set)
{
	if (!set || atomic_fetch_sub(&set->refs, 1) != 1)
		return;
	for (unsigned i = 0; set->place && i < set->table->n_exports; i++)
		export_place_clear(&set->place[i]);
	free(set->place);
	source_put(set->source);
	exp_table_unref(set->table);
	free(set);
}

static struct set_view *view_new(struct export_set *set)
{
	struct set_view *view = aligned_alloc(CACHE_LINE, sizeof(*view));

	if (!view)
		return NULL;
	atomic_init(&view->refs, 1);
	view->set = set;
	atomic_fetch_add(&set->refs, 1);
	return view;
}

static struct set_view *view_get(struct exports *ex)
{
	int cpu = sched_getcpu();
	struct stripe *s = &ex->stripe[cpu > 0 ? (unsigned)cpu % STRIPES : 0];

	pthread_mutex_lock(&s->lock);
	struct set_view *view = s->view;
	atomic_fetch_add(&view->refs, 1);
	pthread_mutex_unlock(&s->lock);
	return view;
}

static void view_put(struct set_view *view)
{
	if (!view || atomic_fetch_sub(&view->refs, 1) != 1)
		return;
	set_put(view->set);
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
static void set_promises(struct vfs *vfs, const struct export_set *set)
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
		vfs_deleg_recall_unguarded(vfs);
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

/* Puts a set in force: all or nothing. 0 or -ENOMEM. */
static int set_use(struct exports *ex, struct export_set *set)
{
	struct set_view *view[STRIPES] = { NULL };
	int rc = 0;

	set_draining(ex, set);
	for (unsigned i = 0; i < STRIPES && !rc; i++) {
		view[i] = view_new(set);
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
		view_put(old);
	}
	/* Again, as the drain may have changed after the first time. */
	set_draining(ex, set);
	if (!rc)
		set_promises(ex->cfg.vfs, set);
	/* Raised after the sets are replaced: a reader of the new number sees the new set. 0 is
	 * never used. */
	if (!rc && atomic_fetch_add(&ex->generation, 1) == UINT32_MAX)
		atomic_fetch_add(&ex->generation, 1);
	return rc;
}

static void discard(void *ctx, enum rn_level level, const char *fmt, va_list ap)
{
	(void)ctx;
	(void)level;
	(void)fmt;
	(void)ap;
}

static const struct rn_logger silent = { .level = RN_ERROR, .write = discard };

/* Why a set is made. */
enum purpose {
	TO_START,
	TO_RELOAD, /* any error fails it; without this, exports in error are left out */
	TO_TRY,	   /* the same, and nothing is logged or put in force */
	TO_FOLLOW, /* only the mount table has changed */
};

/* A text to be read in the place of the exports file. name NULL: there is none. */
struct draft_text {
	const char *name, *text;
	size_t len;
};

/* A set to be made. */
struct making {
	enum purpose why;
	const struct export_set *old;	 /* set in force, or NULL */
	const struct draft_text *draft;	 /* or NULL */
	const struct exports_edit *edit; /* change of old; NULL: the files are read */
};

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

	if (place->exp && ex->cfg.lanes && m->why != TO_TRY)
		lanes_put(ex->cfg.lanes, e->id, place->dev, vfs_export_is_local(place->exp));
	/* A change of one export does not fail because of another, which stays as it was. */
	return m->edit && op->mounts_only && rc != -ENOMEM ? 0 : rc;
}

/* Finds the places of all exports. */
static int set_find_all(struct exports *ex, struct export_set *set, const struct making *m)
{
	struct vfs_mount_table table;
	struct export_opener op = { .vfs = ex->cfg.vfs,
				    .io_mode = ex->cfg.io_mode,
				    .log = m->why == TO_TRY ? &silent : ex->cfg.log,
				    .probe = ex->probe,
				    .table = &table };
	int first = vfs_mount_table_load(&table);

	if (first < 0)
		return first;
	set->place = calloc(set->table->n_exports + 1, sizeof(set->place[0]));
	if (!set->place)
		first = -ENOMEM;
	for (unsigned i = 0; set->place && i < set->table->n_exports; i++) {
		const int rc = find_place(ex, set, m, &op, &set->table->exports[i]);

		if (rc && !first)
			first = rc;
	}
	vfs_mount_table_free(&table);
	return first;
}

static bool ask_later(void *arg, const struct exp_addr *addr,
		      void (*run)(void *job, bool cancelled), void *job)
{
	struct sockaddr_storage peer;

	exp_addr_to_sockaddr(addr, &peer);
	return askers_ask(arg, ASK_HOSTS, (const struct sockaddr *)&peer, run, job);
}

static int new_matcher(struct exports *ex, struct export_set *set)
{
	const struct exp_match_conf conf = { .later = ask_later, .later_arg = ex->cfg.askers };
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

static void check_names_later(struct exports *ex, const struct export_set *set)
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

	load.answers = path_probe_answers;
	load.answers_ctx = ex->probe;
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

	load.answers = path_probe_answers;
	load.answers_ctx = ex->probe;
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
				     (struct cfg_place){ .file = c->file ? c->file : "temporary",
							 .line = c->line },
				     CFG_ERROR, "export %s: %s", e->path, set->place[i].why);
	}
}

/* Builds a set. *out is there after errors, too, but for -ENOMEM. */
static int set_build(struct exports *ex, const struct making *m, struct export_set **out)
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
		rc = set_find_all(ex, set, m);
		if (rc != -ENOMEM && whole)
			report_failed(set, m);
		else if (rc != -ENOMEM)
			rc = 0;
	}
	if (rc == -ENOMEM) {
		set_put(set);
		*out = NULL;
	}
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
		rc = set_build(ex, &first, &set);
	if (!rc) {
		rc = set_use(ex, set);
		if (!rc)
			check_names_later(ex, set);
	}
	set_put(set);
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
		view_put(ex->stripe[i].view);
		pthread_mutex_destroy(&ex->stripe[i].lock);
	}
	free(ex);
}

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

/* True if both have the same client lines, whatever their options. A netgroup may have changed, so
 * a line with one never compares equal. */
static bool same_clients(const struct exp_export *a, const struct exp_export *b)
{
	if (a->n_clients != b->n_clients)
		return false;
	for (unsigned i = 0; i < a->n_clients; i++)
		if (a->clients[i].kind == EXP_CLIENT_NETGROUP ||
		    strcmp(a->clients[i].spec, b->clients[i].spec) != 0)
			return false;
	return true;
}

static bool is_lost(void *ctx, uint32_t id, const struct sockaddr *peer)
{
	const struct loss *l = ctx;
	const struct exp_export *was = exp_table_by_id(l->old->table, id), *is;
	const struct exp_opts *opts;

	if (!was || !l->old->place[was->index].exp)
		return false;
	is = what_is_left(l, was);
	if (!is)
		return true;
	return exp_match_wait(l->old->matcher, was, peer, &opts) == 0 &&
	       exp_match_wait(l->now->matcher, is, peer, &opts) == -EACCES;
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

/* Finds out what clients lose when now replaces old, puts it in force unless why is TO_TRY, and counts it
 * in out unless that is NULL. */
static int set_follow(struct exports *ex, const struct loss *loss, enum purpose why,
		      struct exports_outcome *out)
{
	struct vfs_exports_lost lost = { .lost = is_lost, .ctx = (void *)(uintptr_t)loss };
	uint32_t *ids = calloc(loss->old->table->n_exports + 1, sizeof(*ids));
	int rc = ids ? 0 : -ENOMEM;

	if (!rc && why != TO_TRY)
		rc = set_use(ex, loss->now);
	if (!rc) {
		lost.ids = ids;
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

static struct exports_now now_of(struct set_view *view)
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
	*now = now_of(view_get(ex));
}

void exports_now_put(struct exports_now *now)
{
	view_put(now->view);
	*now = (struct exports_now){ .table = NULL };
}

void exports_outcome_free(struct exports_outcome *out)
{
	exports_now_put(&out->was);
	exports_now_put(&out->is);
	free(out->revoked.holder);
	*out = (struct exports_outcome){ .revoked = { 0 } };
}

/* Takes references of both views. */
static int tell(struct exports *ex, struct export_set *now, struct exports_outcome *out)
{
	struct set_view *view = view_new(now);

	if (!view)
		return -ENOMEM;
	out->is = now_of(view);
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
static int change(struct exports *ex, struct making *m, struct exports_outcome *out)
{
	struct set_view *old = view_get(ex);
	struct export_set *now = NULL;

	m->old = old->set;
	int rc = set_build(ex, m, &now);

	if (now && out && tell(ex, now, out) != 0)
		rc = -ENOMEM;
	if (!rc) {
		const struct loss loss = { .old = old->set, .now = now };

		rc = set_follow(ex, &loss, m->why, out);
	}
	if (!rc && m->why != TO_TRY) {
		log_edits(ex, m->edit ? TO_FOLLOW : m->why, old->set);
		check_submounts(ex);
		check_names_later(ex, now);
	}
	set_put(now);
	view_put(old);
	return rc;
}

static int change_locked(struct exports *ex, struct making *m, struct exports_outcome *out)
{
	if (out)
		*out = (struct exports_outcome){ .revoked = { 0 } };
	pthread_mutex_lock(&ex->change_lock);
	const int rc = change(ex, m, out);

	pthread_mutex_unlock(&ex->change_lock);
	return rc;
}

int exports_reload(struct exports *ex, struct exports_outcome *out)
{
	struct making m = { .why = TO_RELOAD };

	return change_locked(ex, &m, out);
}

int exports_try(struct exports *ex, const char *name, const char *text, size_t len,
		struct exports_outcome *out)
{
	const struct draft_text draft = { name, text, len };
	struct making m = { .why = TO_TRY, .draft = &draft };

	return change_locked(ex, &m, out);
}

int exports_edit(struct exports *ex, const struct exports_edit *edit, bool only_try,
		 struct exports_outcome *out)
{
	struct making m = { .why = only_try ? TO_TRY : TO_RELOAD, .edit = edit };

	return change_locked(ex, &m, out);
}

void exports_follow_drain(struct exports *ex)
{
	struct set_view *view = view_get(ex);

	set_draining(ex, view->set);
	view_put(view);
}

/* A set with the same exports for the same clients, at their places of now. */
static struct export_set *set_like(const struct export_set *old)
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

static bool differs(const struct export_set *old, const struct export_set *now)
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
	struct export_set *now = set_like(old);
	int rc = now ? set_find_all(ex, now, &m) : -ENOMEM;
	const struct loss loss = { .old = old, .now = now };

	if (!now || !now->place)
		rc = rc ? rc : -ENOMEM;
	else if (rc != -ENOMEM)
		rc = differs(old, now) ? set_follow(ex, &loss, TO_FOLLOW, NULL) : 0;
	set_put(now);
	return rc;
}

static bool mounts_changed(void *ctx)
{
	struct exports *ex = ctx;
	struct set_view *old;
	int rc;

	pthread_mutex_lock(&ex->change_lock);
	old = view_get(ex);
	rc = follow_mounts(ex, old->set);
	check_submounts(ex);
	view_put(old);
	pthread_mutex_unlock(&ex->change_lock);
	if (rc)
		rn_err(ex->cfg.log, "cannot look for mounted file systems: %s", strerror(-rc));
	/* Looks again after a file system did not answer: the change may be its own. */
	return rc == 0 && !path_probe_waits(ex->probe);
}

int exports_watch(struct exports *ex, const struct exports_hooks *hooks)
{
	ex->hooks = *hooks;
	return mount_watch_run(ex->watch, mounts_changed, ex);
}

void exports_unwatch(struct exports *ex)
{
	mount_watch_free(ex->watch);
	ex->watch = NULL;
}

static enum vfs_sec sec_of(uint32_t flavor)
{
	switch (flavor) {
	case EXP_AUTH_SYS:
		return VFS_SEC_SYS;
	case EXP_AUTH_KRB5:
		return VFS_SEC_KRB5;
	case EXP_AUTH_KRB5I:
		return VFS_SEC_KRB5I;
	case EXP_AUTH_KRB5P:
		return VFS_SEC_KRB5P;
	default:
		return VFS_SEC_NONE;
	}
}

void exports_access(const struct exp_opts *opts, bool mount_read_only, struct vfs_access *a)
{
	const uint32_t f = opts->flags;

	*a = (struct vfs_access){ .anonuid = opts->anonuid, .anongid = opts->anongid };
	for (uint32_t i = 0; i < opts->n_flavors; i++) {
		const uint32_t own = opts->flavors[i].flags;

		vfs_access_accept(a, sec_of(opts->flavors[i].flavor),
				  (own & EXP_RW && !mount_read_only ? 0 : VFS_RO) |
					  (own & EXP_ROOT_SQUASH ? VFS_ROOT_SQUASH : 0) |
					  (own & EXP_ALL_SQUASH ? VFS_ALL_SQUASH : 0));
	}
	vfs_access_use(a, a->secs[0].sec);
	a->flags |= (f & EXP_ASYNC ? VFS_ASYNC : 0) | (f & EXP_INSECURE ? 0 : VFS_SECURE) |
		    (opts->flags & EXP_NO_AUTH_NLM ? VFS_NO_AUTH_NLM : 0) |
		    (opts->flags & EXP_SECURITY_LABEL ? VFS_SECURITY_LABEL : 0) |
		    (f & (EXP_CROSSMNT | EXP_NOHIDE) ? VFS_CROSSMNT : 0) |
		    (opts->flags & EXP_NO_RDIRPLUS ? VFS_NO_READDIRPLUS : 0) |
		    (opts->flags & EXP_NO_ACL ? VFS_NO_ACL : 0) |
		    (f & EXP_NO_PLAIN ? VFS_NO_PLAIN : 0) | (f & EXP_NO_TLS ? VFS_NO_TLS : 0) |
		    (f & EXP_NO_MTLS ? VFS_NO_MTLS : 0);
}

/* Access of peer to export e of set; takes a reference on success. -EALREADY: the export waits for
 * a mount that is missing. */
static int admit(const struct exports *ex, const struct export_set *set, const struct exp_export *e,
		 const struct sockaddr *peer, struct vfs_export **exp, struct vfs_access *access)
{
	const struct export_place *place = &set->place[e->index];
	const struct exp_opts *opts;
	int rc = exp_match(set->matcher, e, peer, &opts);

	if (rc)
		return rc;
	rc = export_place_usable(e, place, opts);
	if (rc)
		return rc == -EAGAIN ? -EALREADY : rc;
	rc = worker_enters(ex->cfg.lanes, e->id);
	if (rc)
		return rc;
	exports_access(opts, place->read_only, access);
	vfs_export_ref(place->exp);
	*exp = place->exp;
	return 0;
}

int exports_admit(struct exports *ex, const struct sockaddr *peer)
{
	struct set_view *view = view_get(ex);
	const struct export_set *set = view->set;
	const struct exp_opts *opts;
	int rc = -EACCES;

	for (unsigned i = 0; rc && i < set->table->n_exports; i++) {
		const int this = exp_match(set->matcher, &set->table->exports[i], peer, &opts);

		if (this == 0 || this == -EAGAIN)
			rc = this;
	}
	view_put(view);
	return rc;
}

uint32_t exports_generation(struct exports *ex)
{
	return atomic_load_explicit(&ex->generation, memory_order_acquire);
}

static int view_by_id(void *ctx, uint32_t id, const struct sockaddr *peer, struct vfs_export **exp,
		      struct vfs_access *access)
{
	struct set_view *view = view_get(ctx);
	const struct exp_export *e = exp_table_by_id(view->set->table, id);
	int rc = e ? admit(ctx, view->set, e, peer, exp, access) : -ESTALE;

	view_put(view);
	return rc == -EALREADY ? -ETIMEDOUT : rc;
}

/* The length of export path e as a prefix of path, whole components only; 0 if it is none. */
static size_t prefix_length(const char *e, const char *path)
{
	size_t n = strlen(e);

	if (n == 1)
		return 1; /* "/" */
	if (strncmp(e, path, n) != 0 || (path[n] != '/' && path[n] != '\0'))
		return 0;
	return n;
}

const struct exp_export *exports_find(const struct exp_table *table, const char *path,
				      size_t *length)
{
	const struct exp_export *best = NULL;

	*length = 0;
	for (unsigned i = 0; path[0] == '/' && i < table->n_exports; i++) {
		size_t n = prefix_length(table->exports[i].path, path);

		if (n > *length) {
			*length = n;
			best = &table->exports[i];
		}
	}
	return best;
}

static int view_by_path(void *ctx, const char *path, const struct sockaddr *peer,
			struct vfs_export **exp, struct vfs_access *access, const char **rest)
{
	struct set_view *view = view_get(ctx);
	size_t longest;
	const struct exp_export *best = exports_find(view->set->table, path, &longest);
	int rc = -ENOENT;

	if (best) {
		*rest = path + longest + strspn(path + longest, "/");
		rc = admit(ctx, view->set, best, peer, exp, access);
		if (rc == -ESTALE || rc == -EALREADY)
			rc = -ENOENT;
	}
	view_put(view);
	return rc;
}

/* A line without a file was added by hand. */
static void say_line(const struct exp_client *c, char *text, size_t size)
{
	if (c->file)
		snprintf(text, size, "%s:%u", c->file, c->line);
	else
		snprintf(text, size, "temporary");
}

/* The line whose options the peer has. */
static const struct exp_client *line_of(const struct exp_export *e, const struct exp_opts *opts)
{
	const struct exp_client *c = e->clients;

	while (&c->opts != opts)
		c++;
	return c;
}

static void view_why(void *ctx, const char *path, const struct sockaddr *peer, char *text,
		     size_t size)
{
	struct set_view *view = view_get(ctx);
	size_t longest;
	const struct exp_export *e = exports_find(view->set->table, path, &longest);
	const struct exp_opts *opts = NULL;
	const int rc = e ? exp_match(view->set->matcher, e, peer, &opts) : -ENOENT;
	const struct exp_client *c = e && rc == 0 ? line_of(e, opts) : e ? e->clients : NULL;
	char line[512] = "";

	if (c)
		say_line(c, line, sizeof(line));
	if (!e)
		snprintf(text, size, "no export leads there");
	else if (rc == 0)
		snprintf(text, size, "export %s, the line for %s (%s)%s", e->path, c->spec, line,
			 view->set->place[e->index].exp ? "" : ", which is not served now");
	else
		snprintf(text, size, "export %s (%s), %s", e->path, line,
			 rc == -EAGAIN ? "whose names are not known yet"
				       : "which has no line for this host");
	view_put(view);
}

struct list_call {
	struct export_set *set;
	bool (*each)(void *arg, const char *path, const char *const *groups, unsigned ngroups);
	void *arg;
};

static bool list_one(const struct list_call *c, const struct exp_export *e)
{
	const char **groups = calloc(e->n_clients, sizeof(*groups));
	bool more = true;

	for (unsigned i = 0; groups && i < e->n_clients; i++)
		groups[i] = e->clients[i].spec;
	if (groups)
		more = c->each(c->arg, e->path, groups, e->n_clients);
	free(groups);
	return more;
}

static void view_list(void *ctx,
		      bool (*each)(void *arg, const char *path, const char *const *groups,
				   unsigned ngroups),
		      void *arg)
{
	struct set_view *view = view_get(ctx);
	struct list_call call = { .set = view->set, .each = each, .arg = arg };

	for (unsigned i = 0; i < call.set->table->n_exports; i++)
		if (call.set->place[i].exp && !list_one(&call, &call.set->table->exports[i]))
			break;
	view_put(view);
}

static void view_each(void *ctx, bool (*each)(void *arg, struct vfs_export *exp), void *arg)
{
	struct set_view *view = view_get(ctx);
	struct export_set *set = view->set;

	for (unsigned i = 0; i < set->table->n_exports; i++)
		if (set->place[i].exp && !each(arg, set->place[i].exp))
			break;
	view_put(view);
}

struct vfs_exports exports_view(struct exports *ex)
{
	return (struct vfs_exports){ .by_id = view_by_id,
				     .by_path = view_by_path,
				     .why = view_why,
				     .list = view_list,
				     .each = view_each,
				     .ctx = ex };
}

static void log_one(const struct rn_logger *log, const struct exp_export *e)
{
	char who[512];
	size_t n = 0;

	for (unsigned i = 0; i < e->n_clients && n < sizeof(who); i++)
		n += (size_t)snprintf(who + n, sizeof(who) - n, " %s(%s)", e->clients[i].spec,
				      e->clients[i].opts.flags & EXP_RW ? "rw" : "ro");
	rn_notice(log, "serving %s to%s", e->path, who);
}

void exports_log(struct exports *ex)
{
	struct set_view *view = view_get(ex);
	struct export_set *set = view->set;
	unsigned served = 0;

	for (unsigned i = 0; i < set->table->n_exports; i++) {
		if (!set->place[i].exp)
			continue;
		log_one(ex->cfg.log, &set->table->exports[i]);
		served++;
	}
	if (!served)
		rn_warn(ex->cfg.log, "no directory is exported: name one in %s",
			ex->cfg.load.file ? ex->cfg.load.file : "an exports file");
	view_put(view);
}

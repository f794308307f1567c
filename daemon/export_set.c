/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/export_set.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "conf/exports.h"
#include "daemon/daemon_drain.h"
#include "daemon/export_set_private.h"
#include "daemon/mount_watch.h"
#include "daemon/path_probe.h"
#include "vfs/deleg.h"
#include "vfs/vfs.h"

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
		set_promises(ex->cfg.vfs, set);
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

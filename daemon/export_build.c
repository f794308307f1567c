/* SPDX-License-Identifier: BSD-2-Clause */
/* Making a set of exports: what the files or a change say, and where their paths lead. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/exports.h"
#include "daemon/askers.h"
#include "daemon/export_set_private.h"
#include "daemon/lanes.h"
#include "daemon/log_sink.h"
#include "daemon/path_probe.h"
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

	if (place->exp && ex->cfg.lanes && m->why != TO_TRY)
		lanes_put(ex->cfg.lanes, &(struct lanes_export){ e->id, e->path, place->dev,
								 vfs_export_is_local(place->exp) });
	/* A change of one export does not fail because of another, which stays as it was. */
	return m->edit && op->mounts_only && rc != -ENOMEM ? 0 : rc;
}

int export_set_find_all(struct exports *ex, struct export_set *set, const struct making *m)
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
	if (set->place && export_set_index_lines(set, &op) < 0)
		first = -ENOMEM;
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

struct export_set *export_set_like(const struct export_set *old)
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

/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/daemon_check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "conf/exports.h"
#include "daemon/cluster_part.h"
#include "daemon/exports/export_set.h"
#include "daemon/logs.h"
#include "daemon/process.h"
#include "daemon/state_dir.h"
#include "lib/budget.h"
#include "lib/payload.h"
#include "vfs/vfs.h"

#define CHECK_MEMORY (64u << 20)
#define CHECK_FDS 64u

static void check_discard_log(void *ctx, enum rn_level level, const char *fmt, va_list ap)
{
	(void)ctx;
	(void)level;
	(void)fmt;
	(void)ap;
}

static bool check_count_export(void *arg, struct vfs_export *exp)
{
	(void)exp;
	++*(unsigned *)arg;
	return true;
}

/* Opens the exports as a start does; with whole as a reload does, which refuses any error. *served:
 * number of exports opened. */
static int check_try_exports(const struct cfg_settings *settings, struct vfs *vfs, bool whole,
			     const struct rn_logger *log, unsigned *served)
{
	const struct exports_config cfg = {
		.vfs = vfs,
		.load = { .file = settings->server.exports_file,
			  .dir = settings->server.exports_dir,
			  .strict = settings->server.strict_exports,
			  .check_paths = true,
			  .shared = *settings->cluster.name },
		.must_be_whole = whole,
		.log = log,
	};
	struct exports *ex;
	int rc = exports_new(&cfg, &ex);

	*served = 0;
	if (rc)
		return rc;
	const struct vfs_exports view = exports_view(ex);

	view.each(view.ctx, check_count_export, served);
	exports_free(ex);
	return 0;
}

/* Warns of names that the name service does not know. The tables have been read before, so no
 * message comes twice. */
static void check_names(const struct cfg_settings *settings, const struct rn_logger *log)
{
	const struct exp_load_opts load = { .file = settings->server.exports_file,
					    .dir = settings->server.exports_dir };
	struct exp_table *table = NULL;
	struct exp_resolver resolver;
	struct cfg_diags diags;

	cfg_diags_init(&diags);
	int rc = exp_table_load(&load, &diags, &table);

	cfg_diags_free(&diags);
	cfg_diags_init(&diags);
	exp_resolver_system(&resolver);
	if (!rc)
		exp_names_check(table, &resolver, &diags);
	if (table)
		exp_table_unref(table);
	log_diags(log, &diags);
	cfg_diags_free(&diags);
}

static int check_exports(const struct cfg_settings *settings, struct vfs *vfs,
			 const struct rn_logger *log)
{
	const struct rn_logger silent = { .level = RN_ERROR, .write = check_discard_log };
	unsigned served;
	int reload = check_try_exports(settings, vfs, true, log, &served), start = 0;

	if (!reload) {
		printf("settings and %u exports are right\n", served);
		return 0;
	}
	start = check_try_exports(settings, vfs, false, &silent, &served);
	if (start)
		printf("a start would fail, and a reload be refused\n");
	else
		printf("a start would serve %u exports and leave out the others; a reload would be "
		       "refused\n",
		       served);
	return reload;
}

int check_config(const struct cfg_settings *settings, const struct rn_logger *log)
{
	struct rn_budget budget;
	int rc = system_calls_check(log);

	if (!rc)
		rc = state_dir_check(settings->server.state_dir, log);
	if (!rc)
		rc = cluster_part_check(settings, log);
	if (rc)
		printf("a start would fail\n");
	rn_budget_init(&budget, CHECK_MEMORY);
	struct rn_payload_pool *pool = rn_payload_pool_new(&budget);
	const struct vfs_config cfg = { .pool = pool,
					.log = log,
					.max_fds = CHECK_FDS,
					.handle_mac = settings->vfs.handle_mac };
	struct vfs *vfs = NULL;
	int made = pool ? vfs_new(&cfg, &vfs) : -ENOMEM;

	if (made)
		rn_err(log, "the exports cannot be checked: %s", strerror(-made));
	else
		made = check_exports(settings, vfs, log);
	if (!made)
		check_names(settings, log);
	if (vfs)
		vfs_free(vfs);
	if (pool)
		rn_payload_pool_free(pool);
	return rc ? rc : made;
}

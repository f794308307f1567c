/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/counters/counters.h"
#include "daemon/metrics/collect.h"

struct output {
	struct metrics *m;
	const struct exp_table *table;
	bool *shown; /* by exp_export.index */
	bool paths;
	bool written; /* which of the two sums */
};

static const struct exp_export *metrics_find_export(const struct exp_table *table, uint32_t id)
{
	for (unsigned i = 0; i < table->n_exports; i++)
		if (table->exports[i].id == id)
			return &table->exports[i];
	return NULL;
}

static void metrics_put_export(const struct output *o, uint32_t id, const char *path,
			       uint64_t bytes)
{
	char text[16];

	snprintf(text, sizeof(text), "%" PRIu32, id);
	if (o->paths)
		metrics_value(o->m, bytes, "export", text, "path", path, NULL);
	else
		metrics_value(o->m, bytes, "export", text, NULL);
}

static void put_row(void *ctx, const struct counters_export *row)
{
	struct output *o = ctx;
	const struct exp_export *e = row->further ? NULL : metrics_find_export(o->table, row->id);
	const uint64_t bytes = o->written ? row->written : row->read;

	if (row->further) {
		metrics_value(o->m, bytes, "export", "further", NULL);
		return;
	}
	if (e)
		o->shown[e->index] = true;
	metrics_put_export(o, row->id, e ? e->path : "", bytes);
}

/* Exports that nobody has used have zeros, so that the first use is seen as growth. */
static void put_sums(struct output *o, const struct metrics_family *f, const struct counters *c)
{
	metrics_family(o->m, f);
	memset(o->shown, 0, o->table->n_exports * sizeof(o->shown[0]));
	counters_each_export(c, put_row, o);
	for (unsigned i = 0; i < o->table->n_exports; i++)
		if (!o->shown[o->table->exports[i].index])
			metrics_put_export(o, o->table->exports[i].id, o->table->exports[i].path,
					   0);
}

static void put_health(struct metrics *m, struct exports *ex)
{
	static const struct metrics_family served = { "ringnfs_exports", METRICS_GAUGE, NULL,
						      "Exports that are served." };
	static const struct metrics_family others = {
		"ringnfs_exports_not_served", METRICS_GAUGE, NULL,
		"Exports that are not served, by the reason: their lines or paths are in error, "
		"the paths cannot be opened, the "
		"file systems were unmounted, the directories removed, or they wait for a mount "
		"(option mp)."
	};
	static const struct metrics_family refused = {
		"ringnfs_exports_reload_refused", METRICS_GAUGE, NULL,
		"1 if the last reload of the exports was refused, and those before it are in force."
	};
	struct exports_health h;

	exports_health(ex, &h);
	metrics_family(m, &served);
	metrics_value(m, h.served, NULL);
	metrics_family(m, &others);
	metrics_value(m, h.in_error, "reason", "in_error", NULL);
	metrics_value(m, h.failed, "reason", "failed", NULL);
	metrics_value(m, h.unmounted, "reason", "unmounted", NULL);
	metrics_value(m, h.removed, "reason", "removed", NULL);
	metrics_value(m, h.waiting, "reason", "waiting", NULL);
	metrics_family(m, &refused);
	metrics_value(m, h.reload_refused, NULL);
}

void metrics_exports(struct metrics *m, const struct metrics_sources *from)
{
	static const struct metrics_family read = {
		"ringnfs_read_bytes", METRICS_COUNTER, "bytes",
		"Bytes of files that clients have read, by the number of the export."
	};
	static const struct metrics_family written = {
		"ringnfs_written_bytes", METRICS_COUNTER, "bytes",
		"Bytes of files that clients have written, by the number of the export."
	};
	struct exports_now now;

	put_health(m, from->exports);
	exports_now_get(from->exports, &now);
	struct output o = { .m = m, .table = now.table, .paths = from->paths };

	o.shown = calloc(now.table->n_exports + 1, sizeof(o.shown[0]));
	if (o.shown) {
		put_sums(&o, &read, from->counters);
		o.written = true;
		put_sums(&o, &written, from->counters);
	}
	free(o.shown);
	exports_now_put(&now);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* GET /v1/stats: sums since the start, by operation and by export. ringnfsctl(8) describes the answer. */
#include "daemon/admin/control_private.h"
#include "daemon/admin/text.h"
#include "daemon/counters/counters.h"
#include "lib/clock.h"

struct output {
	json_t *list;
	const struct exp_table *table;
};

static void stats_add_number(json_t *to, const char *name, uint64_t value)
{
	json_object_set_new(to, name, json_integer((json_int_t)value));
}

/* Pairs of a bucket's end and its count, without those of 0. The last one ends with the longest time. */
static json_t *buckets(const struct rn_durations *d)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < RN_HISTOGRAM_BUCKETS; i++) {
		const bool last = i + 1 == RN_HISTOGRAM_BUCKETS;
		const uint64_t end = last ? d->max_ns : rn_histogram_end_ns(i);

		if (d->bucket[i])
			json_array_append_new(list, json_pack("[I, I]", (json_int_t)end,
							      (json_int_t)d->bucket[i]));
	}
	return list;
}

static void stats_add_row(void *ctx, const struct counters_row *row)
{
	const struct output *o = ctx;
	json_t *op = json_object();

	json_object_set_new(op, "version", json_string(row->version));
	json_object_set_new(op, "operation", json_string(row->operation));
	stats_add_number(op, "calls", row->calls);
	stats_add_number(op, "timed", row->time.count);
	stats_add_number(op, "errors", counters_failed(row));
	stats_add_number(op, "sum_ns", row->time.sum_ns);
	stats_add_number(op, "p50_ns", rn_durations_quantile_ns(&row->time, 500));
	stats_add_number(op, "p95_ns", rn_durations_quantile_ns(&row->time, 950));
	stats_add_number(op, "p99_ns", rn_durations_quantile_ns(&row->time, 990));
	stats_add_number(op, "max_ns", row->time.max_ns);
	json_object_set_new(op, "buckets", buckets(&row->time));
	json_array_append_new(o->list, op);
}

static void stats_add_export(void *ctx, const struct counters_export *row)
{
	const struct output *o = ctx;
	json_t *e = json_object();

	if (!row->further)
		stats_add_number(e, "id", row->id);
	for (unsigned i = 0; !row->further && i < o->table->n_exports; i++)
		if (o->table->exports[i].id == row->id)
			json_object_set_new(e, "path", control_text(o->table->exports[i].path));
	stats_add_number(e, "bytes_read", row->read);
	stats_add_number(e, "bytes_written", row->written);
	json_array_append_new(o->list, e);
}

void control_stats(void *control, const struct admin_request *req, struct admin_reply *r)
{
	const struct control *c = control;
	json_t *answer = json_object();
	struct exports_now now;

	(void)req;
	exports_now_get(c->from.exports, &now);
	const struct output operations = { .list = json_array() };
	const struct output exports = { .list = json_array(), .table = now.table };

	stats_add_number(answer, "time_ns", rn_now_ns() - c->started_ns);
	counters_each(c->from.counters, stats_add_row, (void *)&operations);
	counters_each_export(c->from.counters, stats_add_export, (void *)&exports);
	json_object_set_new(answer, "operations", operations.list);
	json_object_set_new(answer, "exports", exports.list);
	exports_now_put(&now);
	admin_reply_json(r, answer);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/stats.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/pages.h"
#include "ctl/print.h"
#include "ctl/ctl_table.h"
#include "lib/util.h"

#define TIMES 5u /* columns with times of an operation */

/* A row, and what it has grown by. */
struct row {
	const json_t *now, *before; /* before NULL: it is new, or there was no look */
	uint64_t weight;	    /* rows with more come first */
};

static uint64_t stats_growth(const struct row *r, const char *name)
{
	const uint64_t now = pages_number(r->now, name), before = pages_number(r->before, name);

	return now > before ? now - before : 0;
}

/* Members that tell a row from others. */
static const char *const keys[][2] = {
	[STATS_BY_OPERATION] = { "version", "operation" },
	[STATS_BY_EXPORT] = { "id", "id" },
	[STATS_BY_CLIENT] = { "id", "address" },
};

static const json_t *stats_find_row(const json_t *rows, const json_t *like, enum stats_by by)
{
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		bool same = true;

		for (unsigned k = 0; k < 2; k++) {
			const json_t *a = json_object_get(row, keys[by][k]);
			const json_t *b = json_object_get(like, keys[by][k]);

			same = same && ((!a && !b) || json_equal(a, b));
		}
		if (same)
			return row;
	}
	return NULL;
}

static uint64_t calls_of(const struct row *r)
{
	/* NFSv4 clients have operations, others calls. */
	return stats_growth(r, json_object_get(r->now, "operations") ? "operations" : "calls");
}

static uint64_t weigh(const struct row *r, enum stats_by by)
{
	if (by == STATS_BY_EXPORT)
		return stats_growth(r, "bytes_read") + stats_growth(r, "bytes_written");
	return calls_of(r);
}

static int heavier(const void *a, const void *b)
{
	const uint64_t x = ((const struct row *)a)->weight, y = ((const struct row *)b)->weight;

	return x < y ? 1 : x > y ? -1 : 0;
}

static void put_rate(struct table *t, uint64_t n, double seconds)
{
	if (seconds > 0)
		table_cellf(t, "%.1f", (double)n / seconds);
	else
		table_cell(t, NULL);
}

static void stats_put_size(struct table *t, uint64_t bytes)
{
	char text[PRINT_MAX];

	table_cell(t, print_size(bytes, text));
}

static void put_size_rate(struct table *t, uint64_t bytes, double seconds)
{
	char text[PRINT_MAX];

	if (seconds > 0)
		table_cellf(t, "%s/s", print_size((uint64_t)((double)bytes / seconds), text));
	else
		table_cell(t, NULL);
}

static void stats_put_time(struct table *t, uint64_t ns)
{
	char text[PRINT_MAX];

	table_cell(t, print_duration(ns, text));
}

/* Calls in a bucket that ends there; 0: there is none. */
static uint64_t in_bucket(const json_t *row, json_int_t end)
{
	const json_t *pair;
	size_t i;

	json_array_foreach(
		json_object_get(row, "buckets"), i,
		pair) if (json_integer_value(json_array_get(pair, 0)) ==
			  end) return (uint64_t)json_integer_value(json_array_get(pair, 1));
	return 0;
}

/* Calls that were timed; others count as part of an operation behind them. A server that does not tell has timed all. */
static uint64_t timed_of(const struct row *r)
{
	return stats_growth(r, json_object_get(r->now, "timed") ? "timed" : "calls");
}

/* The end of the bucket within which that many thousandths of the calls since the look before were done. */
static uint64_t stats_quantile(const struct row *r, unsigned thousandths)
{
	const uint64_t wanted = (timed_of(r) * thousandths + 999) / 1000;
	uint64_t seen = 0, end = 0;
	const json_t *pair;
	size_t i;

	json_array_foreach(json_object_get(r->now, "buckets"), i, pair)
	{
		const json_int_t at = json_integer_value(json_array_get(pair, 0));
		const uint64_t n = (uint64_t)json_integer_value(json_array_get(pair, 1));
		const uint64_t before = in_bucket(r->before, at);

		if (n <= before)
			continue;
		seen += n - before;
		end = (uint64_t)at;
		if (seen >= wanted)
			break;
	}
	return rn_min(end, pages_number(r->now, "max_ns"));
}

/* The longest of all is known since the start only; later the last bucket is. */
static void put_times(struct table *t, const struct row *r)
{
	const uint64_t timed = timed_of(r);

	for (unsigned i = 0; !timed && i < TIMES; i++)
		table_cell(t, NULL);
	if (!timed)
		return;
	stats_put_time(t, stats_growth(r, "sum_ns") / timed);
	stats_put_time(t, stats_quantile(r, 500));
	stats_put_time(t, stats_quantile(r, 950));
	stats_put_time(t, stats_quantile(r, 990));
	stats_put_time(t, r->before ? stats_quantile(r, 1000) : pages_number(r->now, "max_ns"));
}

static void put_operation(struct table *t, const struct row *r, double seconds)
{
	table_cell(t, pages_text(r->now, "version"));
	table_cell(t, pages_text(r->now, "operation"));
	table_cellf(t, "%" PRIu64, stats_growth(r, "calls"));
	put_rate(t, stats_growth(r, "calls"), seconds);
	table_cellf(t, "%" PRIu64, stats_growth(r, "errors"));
	put_times(t, r);
}

static void stats_put_bytes(struct table *t, const struct row *r, double seconds)
{
	stats_put_size(t, stats_growth(r, "bytes_read"));
	put_size_rate(t, stats_growth(r, "bytes_read"), seconds);
	stats_put_size(t, stats_growth(r, "bytes_written"));
	put_size_rate(t, stats_growth(r, "bytes_written"), seconds);
}

static void stats_put_export(struct table *t, const struct row *r, double seconds)
{
	const char *path = pages_text(r->now, "path");

	if (path || !json_object_get(r->now, "id"))
		table_cell(t, path ? path : "others");
	else
		table_cellf(t, "%" PRIu64 ", not exported any more", pages_number(r->now, "id"));
	stats_put_bytes(t, r, seconds);
}

/* An NFSv4 client has an id; others are addresses. */
static void stats_put_client(struct table *t, const struct row *r, double seconds)
{
	const char *id = pages_text(r->now, "id");

	table_cell(t, id);
	table_cell(t, pages_text(r->now, "address"));
	table_cell(t, id ? pages_text(r->now, "version") : "3");
	table_cellf(t, "%" PRIu64, calls_of(r));
	put_rate(t, calls_of(r), seconds);
	table_cellf(t, "%" PRIu64, stats_growth(r, "errors"));
	stats_put_bytes(t, r, seconds);
}

static const struct table_column operations[] = {
	{ "VERSION", false }, { "OPERATION", false }, { "CALLS", true }, { "CALLS/S", true },
	{ "ERRORS", true },   { "MEAN", true },	      { "P50", true },	 { "P95", true },
	{ "P99", true },      { "MAX", true },
};
static const struct table_column exports[] = {
	{ "EXPORT", false }, { "READ", true },	    { "READ/S", true },
	{ "WRITTEN", true }, { "WRITTEN/S", true },
};
static const struct table_column clients[] = {
	{ "CLIENT", false }, { "ADDRESS", false },  { "VERSION", false }, { "CALLS", true },
	{ "CALLS/S", true }, { "ERRORS", true },    { "READ", true },	  { "READ/S", true },
	{ "WRITTEN", true }, { "WRITTEN/S", true },
};

static const struct {
	const struct table_column *columns;
	size_t n;
	void (*put)(struct table *t, const struct row *r, double seconds);
} kinds[] = {
	[STATS_BY_OPERATION] = { operations, rn_array_size(operations), put_operation },
	[STATS_BY_EXPORT] = { exports, rn_array_size(exports), stats_put_export },
	[STATS_BY_CLIENT] = { clients, rn_array_size(clients), stats_put_client },
};

/* Time that the sums were made in; 0: unknown, as clients have begun at different times. */
static double seconds_of(const struct stats_view *v)
{
	if (!v->before.rows)
		return v->by == STATS_BY_CLIENT ? 0 : (double)v->now.time_ns / 1e9;
	return (double)(v->now.time_ns - v->before.time_ns) / 1e9;
}

static struct row *sorted_rows(const struct stats_view *v, size_t n)
{
	struct row *rows = calloc(n + 1, sizeof(*rows));

	for (size_t i = 0; rows && i < n; i++) {
		rows[i].now = json_array_get(v->now.rows, i);
		rows[i].before = stats_find_row(v->before.rows, rows[i].now, v->by);
		rows[i].weight = weigh(&rows[i], v->by);
	}
	if (rows)
		qsort(rows, n, sizeof(*rows), heavier);
	return rows;
}

int stats_print(const struct stats_view *v)
{
	const size_t n = json_array_size(v->now.rows);
	struct row *rows = sorted_rows(v, n);
	struct table *t = table_new(kinds[v->by].columns, kinds[v->by].n);
	int rc = rows && t ? 0 : -1;

	for (size_t i = 0; !rc && i < n; i++)
		if (rows[i].weight || !v->before.rows)
			kinds[v->by].put(t, &rows[i], seconds_of(v));
	if (!rc && table_rows(t) > 0)
		rc = table_print(t, stdout);
	else if (!rc)
		puts(v->before.rows ? "nothing was asked for meanwhile"
				    : "nothing was asked for yet");
	table_free(t);
	free(rows);
	return rc ? pages_no_memory() : 0;
}

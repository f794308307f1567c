/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/top_rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Calls of one kind within the interval: how many took at most each bound, by the order of the bounds. */
struct spread {
	double within[TOP_BOUNDS_MAX];
};

/* Places of the bounds in the reading, from the shortest to the longest. */
struct order {
	double bounds[TOP_BOUNDS_MAX];
	unsigned place[TOP_BOUNDS_MAX], n;
};

static void order_bounds(struct order *o, const struct top_reading *r)
{
	o->n = 0;
	for (unsigned i = 0; i < r->nbounds; i++) {
		unsigned at = o->n++;

		for (; at > 0 && o->bounds[at - 1] > r->bounds[i]; at--) {
			o->bounds[at] = o->bounds[at - 1];
			o->place[at] = o->place[at - 1];
		}
		o->bounds[at] = r->bounds[i];
		o->place[at] = i;
	}
}

/* Growth of a counter; 0 if it has fallen, since the server has restarted then. */
static double top_growth(double before, double now)
{
	return now > before ? now - before : 0;
}

static const struct top_operation *top_reading_find(const struct top_reading *r,
						    const struct top_operation *op)
{
	for (unsigned i = 0; i < r->noperations; i++)
		if (strcmp(r->operations[i].name, op->name) == 0 &&
		    strcmp(r->operations[i].version, op->version) == 0)
			return &r->operations[i];
	return NULL;
}

static double within_before(const struct top_reading *r, const struct top_operation *op,
			    double bound)
{
	for (unsigned i = 0; op && i < r->nbounds; i++)
		if (r->bounds[i] == bound)
			return op->within[i];
	return 0;
}

static void spread_of(struct spread *s, const struct order *o, const struct top_operation *now,
		      const struct top_reading *before)
{
	const struct top_operation *old = top_reading_find(before, now);

	for (unsigned i = 0; i < o->n; i++)
		s->within[i] = top_growth(within_before(before, old, o->bounds[i]),
					  now->within[o->place[i]]);
}

/* Linear within a bucket, as Prometheus does it; in the last bucket its lower end. */
static double top_spread_quantile(const struct spread *s, const struct order *o, double q)
{
	double lower = 0, below = 0;

	if (o->n == 0 || s->within[o->n - 1] <= 0)
		return -1;
	const double rank = q * s->within[o->n - 1];

	for (unsigned i = 0; i < o->n; i++) {
		const double in_bucket = s->within[i] - below;

		if (s->within[i] >= rank && in_bucket > 0)
			return isinf(o->bounds[i]) ? lower
						   : lower + (o->bounds[i] - lower) *
								     (rank - below) / in_bucket;
		lower = o->bounds[i];
		below = s->within[i];
	}
	return lower;
}

static void set_quantiles(struct top_row *row, const struct spread *s, const struct order *o)
{
	row->p50 = top_spread_quantile(s, o, 0.5);
	row->p95 = top_spread_quantile(s, o, 0.95);
	row->p99 = top_spread_quantile(s, o, 0.99);
}

static void add_spread(struct spread *sum, const struct spread *s, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sum->within[i] += s->within[i];
}

static void set_row(struct top_row *row, const struct top_operation *now,
		    const struct top_reading *before, double seconds)
{
	const struct top_operation *old = top_reading_find(before, now);

	row->version = now->version;
	row->name = now->name;
	row->calls = top_growth(old ? old->calls : 0, now->calls) / seconds;
	row->errors = top_growth(old ? old->errors : 0, now->errors) / seconds;
}

/* Adds the operation to the sum of calls, and to the rows if it was called. */
static void top_rows_add_operation(struct top_rows *out, struct spread *calls,
				   const struct order *o, const struct top_operation *now,
				   const struct top_reading *before)
{
	struct top_row *row = &out->rows[out->n];
	struct spread s;

	set_row(row, now, before, out->seconds);
	spread_of(&s, o, now, before);
	set_quantiles(row, &s, o);
	if (!top_is_part(now)) {
		out->all.calls += row->calls;
		add_spread(calls, &s, o->n);
	}
	if (top_is_compound(now)) /* its parts have rows */
		return;
	out->all.errors += row->errors;
	out->n += row->calls > 0;
}

bool top_compare(struct top_rows *out, const struct top_reading *before,
		 const struct top_reading *now)
{
	struct spread calls = { 0 };
	struct order o;

	memset(out, 0, sizeof(*out));
	out->seconds = now->seconds - before->seconds;
	if (before->started != now->started || out->seconds <= 0)
		return false;
	out->read = top_growth(before->read, now->read) / out->seconds;
	out->written = top_growth(before->written, now->written) / out->seconds;
	order_bounds(&o, now);
	for (unsigned i = 0; i < now->noperations; i++)
		top_rows_add_operation(out, &calls, &o, &now->operations[i], before);
	set_quantiles(&out->all, &calls, &o);
	return true;
}

static double top_row_key(const struct top_row *r, enum top_sort by)
{
	switch (by) {
	case TOP_BY_P50:
		return r->p50;
	case TOP_BY_P95:
		return r->p95;
	case TOP_BY_P99:
		return r->p99;
	case TOP_BY_ERRORS:
		return r->errors;
	case TOP_BY_CALLS:
		return r->calls;
	case TOP_BY_NAME:
		break;
	}
	return 0;
}

static int compare_rows(const void *a, const void *b, void *by)
{
	const struct top_row *x = a, *y = b;
	const double kx = top_row_key(x, *(enum top_sort *)by),
		     ky = top_row_key(y, *(enum top_sort *)by);

	if (kx != ky)
		return kx > ky ? -1 : 1;
	const int name = strcmp(x->name, y->name);

	return name ? name : strcmp(x->version, y->version);
}

void top_sort_rows(struct top_rows *rows, enum top_sort by)
{
	qsort_r(rows->rows, rows->n, sizeof(rows->rows[0]), compare_rows, &by);
}

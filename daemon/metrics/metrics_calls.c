/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls: NFSv3's procedures and NFSv4's operations are of one kind here, and so are those of MOUNT and NLM. A COMPOUND,
 * which is made of operations, has a family of its own, so that nothing is in a sum twice. */
#include <stdlib.h>

#include "daemon/counters/counters.h"
#include "daemon/metrics/collect.h"
#include "daemon/metrics/status_names.h"

#define ROWS_AT_ONCE 64u

struct rows {
	struct counters_row *row;
	size_t n, room;
};

static void take_row(void *ctx, const struct counters_row *row)
{
	struct rows *r = ctx;

	if (r->n == r->room) {
		struct counters_row *more =
			realloc(r->row, (r->room + ROWS_AT_ONCE) * sizeof(*more));

		if (!more)
			return;
		r->row = more;
		r->room += ROWS_AT_ONCE;
	}
	r->row[r->n++] = *row;
}

static void metrics_put_call_status(struct metrics *m, const struct counters_row *row,
				    const char *status, uint64_t n)
{
	metrics_value(m, n, "version", row->version, "operation", row->operation, "status", status,
		      NULL);
}

/* Statuses that have no name are one. */
static void put_statuses(struct metrics *m, const struct counters_row *row)
{
	uint64_t other = 0;

	metrics_put_call_status(m, row, "OK", row->ok);
	for (unsigned i = 0; i < row->nfailures; i++) {
		const unsigned place = row->nfailures == 1 ? COUNTERS_STATUS_REFUSED : i;
		const char *name = status_name(place);
		const uint64_t n = row->failures[i];

		if (n && name)
			metrics_put_call_status(m, row, name, n);
		else
			other += n;
	}
	if (other)
		metrics_put_call_status(m, row, "OTHER", other);
}

static void put_compounds(struct metrics *m, const struct rows *r)
{
	static const struct metrics_family times = {
		"ringnfs_compound_duration_seconds", METRICS_HISTOGRAM, "seconds",
		"Time from the arrival of a COMPOUND of NFSv4 to its reply."
	};
	static const struct metrics_family refused = {
		"ringnfs_compounds_refused", METRICS_COUNTER, NULL,
		"COMPOUNDs that were refused by RPC, or had no room for their reply."
	};

	metrics_family(m, &times);
	for (size_t i = 0; i < r->n; i++)
		if (r->row[i].kind == COUNTERS_COMPOUND)
			metrics_durations(m, &r->row[i].time, "version", r->row[i].version, NULL);
	metrics_family(m, &refused);
	for (size_t i = 0; i < r->n; i++)
		if (r->row[i].kind == COUNTERS_COMPOUND)
			metrics_value(m, counters_failed(&r->row[i]), "version", r->row[i].version,
				      NULL);
}

void metrics_calls(struct metrics *m, const struct metrics_sources *from)
{
	static const struct metrics_family calls = {
		"ringnfs_calls", METRICS_COUNTER, NULL,
		"Procedures of NFSv3, MOUNT and NLM, and operations of NFSv4, by their results."
	};
	static const struct metrics_family times = {
		"ringnfs_call_duration_seconds", METRICS_HISTOGRAM, "seconds",
		"Time of a procedure from its arrival to its reply, or of an operation."
	};
	struct rows r = { .n = 0 };

	counters_each(from->counters, take_row, &r);
	metrics_family(m, &calls);
	for (size_t i = 0; i < r.n; i++)
		if (r.row[i].kind != COUNTERS_COMPOUND)
			put_statuses(m, &r.row[i]);
	metrics_family(m, &times);
	for (size_t i = 0; i < r.n; i++)
		if (r.row[i].kind != COUNTERS_COMPOUND)
			metrics_durations(m, &r.row[i].time, "version", r.row[i].version,
					  "operation", r.row[i].operation, NULL);
	put_compounds(m, &r);
	free(r.row);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls between two readings: a row for each operation, and the sum of all. */
#ifndef RN_CTL_TOP_ROWS_H
#define RN_CTL_TOP_ROWS_H

#include "ctl/top_reading.h"

enum top_sort { TOP_BY_CALLS, TOP_BY_NAME, TOP_BY_P50, TOP_BY_P95, TOP_BY_P99, TOP_BY_ERRORS };

struct top_row {
	const char *version, *name; /* in the later reading */
	double calls, errors;	    /* a second */
	double p50, p95, p99;	    /* seconds; negative: not known */
};

struct top_rows {
	double seconds;
	double read, written; /* bytes a second */
	struct top_row all;   /* RPC calls; its errors are those of operations */
	struct top_row rows[TOP_OPERATIONS_MAX];
	unsigned n;
};

/* False: the readings are of two runs of the server, or of the same moment. */
bool top_compare(struct top_rows *out, const struct top_reading *before,
		 const struct top_reading *now);
/* The largest first; by name in its order. */
void top_sort_rows(struct top_rows *rows, enum top_sort by);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metrics as text: Prometheus' format 0.0.4, and OpenMetrics 1.0. A family is begun and then given its values,
 * each with its labels. The two formats differ in the names of counters and of information, in units and in
 * the end mark; the caller need not know.
 */
#ifndef RN_ADMIN_METRICS_H
#define RN_ADMIN_METRICS_H

#include <stdint.h>
#include <stdio.h>

#include "lib/histogram.h"

enum metrics_format { METRICS_PROMETHEUS, METRICS_OPENMETRICS };
#define METRICS_FORMATS 2u

enum metrics_type {
	METRICS_COUNTER,
	METRICS_GAUGE,
	METRICS_HISTOGRAM, /* of seconds */
	METRICS_INFO,	   /* labels alone; the value is 1 */
};

struct metrics_family {
	const char *name; /* without _total and _info; with the unit */
	enum metrics_type type;
	const char *unit; /* "seconds", "bytes"; NULL: a number */
	const char *help; /* a sentence */
};

struct metrics {
	enum metrics_format format;
	FILE *out;
	char *text;
	size_t len;
	const struct metrics_family *family;
};

/* 0 or -ENOMEM. */
int metrics_begin(struct metrics *m, enum metrics_format format);
/* Begins a family, which must live until the next one. */
void metrics_family(struct metrics *m, const struct metrics_family *f);
/* A value, with labels: pairs of name and value, and a NULL. Names are constants; values may be any bytes: those that
 * are no UTF-8 become \xNN. */
void metrics_value(struct metrics *m, uint64_t value, ...) __attribute__((sentinel));
/* Like metrics_value(), in billionths: nanoseconds for a family in seconds. */
void metrics_nano(struct metrics *m, uint64_t value, ...) __attribute__((sentinel));
void metrics_durations(struct metrics *m, const struct rn_durations *d, ...)
	__attribute__((sentinel));
/* Ends the text, which the caller frees. NULL: there was no memory for it. */
char *metrics_end(struct metrics *m, size_t *len);

/* The format for the value of a request's Accept header, or NULL. */
enum metrics_format metrics_accepted(const char *accept);
const char *metrics_content_type(enum metrics_format format);

#endif

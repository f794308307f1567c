/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of ringnfsctl top that need no terminal. tests/net/control_top.py has the rest. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/metrics_text.h"
#include "ctl/top_reading.h"
#include "ctl/top_rows.h"

static char text[1 << 20];

static char *copy(const char *from)
{
	cr_assert_lt(strlen(from), sizeof(text));
	return strcpy(text, from);
}

Test(top, samples)
{
	char *at = copy("# HELP a is a\n# TYPE a gauge\na 1\n\n"
			"b_total{x=\"1\",long_name=\"a \\\"b\\\\ \\n}\"} 2.5e3 1700000000\r\n"
			"c{ le=\"+Inf\" , } +Inf\nd:e{}\t-7");
	struct metrics_sample s;

	cr_assert(metrics_next(&at, &s));
	cr_expect_str_eq(s.name, "a");
	cr_expect_eq(s.value, 1);
	cr_expect_eq(s.nlabels, 0);
	cr_expect_str_eq(metrics_label(&s, "x"), "");
	cr_assert(metrics_next(&at, &s));
	cr_expect_str_eq(s.name, "b_total");
	cr_expect_str_eq(metrics_label(&s, "x"), "1");
	cr_expect_str_eq(metrics_label(&s, "long_name"), "a \"b\\ \n}");
	cr_expect_eq(s.value, 2500);
	cr_assert(metrics_next(&at, &s));
	cr_expect_str_eq(metrics_label(&s, "le"), "+Inf");
	cr_expect(isinf(s.value));
	cr_assert(metrics_next(&at, &s));
	cr_expect_str_eq(s.name, "d:e");
	cr_expect_eq(s.value, -7);
	cr_expect_not(metrics_next(&at, &s));
	cr_expect_not(metrics_next(&at, &s));
}

/* Lines that are no sample are passed over, and the next one is found. */
Test(top, no_samples)
{
	static const char *const bad[] = {
		"",	     " a 1",	   "a",		  "a ",
		"a x",	     "a NaN",	   "1a 1",	  "a{ 1",
		"a{x} 1",    "a{x=1} 1",   "a{x=\"1} 1",  "a{x=\"1\\",
		"a{x=\"1\"", "a{x=\"1\"}", "a{=\"1\"} 1", "{x=\"1\"} 1",
		"a} 1",	     "a{x=\"1\"y", "a 1x",	  "a{x=\"1\"} 1}",
	};
	struct metrics_sample s;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(text, sizeof(text), "%s\nnext 3\n", bad[i]);
		char *at = text;

		cr_expect(metrics_next(&at, &s) && strcmp(s.name, "next") == 0, "%s", bad[i]);
		at = copy(bad[i]);
		cr_expect_not(metrics_next(&at, &s), "%s", bad[i]);
	}
}

Test(top, many_labels)
{
	size_t len = (size_t)sprintf(text, "a{");
	struct metrics_sample s;
	char *at = text;

	for (unsigned i = 0; i < 100; i++)
		len += (size_t)sprintf(text + len, "l%u=\"%u\",", i, i);
	sprintf(text + len, "} 4\n");
	cr_assert(metrics_next(&at, &s));
	cr_expect_eq(s.nlabels, METRICS_LABELS_MAX);
	cr_expect_str_eq(metrics_label(&s, "l7"), "7");
	cr_expect_str_eq(metrics_label(&s, "l8"), "");
	cr_expect_eq(s.value, 4);
}

#define CALLS(version, op, status, n)                                                              \
	"ringnfs_calls_total{version=\"" version "\",operation=\"" op "\",status=\"" status        \
	"\"} " n "\n"
#define BUCKET(version, op, le, n)                                                                 \
	"ringnfs_call_duration_seconds_bucket{version=\"" version "\",operation=\"" op             \
	"\",le=\"" le "\"} " n "\n"

#define COMPOUNDS(version, what, labels, n)                                                        \
	"ringnfs_compound_duration_seconds_" what "{version=\"" version "\"" labels "} " n "\n"

static struct top_reading *reading(const char *from, double seconds)
{
	struct top_reading *r = malloc(sizeof(*r));

	cr_assert(r && top_read(r, copy(from), seconds));
	return r;
}

Test(top, reading)
{
	struct top_reading *r = reading(
		"ringnfs_build_info{version=\"1.\x1b[2J\"} 1\nringnfs_start_time_seconds 1000\n"
		"ringnfs_read_bytes_total{export=\"1\"} 10\nringnfs_read_bytes_total{export=\"2\"} "
		"5\n"
		"ringnfs_connections{transport=\"tcp\"} 3\nringnfs_connections{transport=\"rdma\"} "
		"4\n"
		"ringnfs_nfs4_clients{state=\"active\"} "
		"5\nringnfs_nfs4_clients{state=\"courtesy\"} 2\n"
		"ringnfs_grace_active 1\n" CALLS("3", "READ", "OK", "7")
			CALLS("3", "READ", "IO", "2"),
		1);

	cr_expect_str_eq(r->version, "1.?[2J");
	cr_expect_eq(r->started, 1000);
	cr_expect_eq(r->read, 15);
	cr_expect(r->tcp == 3 && r->rdma == 4 && r->clients == 7 && r->clients_idle == 2);
	cr_expect(r->grace);
	cr_assert_eq(r->noperations, 1);
	cr_expect(r->operations[0].calls == 9 && r->operations[0].errors == 2);
	free(r);
	r = malloc(sizeof(*r));
	cr_expect_not(top_read(r, copy("other_total 5\n"), 1));
	cr_expect_not(top_read(r, copy(""), 1));
	free(r);
}

/* More operations and bounds than there is room for are left out. */
Test(top, bounds_of_a_reading)
{
	size_t len = 0;

	for (unsigned i = 0; i < 2 * TOP_OPERATIONS_MAX; i++)
		len += (size_t)sprintf(text + len,
				       CALLS("3", "OP%u", "OK", "1") BUCKET("3", "OP0", "%u", "1"),
				       i, i);
	struct top_reading *r = malloc(sizeof(*r));

	cr_assert(r && top_read(r, text, 1));
	cr_expect_eq(r->noperations, TOP_OPERATIONS_MAX);
	cr_expect_eq(r->nbounds, TOP_BOUNDS_MAX);
	free(r);
}

static const char before[] = CALLS("4.2", "READ", "OK", "100") COMPOUNDS("4.2", "count", "", "50")
	BUCKET("4.2", "READ", "0.001", "40") BUCKET("4.2", "READ", "0.002", "100") BUCKET(
		"4.2", "READ", "+Inf", "100") "ringnfs_written_bytes_total{export=\"1\"} 0\n";
static const char now[] = CALLS("4.2", "READ", "OK", "290") CALLS("4.2", "READ", "IO", "10")
	COMPOUNDS("4.2", "count", "", "150") CALLS("3", "GETATTR", "OK", "20")
		BUCKET("4.2", "READ", "+Inf", "300") BUCKET("4.2", "READ", "0.002", "290")
			BUCKET("4.2", "READ", "0.001", "140") COMPOUNDS("4.2", "bucket",
									",le=\"0.002\"", "99")
				BUCKET("4.2", "COMPOUND", "+Inf",
				       "100") "ringnfs_written_bytes_total{export=\"1\"} 2048\n";

Test(top, rows)
{
	struct top_reading *a = reading(before, 10), *b = reading(now, 12);
	struct top_rows *rows = malloc(sizeof(*rows));

	cr_assert(rows && top_compare(rows, a, b));
	cr_expect_eq(rows->written, 1024);
	cr_expect_eq(rows->all.calls, 60); /* COMPOUND and GETATTR */
	cr_expect_eq(rows->all.errors, 5);
	cr_expect_float_eq(rows->all.p50, 0.001 + 0.001 * 50 / 99, 1e-9);
	cr_assert_eq(rows->n, 2); /* COMPOUND has none */
	top_sort_rows(rows, TOP_BY_CALLS);
	cr_expect_str_eq(rows->rows[0].name, "READ");
	cr_expect_eq(rows->rows[0].calls, 100);
	cr_expect_eq(rows->rows[0].errors, 5);
	cr_expect_float_eq(rows->rows[0].p50, 0.001, 1e-9);
	cr_expect_float_eq(rows->rows[0].p95, 0.002, 1e-9);
	cr_expect_eq(rows->rows[0].p99, 0.002); /* beyond the last finite bound */
	cr_expect_eq(rows->rows[1].p50, -1);
	top_sort_rows(rows, TOP_BY_NAME);
	cr_expect_str_eq(rows->rows[0].name, "GETATTR");
	top_sort_rows(rows, TOP_BY_P99);
	cr_expect_str_eq(rows->rows[0].name, "READ");
	free(rows);
	free(a);
	free(b);
}

/* Two runs of the server, and counters that fall, tell nothing. */
Test(top, restart)
{
	struct top_reading *a = reading(now, 10), *b = reading(before, 12);
	struct top_rows *rows = malloc(sizeof(*rows));

	cr_assert(rows && top_compare(rows, a, b));
	cr_expect_eq(rows->all.calls, 0);
	cr_expect_eq(rows->n, 0);
	cr_expect_not(top_compare(rows, b, b));
	a->started = 5;
	cr_expect_not(top_compare(rows, a, b));
	free(rows);
	free(a);
	free(b);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Metrics as text, and the choice of their format. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "admin/metrics.h"

static const struct metrics_family reads = { "t_read_bytes", METRICS_COUNTER, "bytes",
					     "Bytes read." };
static const struct metrics_family conns = { "t_conns", METRICS_GAUGE, NULL, "Connections." };
static const struct metrics_family build = { "t_build", METRICS_INFO, NULL, "The program." };
static const struct metrics_family times = { "t_wait_seconds", METRICS_HISTOGRAM, "seconds",
					     "Waits." };

static char *end(struct metrics *m)
{
	size_t len;
	char *text = metrics_end(m, &len);

	cr_assert_not_null(text);
	cr_expect_eq(len, strlen(text));
	return text;
}

static void put_all(struct metrics *m)
{
	metrics_family(m, &reads);
	metrics_value(m, 5, "export", "1", "kind", "x", NULL);
	metrics_value(m, UINT64_MAX, NULL);
	metrics_family(m, &conns);
	metrics_value(m, 0, NULL);
	metrics_nano(m, 1000000001, "a", "b", NULL);
	metrics_family(m, &build);
	metrics_value(m, 1, "version", "1.2", NULL);
}

Test(metrics, as_prometheus_wants_them)
{
	struct metrics m;

	cr_assert_eq(metrics_begin(&m, METRICS_PROMETHEUS), 0);
	put_all(&m);
	char *text = end(&m);

	cr_expect_str_eq(text, "# HELP t_read_bytes_total Bytes read.\n"
			       "# TYPE t_read_bytes_total counter\n"
			       "t_read_bytes_total{export=\"1\",kind=\"x\"} 5\n"
			       "t_read_bytes_total 18446744073709551615\n"
			       "# HELP t_conns Connections.\n"
			       "# TYPE t_conns gauge\n"
			       "t_conns 0\n"
			       "t_conns{a=\"b\"} 1.000000001\n"
			       "# HELP t_build_info The program.\n"
			       "# TYPE t_build_info gauge\n"
			       "t_build_info{version=\"1.2\"} 1\n");
	free(text);
}

Test(metrics, as_openmetrics_wants_them)
{
	struct metrics m;

	cr_assert_eq(metrics_begin(&m, METRICS_OPENMETRICS), 0);
	put_all(&m);
	char *text = end(&m);

	cr_expect_str_eq(text, "# HELP t_read_bytes Bytes read.\n"
			       "# TYPE t_read_bytes counter\n"
			       "# UNIT t_read_bytes bytes\n"
			       "t_read_bytes_total{export=\"1\",kind=\"x\"} 5\n"
			       "t_read_bytes_total 18446744073709551615\n"
			       "# HELP t_conns Connections.\n"
			       "# TYPE t_conns gauge\n"
			       "t_conns 0\n"
			       "t_conns{a=\"b\"} 1.000000001\n"
			       "# HELP t_build The program.\n"
			       "# TYPE t_build info\n"
			       "t_build_info{version=\"1.2\"} 1\n"
			       "# EOF\n");
	free(text);
}

Test(metrics, values_of_labels)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "", "" },
		{ "/srv/a b{}", "/srv/a b{}" },
		{ "a\"b\\c\nd", "a\\\"b\\\\c\\\\x0ad" },
		{ "\xc3\xa4\xe2\x82\xac", "\xc3\xa4\xe2\x82\xac" },
		{ "\xff\xc0\xaf\xed\xa0\x80\xe2\x82",
		  "\\\\xff\\\\xc0\\\\xaf\\\\xed\\\\xa0\\\\x80\\\\xe2\\\\x82" },
		{ "\xc2\x9b\x7f", "\\\\xc2\\\\x9b\\\\x7f" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char want[256];
		struct metrics m;

		cr_assert_eq(metrics_begin(&m, METRICS_PROMETHEUS), 0);
		metrics_family(&m, &conns);
		metrics_value(&m, 7, "x", cases[i].in, NULL);
		char *text = end(&m);

		snprintf(want, sizeof(want), "\nt_conns{x=\"%s\"} 7\n", cases[i].out);
		cr_expect_not_null(strstr(text, want), "%s: %s", want, text);
		free(text);
	}
}

/* The n-th value of a bucket, and its bound. */
static uint64_t bucket(const char *text, unsigned n, char le[32])
{
	unsigned long long value = 0;

	for (unsigned i = 0; text && i <= n; i++)
		text = strstr(text + 1, "t_wait_seconds_bucket{");
	cr_assert_not_null(text);
	cr_assert_eq(
		sscanf(text, "t_wait_seconds_bucket{a=\"b\",le=\"%31[^\"]\"} %llu", le, &value), 2,
		"%s", text);
	return value;
}

Test(metrics, histograms)
{
	static struct rn_histogram h;
	struct rn_durations d = { .count = 0 };
	struct metrics m;
	char le[32];

	rn_histogram_record(&h, 4095);
	rn_histogram_record(&h, 4096);
	rn_histogram_record(&h, 2000000000);
	rn_histogram_record(&h, UINT64_C(100000000000));
	rn_histogram_add(&d, &h);
	cr_assert_eq(metrics_begin(&m, METRICS_PROMETHEUS), 0);
	metrics_family(&m, &times);
	metrics_durations(&m, &d, "a", "b", NULL);
	char *text = end(&m);

	cr_expect_eq(bucket(text, 0, le), 1);
	cr_expect_str_eq(le, "4.096e-06");
	cr_expect_eq(bucket(text, 1, le), 2);
	cr_expect_str_eq(le, "8.192e-06");
	cr_expect_eq(bucket(text, 17, le), 3);
	cr_expect_str_eq(le, "4.294967296");
	cr_expect_eq(bucket(text, 18, le), 3);
	cr_expect_str_eq(le, "17.179869184");
	cr_expect_eq(bucket(text, 19, le), 4);
	cr_expect_str_eq(le, "+Inf");
	cr_expect_not_null(strstr(text, "\nt_wait_seconds_sum{a=\"b\"} 102.000008191\n"), "%s",
			   text);
	cr_expect_not_null(strstr(text, "\nt_wait_seconds_count{a=\"b\"} 4\n"));
	free(text);
}

Test(metrics, format_by_the_accept_header)
{
	static const char *const open[] = {
		"application/openmetrics-text",
		"application/openmetrics-text; version=1.0.0; charset=utf-8",
		"APPLICATION/OpenMetrics-text;version=1.0.0",
		"application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3,*/*;q=0.1",
		"text/plain , application/openmetrics-text ;q=0.001",
	};
	static const char *const plain[] = {
		"",
		"*/*",
		"text/plain",
		",,;;,",
		"application/openmetrics-text;q=0",
		"application/openmetrics-text;version=0.0.1",
		"application/openmetrics-textual",
		"application/openmetrics-text;q=x",
		"application/openmetrics-text;q=-1",
		"application/openmetrics-text;q=nan",
	};
	char longest[4096];

	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		cr_expect_eq(metrics_accepted(open[i]), METRICS_OPENMETRICS, "%s", open[i]);
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
		cr_expect_eq(metrics_accepted(plain[i]), METRICS_PROMETHEUS, "%s", plain[i]);
	cr_expect_eq(metrics_accepted(NULL), METRICS_PROMETHEUS);
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	cr_expect_eq(metrics_accepted(longest), METRICS_PROMETHEUS);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "lib/histogram.h"

static struct rn_histogram h; /* zero in the process that each test has */

static struct rn_durations all(void)
{
	struct rn_durations d = { .count = 0 };

	rn_histogram_add(&d, &h);
	return d;
}

Test(histogram, is_empty_at_first)
{
	const struct rn_durations d = all();

	cr_expect_eq(d.count, 0);
	cr_expect_eq(rn_durations_quantile_ns(&d, 500), 0);
	cr_expect_eq(rn_durations_quantile_ns(&d, 1000), 0);
}

Test(histogram, sum_and_longest)
{
	rn_histogram_record(&h, 5);
	rn_histogram_record(&h, 70000);
	rn_histogram_record(&h, 3000);
	const struct rn_durations d = all();

	cr_expect_eq(d.count, 3);
	cr_expect_eq(d.sum_ns, 73005);
	cr_expect_eq(d.max_ns, 70000);
	cr_expect_eq(rn_durations_quantile_ns(&d, 1000), 70000, "not beyond the longest");
}

/* Each duration alone: the quantile tells it, and is at most a quarter too high. */
Test(histogram, is_a_quarter_too_high_at_most)
{
	for (uint64_t ns = 1024; ns < RN_HISTOGRAM_LONGEST_NS; ns += ns / 7 + 1) {
		struct rn_histogram one = { .max_ns = 0 };
		struct rn_durations d = { .count = 0 };
		uint64_t told;

		rn_histogram_record(&one, ns);
		atomic_store(&one.max_ns, UINT64_MAX);
		rn_histogram_add(&d, &one);
		told = rn_durations_quantile_ns(&d, 500);
		cr_assert(told > ns && told <= ns + ns / 4 + 1, "%llu for %llu",
			  (unsigned long long)told, (unsigned long long)ns);
	}
}

Test(histogram, quantiles)
{
	for (uint64_t us = 1; us <= 1000; us++)
		rn_histogram_record(&h, us * 1000);
	const struct rn_durations d = all();

	for (unsigned q = 1; q <= 1000; q += 37) {
		const uint64_t told = rn_durations_quantile_ns(&d, q);

		cr_expect(told >= q * 1000 && told <= q * 1250 + 256, "%u: %llu", q,
			  (unsigned long long)told);
	}
	cr_expect(rn_durations_quantile_ns(&d, 0) <= 1024);
}

Test(histogram, the_longest_have_a_bucket)
{
	rn_histogram_record(&h, 0);
	rn_histogram_record(&h, RN_HISTOGRAM_LONGEST_NS - 1);
	rn_histogram_record(&h, RN_HISTOGRAM_LONGEST_NS);
	rn_histogram_record(&h, UINT64_MAX);
	const struct rn_durations d = all();

	cr_expect_eq(d.bucket[0], 1);
	cr_expect_eq(d.bucket[RN_HISTOGRAM_BUCKETS - 1], 2);
	cr_expect_eq(rn_durations_quantile_ns(&d, 1000), UINT64_MAX);
}

static void *record_many(void *arg)
{
	for (unsigned i = 0; i < 10000; i++)
		rn_histogram_record(&h, i);
	return arg;
}

Test(histogram, threads_at_the_same_time)
{
	pthread_t thread[4];

	for (unsigned i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, record_many, NULL), 0);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	const struct rn_durations d = all();

	cr_expect_eq(d.count, 40000);
	cr_expect_eq(d.sum_ns, 4 * UINT64_C(49995000));
}

Test(histogram, alone_and_together)
{
	static struct rn_histogram other;

	for (uint64_t ns = 1; ns < UINT64_C(1) << 40; ns = ns * 5 / 3 + 1) {
		rn_histogram_record(&h, ns);
		rn_histogram_record_alone(&other, ns);
	}
	struct rn_durations a = all(), b = { .count = 0 };

	rn_histogram_add(&b, &other);
	cr_expect_eq(memcmp(&a, &b, sizeof(a)), 0);
	rn_durations_add(&a, &b);
	cr_expect_eq(a.count, 2 * b.count);
	cr_expect_eq(a.sum_ns, 2 * b.sum_ns);
	cr_expect_eq(a.max_ns, b.max_ns);
}

Test(histogram, those_within_a_time)
{
	static const uint64_t at[] = { 255, 256, 1023, 1024, 4095, 4096, UINT64_C(1) << 33 };

	for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++)
		rn_histogram_record(&h, at[i]);
	const struct rn_durations d = all();

	cr_expect_eq(rn_durations_within(&d, 256), 1);
	cr_expect_eq(rn_durations_within(&d, 1024), 3);
	cr_expect_eq(rn_durations_within(&d, 4096), 5);
	cr_expect_eq(rn_durations_within(&d, UINT64_C(1) << 33), 6);
	cr_expect_eq(rn_durations_within(&d, UINT64_C(1) << 34), 7);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/histogram.h"

#define PARTS RN_HISTOGRAM_PARTS
#define FIRST_POWER RN_HISTOGRAM_FIRST_POWER
#define PART_BITS RN_HISTOGRAM_PART_BITS

uint64_t rn_histogram_end_ns(unsigned bucket)
{
	const unsigned group = bucket / PARTS, part = bucket % PARTS;
	const unsigned power = group ? group + FIRST_POWER - 1 : FIRST_POWER;
	const uint64_t start = group ? UINT64_C(1) << power : 0;

	if (bucket == RN_HISTOGRAM_BUCKETS - 1)
		return UINT64_MAX;
	return start + ((uint64_t)(part + 1) << (power - PART_BITS));
}

void rn_histogram_record(struct rn_histogram *h, uint64_t ns)
{
	atomic_fetch_add_explicit(&h->bucket[rn_histogram_bucket(ns)], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&h->sum_ns, ns, memory_order_relaxed);
	/* Two threads that find a new maximum at the same time may leave the smaller of the two:
	 * max_ns may be too low, and costs no lock. */
	if (ns > atomic_load_explicit(&h->max_ns, memory_order_relaxed))
		atomic_store_explicit(&h->max_ns, ns, memory_order_relaxed);
}

void rn_histogram_add(struct rn_durations *sum, const struct rn_histogram *h)
{
	const uint64_t max = atomic_load_explicit(&h->max_ns, memory_order_relaxed);

	for (unsigned i = 0; i < RN_HISTOGRAM_BUCKETS; i++) {
		const uint64_t n = atomic_load_explicit(&h->bucket[i], memory_order_relaxed);

		sum->bucket[i] += n;
		sum->count += n;
	}
	sum->sum_ns += atomic_load_explicit(&h->sum_ns, memory_order_relaxed);
	if (max > sum->max_ns)
		sum->max_ns = max;
}

void rn_durations_add(struct rn_durations *sum, const struct rn_durations *d)
{
	for (unsigned i = 0; i < RN_HISTOGRAM_BUCKETS; i++)
		sum->bucket[i] += d->bucket[i];
	sum->count += d->count;
	sum->sum_ns += d->sum_ns;
	if (d->max_ns > sum->max_ns)
		sum->max_ns = d->max_ns;
}

uint64_t rn_durations_within(const struct rn_durations *d, uint64_t ns)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < RN_HISTOGRAM_BUCKETS && rn_histogram_end_ns(i) <= ns; i++)
		n += d->bucket[i];
	return n;
}

uint64_t rn_durations_quantile_ns(const struct rn_durations *d, unsigned thousandths)
{
	/* Rounded up, without a product that overflows. */
	const uint64_t wanted =
		d->count / 1000 * thousandths + (d->count % 1000 * thousandths + 999) / 1000;
	uint64_t seen = 0;

	for (unsigned i = 0; i < RN_HISTOGRAM_BUCKETS; i++) {
		seen += d->bucket[i];
		if (d->bucket[i] && seen >= wanted)
			return rn_histogram_end_ns(i) < d->max_ns ? rn_histogram_end_ns(i)
								  : d->max_ns;
	}
	return 0;
}

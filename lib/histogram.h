/* SPDX-License-Identifier: BSD-2-Clause */
/*
* Histogram of durations in nanoseconds. Each power of two is four buckets, so a quantile is
 * at most a quarter too high. Durations from RN_HISTOGRAM_LONGEST_NS on are in the last bucket.
 *
 * Any number of threads may record and read at the same time. A reader may see a duration in its bucket and
 * not yet in the sum.
 */
#ifndef RN_LIB_HISTOGRAM_H
#define RN_LIB_HISTOGRAM_H

#include <stdatomic.h>
#include <stdint.h>

#define RN_HISTOGRAM_BUCKETS 116
#define RN_HISTOGRAM_LONGEST_NS (UINT64_C(7) << 35) /* 240 s */

#define RN_HISTOGRAM_PART_BITS 2u
#define RN_HISTOGRAM_PARTS (1u << RN_HISTOGRAM_PART_BITS) /* buckets of a power of two */
#define RN_HISTOGRAM_FIRST_POWER 10u /* 1024 ns; below it there are as many buckets of 256 ns */

struct rn_histogram {
	_Atomic uint64_t bucket[RN_HISTOGRAM_BUCKETS];
	_Atomic uint64_t sum_ns, max_ns;
};

/* Some histograms added up. Plain memory, all zero at first. */
struct rn_durations {
	uint64_t bucket[RN_HISTOGRAM_BUCKETS];
	uint64_t count, sum_ns, max_ns;
};

/* Adds to a sum that no other thread adds to, while others may read it. */
static inline void rn_sum_alone(_Atomic uint64_t *sum, uint64_t n)
{
	atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

static inline unsigned rn_histogram_bucket(uint64_t ns)
{
	unsigned power;

	if (ns < UINT64_C(1) << RN_HISTOGRAM_FIRST_POWER)
		return (unsigned)(ns >> (RN_HISTOGRAM_FIRST_POWER - RN_HISTOGRAM_PART_BITS));
	if (ns >= RN_HISTOGRAM_LONGEST_NS)
		return RN_HISTOGRAM_BUCKETS - 1;
	power = 63u - (unsigned)__builtin_clzll(ns);
	return RN_HISTOGRAM_PARTS * (power - RN_HISTOGRAM_FIRST_POWER + 1) +
	       ((unsigned)(ns >> (power - RN_HISTOGRAM_PART_BITS)) & (RN_HISTOGRAM_PARTS - 1));
}

void rn_histogram_record(struct rn_histogram *h, uint64_t ns);

/* Like rn_histogram_record(), at less cost, for the only thread that records there: plain loads and stores, which no other processor has to
 * be asked for. */
static inline void rn_histogram_record_alone(struct rn_histogram *h, uint64_t ns)
{
	rn_sum_alone(&h->bucket[rn_histogram_bucket(ns)], 1);
	rn_sum_alone(&h->sum_ns, ns);
	if (ns > atomic_load_explicit(&h->max_ns, memory_order_relaxed))
		atomic_store_explicit(&h->max_ns, ns, memory_order_relaxed);
}

void rn_histogram_add(struct rn_durations *sum, const struct rn_histogram *h);

void rn_durations_add(struct rn_durations *sum, const struct rn_durations *d);
/* Number of those that took less than that, which is a power of two from 256 on. */
uint64_t rn_durations_within(const struct rn_durations *d, uint64_t ns);

/* First nanosecond beyond a bucket; UINT64_MAX for the last one. */
uint64_t rn_histogram_end_ns(unsigned bucket);

/* The shortest time within which that many thousandths of all were done, as the upper end of a bucket, but
 * not longer than the longest of all. 0 if there are none. */
uint64_t rn_durations_quantile_ns(const struct rn_durations *d, unsigned thousandths);

#endif

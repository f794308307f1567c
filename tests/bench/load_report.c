/* SPDX-License-Identifier: BSD-2-Clause */
/* Latencies, and the line of results. */
#include <stdio.h>
#include <unistd.h>
#include "load.h"

/* The bucket of a latency: the power of two, and five bits behind its first one. */
static unsigned bucket_of(uint64_t ns)
{
	unsigned power;

	if (ns < 32)
		return (unsigned)ns;
	power = 63u - (unsigned)__builtin_clzll(ns);
	return (power - 4) * 32 + (unsigned)(ns >> (power - 5) & 31);
}

static double middle_of(unsigned bucket)
{
	unsigned power = bucket / 32 + 4;

	if (bucket < 32)
		return bucket;
	return (double)((32ull + bucket % 32) << (power - 5)) * (1 + 1.0 / 128);
}

void report_latency(struct load *l, uint64_t ns)
{
	l->histogram[bucket_of(ns)]++;
}

/* In microseconds, the latency that the share p of the calls does not exceed. */
static double percentile(const struct load *l, double p)
{
	double left = p * (double)l->done;
	unsigned i;

	for (i = 0; i < BUCKETS - 1 && left > l->histogram[i]; i++)
		left -= l->histogram[i];
	return middle_of(i) / 1000;
}

void report(const struct load *l, const struct usage *from, const struct usage *to)
{
	double seconds = (double)(to->ns - from->ns) / 1e9, n = l->done ? (double)l->done : 1;
	double us = 1e6 / (double)sysconf(_SC_CLK_TCK), all = to->all - from->all;
	double server = (to->server - from->server) * 1e6;
	const char *const versions[] = { "3", "4.1", "4.2" };

	printf("job=%s vers=%s size=%u conns=%u calls=%u in_flight=%u n=%llu seconds=%.3f",
	       l->job->name, versions[l->o.minor], l->o.size, l->o.conns, l->o.calls,
	       l->o.in_flight, (unsigned long long)l->done, seconds);
	printf(" rate=%.1f p50_us=%.1f p99_us=%.1f", (double)l->done / seconds, percentile(l, 0.5),
	       percentile(l, 0.99));
	if (l->entries)
		printf(" entries=%llu entries_rate=%.0f", (unsigned long long)l->entries,
		       (double)l->entries / seconds);
	if (l->o.server_pid)
		printf(" server_us=%.3f", server / n);
	if (l->o.server_pid && l->entries)
		printf(" entry_us=%.3f", server / (double)l->entries);
	printf(" own_us=%.3f softirq_us=%.3f", (to->own - from->own) / n * 1e6,
	       (to->softirq - from->softirq) * us / n);
	/* In percent of the whole machine. */
	printf(" steal=%.1f others=%.1f\n", all > 0 ? (to->steal - from->steal) / all * 100 : 0,
	       all > 0 ? (to->others - from->others) / all * 100 : 0);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Event threads, and calls that wait for workers. */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "config.h"
#include "daemon/metrics/collect.h"
#include "daemon/process.h"
#include "lib/clock.h"

static void put_waits(struct metrics *m, struct workers *ws)
{
	static const struct metrics_family waits = { "ringnfs_queue_wait_seconds",
						     METRICS_HISTOGRAM, "seconds",
						     "Time that calls have waited for a worker; "
						     "calls that event threads run do not wait." };
	struct rn_durations d = { .count = 0 };

	workers_waits(ws, &d);
	metrics_family(m, &waits);
	metrics_durations(m, &d, NULL);
}

static void put_loops(struct metrics *m, const struct metrics_sources *from)
{
	static const struct metrics_family busy = {
		"ringnfs_event_thread_busy_ratio", METRICS_GAUGE, NULL,
		"Part of the last second in which the event thread did not wait."
	};
	char name[24];

	metrics_family(m, &busy);
	for (unsigned i = 0; i < from->nloops; i++) {
		struct ev_loop_stats st;

		ev_loop_stats(from->loops[i], &st);
		snprintf(name, sizeof(name), "event-%u", i);
		metrics_nano(m, (uint64_t)st.busy_ms * 1000000, "thread", name, NULL);
	}
}

void metrics_threads(struct metrics *m, const struct metrics_sources *from)
{
	put_waits(m, from->parts.workers);
	put_loops(m, from);
}

/* The program and its process. */

static void metrics_process_put_number(struct metrics *m, const struct metrics_family *f,
				       uint64_t value)
{
	metrics_family(m, f);
	metrics_value(m, value, NULL);
}

static void put_cpu(struct metrics *m)
{
	static const struct metrics_family cpu = { "ringnfs_process_cpu_seconds", METRICS_COUNTER,
						   "seconds", "Processor time used." };

	metrics_family(m, &cpu);
	metrics_nano(m, rn_clock_ns(CLOCK_PROCESS_CPUTIME_ID), NULL);
}

static void metrics_put_process_memory(struct metrics *m)
{
	static const struct metrics_family resident = { "ringnfs_process_resident_memory_bytes",
							METRICS_GAUGE, "bytes",
							"Resident memory." };
	static const struct metrics_family virt = { "ringnfs_process_virtual_memory_bytes",
						    METRICS_GAUGE, "bytes", "Virtual memory." };
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned long long size = 0, rss = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%llu %llu", &size, &rss) != 2)
		size = rss = 0;
	if (f)
		fclose(f);
	metrics_process_put_number(m, &resident, rss * page);
	metrics_process_put_number(m, &virt, size * page);
}

static void metrics_put_process_fds(struct metrics *m)
{
	static const struct metrics_family open = { "ringnfs_process_open_fds", METRICS_GAUGE, NULL,
						    "Descriptors in use." };
	static const struct metrics_family most = { "ringnfs_process_max_fds", METRICS_GAUGE, NULL,
						    "Descriptors that may be in use." };
	static const struct metrics_family threads = { "ringnfs_process_threads", METRICS_GAUGE,
						       NULL, "Threads." };
	struct rlimit r = { 0 };

	metrics_process_put_number(m, &open, process_fds());
	if (getrlimit(RLIMIT_NOFILE, &r) == 0)
		metrics_process_put_number(m, &most, r.rlim_cur);
	metrics_process_put_number(m, &threads, process_threads());
}

void metrics_process(struct metrics *m, const struct metrics_sources *from)
{
	static const struct metrics_family build = { "ringnfs_build", METRICS_INFO, NULL,
						     "Version of ringnfsd." };
	static const struct metrics_family start = { "ringnfs_start_time_seconds", METRICS_GAUGE,
						     "seconds",
						     "Start of the server, since 1970." };
	static const struct metrics_family clients = {
		"ringnfs_clients", METRICS_GAUGE, NULL,
		"Addresses that are connected; of IPv6, networks of 64 bits."
	};

	metrics_family(m, &build);
	metrics_value(m, 1, "version", PACKAGE_VERSION, NULL);
	metrics_process_put_number(m, &start, (uint64_t)from->started);
	put_cpu(m);
	metrics_put_process_memory(m);
	metrics_put_process_fds(m);
	metrics_family(m, &clients);
	metrics_value(m, rpc_clients_count(from->clients), NULL);
}

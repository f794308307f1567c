/* SPDX-License-Identifier: BSD-2-Clause */
/* Workers, event threads, and calls that wait for workers. */
#include "daemon/metrics/collect.h"

static void put_workers(struct metrics *m, const struct workers_stats *w)
{
	static const struct metrics_family workers = { "ringnfs_workers", METRICS_GAUGE, NULL,
						       "Worker threads by what they do." };
	static const struct metrics_family stuck = {
		"ringnfs_stuck_threads", METRICS_GAUGE, NULL,
		"Workers and event threads that have waited for a file system for two seconds or "
		"longer."
	};
	static const struct metrics_family queued = { "ringnfs_queued_calls", METRICS_GAUGE, NULL,
						      "Calls that wait for a worker." };

	metrics_family(m, &workers);
	metrics_value(m, w->busy, "state", "busy", NULL);
	metrics_value(m, w->workers - w->busy - w->stuck, "state", "idle", NULL);
	metrics_value(m, w->stuck, "state", "stuck", NULL);
	metrics_family(m, &stuck);
	metrics_value(m, w->stuck + w->stuck_loops, NULL);
	metrics_family(m, &queued);
	metrics_value(m, w->queued, NULL);
}

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
	struct workers_stats w;

	workers_stats(from->held.workers, &w);
	put_workers(m, &w);
	put_waits(m, from->held.workers);
	put_loops(m, from);
}

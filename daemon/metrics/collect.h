/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The metrics of the server, which doc/guide/monitoring.md lists. Those that are single numbers
 * are rows of a table (daemon/counters/numbers.c); each file beside this one writes others of a subject. They read counters, atomics and what short locks guard, and never wait for a file system or an
 * event thread. The number of values is bounded: operations, statuses, exports and devices, but no clients and files.
 */
#ifndef RN_DAEMON_METRICS_COLLECT_H
#define RN_DAEMON_METRICS_COLLECT_H

#include <stdbool.h>
#include <time.h>

#include "admin/metrics.h"
#include "conf/settings.h"
#include "daemon/counters/counters.h"
#include "daemon/exports/export_set.h"
#include "daemon/server_parts.h"
#include "rpc/client.h"
#include "transport/event_loop.h"

struct cluster_part;

/* Borrowed pointers. */
struct metrics_sources {
	struct server_parts parts;
	const struct counters *counters;
	const struct cfg_settings *settings;
	struct exports *exports;
	struct rpc_clients *clients;
	struct cluster_part *cluster; /* NULL: the server is alone */
	struct ev_loop *const *loops;
	unsigned nloops;
	time_t started;
	bool paths; /* exports have their paths as well as their ids */
};

/* The whole text, which the caller frees. NULL: no memory. */
char *metrics_collect(const struct metrics_sources *from, enum metrics_format format, size_t *len);

/* metrics_calls.c */
void metrics_calls(struct metrics *m, const struct metrics_sources *from);
/* metrics_exports.c */
void metrics_exports(struct metrics *m, const struct metrics_sources *from);
/* metrics_cluster.c: nothing if the server is alone */
void metrics_cluster(struct metrics *m, const struct metrics_sources *from);
/* metrics_process.c */
void metrics_process(struct metrics *m, const struct metrics_sources *from);
void metrics_threads(struct metrics *m, const struct metrics_sources *from);
/* metrics_rdma.c: nothing if RDMA is not served */
void metrics_rdma_devices(struct metrics *m, const struct metrics_sources *from);

#endif

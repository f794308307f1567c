/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The metrics of the server, which doc/guide/monitoring.md lists. Each file beside this one writes those of a
 * subject. They read counters, atomics and what short locks guard, and never wait for a file system or an
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
#include "daemon/held.h"
#include "rpc/client.h"
#include "transport/event_loop.h"

/* Borrowed pointers. */
struct metrics_sources {
	struct held_sources held;
	const struct counters *counters;
	const struct cfg_settings *settings;
	struct exports *exports;
	struct rpc_clients *clients;
	struct ev_loop *const *loops;
	unsigned nloops;
	time_t started;
	bool paths; /* exports have their paths as well as their ids */
};

/* The whole text, which the caller frees. NULL: no memory. */
char *metrics_collect(const struct metrics_sources *from, enum metrics_format format, size_t *len);

/* calls.c */
void metrics_calls(struct metrics *m, const struct metrics_sources *from);
/* connections.c */
void metrics_connections(struct metrics *m, const struct metrics_sources *from);
/* exports.c */
void metrics_exports(struct metrics *m, const struct metrics_sources *from);
/* gss.c: nothing if Kerberos is not served */
void metrics_gss(struct metrics *m, const struct metrics_sources *from);
/* memory.c: memory, caches, descriptors */
void metrics_memory(struct metrics *m, const struct metrics_sources *from);
/* nfs4.c */
void metrics_nfs4(struct metrics *m, const struct metrics_sources *from);
/* process.c */
void metrics_process(struct metrics *m, const struct metrics_sources *from);
/* rdma.c: nothing if RDMA is not served */
void metrics_rdma(struct metrics *m, const struct metrics_sources *from);
/* records.c: records by which clients get their locks back after a restart */
void metrics_records(struct metrics *m, const struct metrics_sources *from);
/* threads.c */
void metrics_threads(struct metrics *m, const struct metrics_sources *from);

#endif

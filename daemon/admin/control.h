/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon's side of the control socket: the table of what may be asked for. Each subject is a file
 * beside this one, which exports its handlers; they read counters, atomics and what short locks guard,
 * and never wait for an event thread.
 */
#ifndef RN_DAEMON_ADMIN_CONTROL_H
#define RN_DAEMON_ADMIN_CONTROL_H

#include <pthread.h>

#include "admin/admin.h"
#include "conf/settings.h"
#include "daemon/counters/counters.h"
#include "daemon/counters/daemon_trace.h"
#include "daemon/daemon_register.h"
#include "daemon/exports/export_set.h"
#include "daemon/limits.h"
#include "daemon/logs.h"
#include "daemon/metrics/collect.h"
#include "daemon/names/names.h"
#include "daemon/server_parts.h"
#include "daemon/tasks.h"
#include "rpc/client.h"
#include "vfs/export.h"

struct control;
struct cluster_part;
struct drain;
struct nfs3_server;

/* Borrowed pointers, which outlive the control; what may be NULL in parts may be here. */
struct tls_users;

struct control_sources {
	const struct cfg_settings *settings;
	struct logs *logs;
	const struct limits *limits;
	struct server_parts parts;
	const struct counters *counters;
	struct rpc_clients *clients;
	const struct rpc_server *rpc;
	struct trace *trace;
	struct nfs3_server *nfs3;      /* or NULL */
	struct vfs_exports view;       /* of exports, for one handle or path */
	pthread_mutex_t *clients_lock; /* held while clients' state is ended */
	struct askers *askers;
	struct exports *exports;
	struct cluster_part *cluster; /* or NULL */
	struct drain *drain;
	struct tls_users *tls_users; /* or NULL */
	struct tasks *tasks;
	/* Reads the exports again, with all that belongs to a reload; for the main thread. */
	int (*reload)(void *ctx, struct exports_outcome *out);
	void *reload_ctx;
	struct registration_ports ports; /* ports of TCP; RDMA's may come later */
	struct ev_loop *const *loops;
	unsigned event_threads;
	const struct start_report *report;
};

/* Takes the socket, so that a second daemon is told before it does anything, and listens for those who read metrics
 * over TCP. *out is NULL if the settings want neither. 0, or -errno, logged. */
int control_new(const struct cfg_settings *settings, const struct rn_logger *log,
		struct control **out);
/* Answers from now on. 0 or -errno. c NULL is allowed. */
int control_start(struct control *c, const struct control_sources *sources);
/* Ends it, before anything that it reads. NULL is allowed. */
void control_stop(struct control *c);

/* GET /metrics: a text that is made anew when it is older than a fifth of a second, so that many who ask cost as much
 * as one. Each server of HTTP has a page of its own, which its threads share. */

struct metrics_page {
	struct metrics_sources from;
	pthread_mutex_t lock; /* guards kept, while a text is made, too */
	struct {
		struct admin_text *text; /* NULL: none was made yet */
		uint64_t made_ns;
	} kept[METRICS_FORMATS];
};

#endif

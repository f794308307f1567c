/* SPDX-License-Identifier: BSD-2-Clause */
/*
* Tells the service manager of the running server, by sd_notify(3): a line of status, and signs
 * of life if it wants them (WatchdogSec= in systemd.service(5)).
 *
 * A sign of life means that all event threads turn. One that is stuck in a file system loses its loop to
 * another thread (daemon/workers/worker_watch.c), so a file system that does not answer keeps no sign back: a restart
 * would not make it answer. A loop that nobody turns serves its clients no more, and a restart helps.
 */
#ifndef RN_DAEMON_SERVICE_MANAGER_H
#define RN_DAEMON_SERVICE_MANAGER_H

#include <stddef.h>
#include <stdint.h>

#include "daemon/server_parts.h"
#include "lib/log.h"
#include "rpc/client.h"
#include "transport/event_loop.h"

struct service_manager;

/* Borrowed pointers. */
struct service_manager_config {
	struct ev_loop *const *loops;
	unsigned nloops;
	struct server_parts parts;
	struct rpc_clients *clients;
	const struct rn_logger *log;
};

/* Starts a thread that tells it, once a second. *out is NULL if there is no service manager. 0 or -errno. */
int service_manager_start(const struct service_manager_config *cfg, struct service_manager **out);
/* To be called before any of the sources ends. NULL is allowed. */
void service_manager_stop(struct service_manager *m);

/* The line that `systemctl status` shows: who is there, and what was done for them in the last seconds. */

/* Counts that only grow, and the time when they were read. */
struct service_totals {
	uint64_t ms; /* rn_now_ms() */
	uint64_t calls;
	uint64_t bytes_in, bytes_out; /* by TCP, and by RDMA Reads and Writes */
};

struct service_now {
	uint64_t clients, connections;
	unsigned stuck; /* workers that wait for a file system which does not answer */
	struct service_totals totals;
};

enum { SERVICE_STATUS_MAX = 160 };

#endif

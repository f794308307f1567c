/* SPDX-License-Identifier: BSD-2-Clause */
/* A call's first file handle and its export, found without decoding the call: to choose its lane, and to show it.
 * Nothing is verified: a client that sends a wrong one only gets a worse lane. */
#ifndef RN_DAEMON_WORKERS_STANDING_H
#define RN_DAEMON_WORKERS_STANDING_H

#include <stdbool.h>

#include "daemon/exports/export_set.h"
#include "rpc/request.h"
#include "vfs/types.h"

/* False: the call has none, or not in the usual position, or its memory was given back already. */
bool first_handle(const struct rpc_request *req, struct vfs_fh *out);
bool first_handle_export(const struct rpc_request *req, uint32_t *export_id);

/*
 * Standing of hosts with the exports, for rpc_server.standing. A host is a stranger unless some
 * line of exports(5) admits it. The answer is kept with the connection, for some seconds and until
 * the exports change, so it costs a call two loads.
 *
 * Admitted hosts are remembered by address (a bounded number; the one unseen for longest is
 * forgotten first), so that a host whose last export is removed may give back its state for the
 * time of a lease. Strangers are not remembered, so they cannot displace others.
 */

struct standing;

struct standing_config {
	struct exports *exports;
	const struct rn_logger *log;
	unsigned lease_seconds; /* time in which hosts that were admitted may give state back */
};

struct standing *standing_new(const struct standing_config *cfg); /* NULL: no memory */
void standing_free(struct standing *s);

/* Any thread; does not wait. */
enum rpc_standing standing_of(void *standing, struct rpc_conn *conn);

#endif

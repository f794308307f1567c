/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which hosts the exports admit at all: what rpc_server.standing is. A host is a stranger unless
 * some line of exports(5) is for it. The answer is kept with the connection, for some seconds and
 * until the exports change, so it costs a call two loads.
 *
 * Hosts that were admitted are remembered by address (a bounded number, longest unseen forgotten
 * first), so that one whose last export is taken away may give back what it holds for a lease.
 * Strangers are not remembered, and so cannot push anybody out.
 */
#ifndef RN_DAEMON_STANDING_H
#define RN_DAEMON_STANDING_H

#include "daemon/export_set.h"
#include "rpc/request.h"

struct standing;

struct standing_config {
	struct exports *exports;
	const struct rn_logger *log;
	unsigned lease_seconds; /* for which those that were admitted may give things back */
};

struct standing *standing_new(const struct standing_config *cfg); /* NULL: no memory */
void standing_free(struct standing *s);

/* Any thread; does not wait. */
enum rpc_standing standing_of(void *standing, struct rpc_conn *conn);

#endif

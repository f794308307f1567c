/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the server did: calls, errors and time of each procedure, and the transports' own numbers.
 * Written to the log on SIGUSR1 and, at debug level, at the end.
 */
#ifndef RN_DAEMON_COUNTERS_H
#define RN_DAEMON_COUNTERS_H

#include "lib/log.h"
#include "rpc/program.h"

#define COUNTERS_PROCS 32

struct counters {
	struct {
		_Atomic uint64_t calls, errors, total_ns, max_ns;
	} proc[RPC_PROGRAMS_MAX][COUNTERS_PROCS];
	const struct rpc_server *server;
};

/* rpc_server.observe; ctx is a struct counters. */
void counters_observe(void *ctx, const struct rpc_request *req, uint64_t elapsed_ns, bool error);
void counters_log(struct counters *c, const struct rn_logger *log, enum rn_level level);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of the server: calls, errors and times of each procedure, and of each operation of NFSv4.
 * Written to the log on SIGUSR1 and, at debug level, at the end. */
#ifndef RN_DAEMON_COUNTERS_H
#define RN_DAEMON_COUNTERS_H

#include "lib/histogram.h"
#include "lib/log.h"
#include "nfs4/proto.h"
#include "rpc/program.h"

#define COUNTERS_PROCS 32
#define COUNTERS_SHARDS 16

struct counter {
	_Atomic uint64_t errors;
	struct rn_histogram time;
};

/* Written by every sixteenth thread, so that threads seldom wait for each other's caches. */
struct counters_shard {
	_Alignas(64) struct counter proc[RPC_PROGRAMS_MAX][COUNTERS_PROCS];
	struct counter v4[NFSPROC4_COUNT];
	struct counter op[NFS4_OPS]; /* index 0: unknown operations */
};

struct counters {
	struct counters_shard shard[COUNTERS_SHARDS];
	const struct rpc_server *server;
};

/* rpc_server.observe; ctx is a struct counters. */
void counters_observe(void *ctx, const struct rpc_request *req, uint64_t elapsed_ns, bool error);
/* nfs4_config.observe_op; ctx is a struct counters. */
void counters_observe_op(void *ctx, const struct rpc_request *req, uint32_t opnum,
			 uint64_t elapsed_ns, bool error);
void counters_log(const struct counters *c, const struct rn_logger *log, enum rn_level level);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resources that the process holds at this moment, as one line of `name=number`: written to the log
 * with the counters, and documented in ringnfsd(8). When every client has gone and nothing is
 * cached, all but the limits are zero; a number that does not return to zero is a leak.
 */
#ifndef RN_DAEMON_HELD_H
#define RN_DAEMON_HELD_H

#include "daemon/workers.h"
#include "lib/budget.h"
#include "lib/log.h"
#include "lib/payload.h"
#include "lib/pipe.h"
#include "nfs4/nfs4_server.h"
#include "rpc/drc.h"
#include "transport/rdma/rdma_server.h"
#include "transport/tcp/tcp_server.h"
#include "vfs/vfs.h"

/* Borrowed pointers. nfs4, tcp and rdma may be NULL: not served. */
struct held_sources {
	struct rn_budget *budget;
	struct rn_payload_pool *pool;
	struct rn_pipe_pool *pipes; /* or NULL */
	struct vfs *vfs;
	struct workers *workers;
	struct drc *drc;
	struct nfs4_server *nfs4;
	struct rn_budget *nfs4_memory;
	struct tcp_server *tcp;
	struct rr_server *rdma;
};

void held_log(const struct held_sources *from, const struct rn_logger *log, enum rn_level level);

#endif

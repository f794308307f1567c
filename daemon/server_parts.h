/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RN_DAEMON_SERVER_PARTS_H
#define RN_DAEMON_SERVER_PARTS_H

#include "daemon/workers/workers.h"
#include "lib/budget.h"
#include "lib/log.h"
#include "lib/payload.h"
#include "lib/pipe.h"
#include "nfs4/nfs4_server.h"
#include "nsm/nsm.h"
#include "rpc/drc.h"
#include "transport/rdma/rdma_server.h"
#include "transport/tcp/tcp_server.h"
#include "transport/udp/udp_server.h"
#include "vfs/vfs.h"

struct gss;
struct numbers_former;

/* How this program has started. */
struct start_report {
	enum {
		START_FRESH,	 /* without state of another program or run */
		START_WHOLE,	 /* with the state of the program before it (daemon/hand_over.h) */
		START_LISTENERS, /* with its listening sockets only */
		START_MOVED, /* with the state of this member's last run, elsewhere (daemon/cluster_state.h) */
	} how;
	char version[32];  /* version of the program before this one */
	char why[128];	   /* START_LISTENERS: the reason */
	uint64_t begun_ns; /* when calls began to wait: CLOCK_MONOTONIC; START_MOVED: time of day */
	_Atomic uint64_t ms; /* START_WHOLE, START_MOVED: for how long calls have waited */
	unsigned count;	     /* programs before this one, in this process */
	_Atomic unsigned
		refused; /* restarts that were not begun, as the next program would not start */
};

/* The parts of a running server, for those who show and administer them. Borrowed pointers. nfs4, nsm, tcp, udp, rdma and gss may be NULL: not
 * served. */
struct server_parts {
	struct rn_budget *budget;
	struct rn_payload_pool *pool;
	struct rn_pipe_pool *pipes; /* or NULL */
	struct vfs *vfs;
	struct workers *workers;
	struct drc *drc;
	struct nfs4_server *nfs4;
	struct nsm *nsm;
	struct rn_budget *nfs4_memory;
	struct tcp_server *tcp;
	struct udp_server *udp;
	struct rr_server *rdma;
	struct gss *gss;
	const struct numbers_former *former; /* of the programs before this one; or NULL */
};

#endif

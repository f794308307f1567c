/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RN_DAEMON_HELD_H
#define RN_DAEMON_HELD_H

#include "daemon/exports/export_set.h"
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

struct nfs3_server;
struct nfs4_server;

/* Counts what clients hold below exports, by client. The caller has the lock under which clients' state is ended. The
 * servers may be NULL; out is zeroed, and its list is the caller's to free. */
void held_below(struct nfs4_server *nfs4, struct nfs3_server *nfs3,
		const struct vfs_exports_lost *below, struct exports_revoked *out);

/*
 * Resources that the process holds at this moment, each a name and a number: written to the log with
 * the counters, part of the control socket's status, and documented in ringnfsd(8). When every client has gone and nothing is
 * cached, all but the limits are zero; a number that does not return to zero is a leak.
 */

struct gss;

/* Borrowed pointers. nfs4, nsm, tcp, udp, rdma and gss may be NULL: not served. */
struct held_sources {
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
};

struct held_sink {
	void (*add)(void *ctx, const char *name, uint64_t value);
	void *ctx;
};

/* Gives the numbers that cost next to nothing: all but those of the process's descriptors and
 * threads, which /proc has to be read for. Any thread. */
void held_each(const struct held_sources *from, const struct held_sink *to);
/* Logs all of them in one line. */
void held_log(const struct held_sources *from, const struct rn_logger *log, enum rn_level level);

#endif

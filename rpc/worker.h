/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker as requests see it: the inbox that work for it is posted to. The daemon makes and runs
 * workers. */
#ifndef RN_RPC_WORKER_H
#define RN_RPC_WORKER_H

#include "lib/inbox.h"

struct rpc_request;
struct vfs_worker;

struct rpc_worker {
	unsigned index;
	struct rn_inbox inbox;	/* nodes are rpc_request.node */
	struct vfs_worker *vfs; /* its ring and identity; used on the worker's thread only */
};

/* Runs work(req) on req->worker, after the work posted before. Callable from any thread. */
void rpc_requeue(struct rpc_request *req, void (*work)(struct rpc_request *req));

#endif

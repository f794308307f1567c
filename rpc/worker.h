/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker as requests see it: where to post what shall go on there. The daemon makes and runs them. */
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

/* Runs work(req) on req->worker as soon as it comes to it. Callable from any thread. */
void rpc_requeue(struct rpc_request *req, void (*work)(struct rpc_request *req));

#endif

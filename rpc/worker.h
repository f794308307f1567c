/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker as requests see it: the inbox that work for it is posted to. The daemon makes and runs
 * workers.
 *
 * A *prompt* worker runs on an event thread, which other clients wait for: it begins calls, and
 * what would wait or needs another identity moves to a worker of the pool, once and for good.
 */
#ifndef RN_RPC_WORKER_H
#define RN_RPC_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/inbox.h"

struct rpc_request;
struct vfs_worker;

struct rpc_worker {
	unsigned index;
	struct rn_inbox inbox;	/* nodes are rpc_request.node; unused if it is prompt */
	struct vfs_worker *vfs; /* its ring and identity; used on the worker's thread only */
	/* Prompt workers: gives req to a worker of the pool, which calls req->work(req). Callable
	 * from any thread. Others: NULL. */
	void (*move)(struct rpc_worker *from, struct rpc_request *req);
	/* CLOCK_MONOTONIC when a call that was observed ended here; for the owner, who sets it to 0 before a call. */
	_Atomic uint64_t ended_ns;
};

/* Runs work(req) on req->worker, after the work posted before; on a worker of the pool, if
 * req->worker is prompt. Callable from any thread. */
void rpc_requeue(struct rpc_request *req, void (*work)(struct rpc_request *req));

/* True if the request is on a prompt worker: it must not wait. */
bool rpc_is_prompt(const struct rpc_request *req);

#endif

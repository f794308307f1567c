/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A worker as requests see it. The daemon makes and runs workers.
 *
 * An event thread has a worker of its own. Other clients wait for that thread: the worker begins calls, and
 * what would wait or needs another identity moves to a worker of the pool, for good.
 */
#ifndef RN_RPC_WORKER_H
#define RN_RPC_WORKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/fiber.h"
#include "lib/inbox.h"

struct rpc_proc;
struct rpc_program;
struct rpc_request;
struct vfs_worker;

struct rpc_worker {
	unsigned index;
	struct rn_stacks *stacks; /* of all workers; set by the owner */
	struct rn_fiber *spare;	  /* for the next call: rpc_is_ready; put by the owner at the end */
	struct rn_inbox inbox;	  /* for the owner; nodes are rpc_request.node */
	struct vfs_worker *vfs;	  /* its ring and identity; used on the worker's thread only */
	bool on_event_thread;
	/* Gives req, which is at rest, to a worker that may wait and calls rpc_run. Callable from any thread. NULL:
	 * it goes to this worker's inbox. */
	void (*move)(struct rpc_worker *from, struct rpc_request *req);
	/* CLOCK_MONOTONIC when a call that was observed ended here; for the owner, who sets it to 0 before a call. */
	_Atomic uint64_t ended_ns;
};

/* True if there is a stack for the next call. False: no memory for one now. On the worker's thread. */
bool rpc_is_ready(struct rpc_worker *w);
/* For the owner of req->worker, on its thread: goes on with a call that waits, or calls req->work(req) in a fiber. That
 * needs rpc_is_ready. req may have been given back, or be another thread's, when it returns. */
void rpc_run(struct rpc_request *req);
/* In a call: makes sure that it runs on a worker of the pool. */
void rpc_move(struct rpc_request *req);
/* In a call: has it go on at the worker that the owner of the workers chooses, after rpc_worker.move. */
void rpc_hand_over(struct rpc_request *req);

/* True if the request is on an event thread's worker: it must not wait. */
bool rpc_on_event_thread(const struct rpc_request *req);

/* Calls under way, and what they wait for, as others see them: each fiber tells of its call (struct rn_fiber.about). */

/* In a call of that procedure: shows it from now on. */
void rpc_call_show(struct rpc_request *req, const struct rpc_program *program,
		   const struct rpc_proc *proc);
/* The operation of the COMPOUND that it runs. */
void rpc_call_show_op(struct rpc_request *req, uint32_t opnum);

struct rpc_call_view {
	uint64_t arrived_ns; /* CLOCK_MONOTONIC */
	uint64_t conn_id;
	uint32_t xid, vers;
	const struct rpc_program *program; /* of the rpc_server */
	const struct rpc_proc *proc;
	uint32_t opnum;		    /* 0: none */
	enum rn_wait_for waits_for; /* RN_WAIT_NOTHING: it runs */
	uint64_t waits_since_ns;    /* CLOCK_MONOTONIC_COARSE */
	uint64_t waits_until_ns;    /* CLOCK_MONOTONIC; 0: as long as that takes */
};

/* Copies up to n calls, the oldest first, and says how many there are. Returns the number of copies, or -ENOMEM. Any thread. */
int rpc_calls_view(struct rn_stacks *stacks, struct rpc_call_view *out, size_t n, size_t *all);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls under way, and what they wait for, as others see them: each fiber tells of its call (struct rn_fiber.about). */
#ifndef RN_RPC_CALL_VIEW_H
#define RN_RPC_CALL_VIEW_H

#include <stddef.h>
#include <stdint.h>

#include "lib/fiber.h"

struct rpc_proc;
struct rpc_program;
struct rpc_request;

/* In a call whose procedure was found: shows it from now on. */
void rpc_call_show(struct rpc_request *req, const struct rpc_program *program);
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
};

/* Copies up to n calls, the oldest first, and says how many there are. Returns the number of copies, or -ENOMEM. Any thread. */
int rpc_calls_view(struct rn_stacks *stacks, struct rpc_call_view *out, size_t n, size_t *all);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The monitor's program on the transports of the server. UDP has a socket of its own (nsm/nsm_answer.c). */
#include "lib/util.h"
#include "nsm/serve.h"

static enum rpc_run nsm_program_run(struct rpc_request *req, void *args)
{
	struct nsm_caller from = { .port = rpc_address_port(&req->conn->peer), .req = req };
	enum rpc_run how;

	(void)args;
	rpc_address_of(&req->conn->peer, &from.addr);
	how = nsm_serve(req->program_ctx, &from, req->call.proc, &req->in, &req->out);
	/* No argument may come by a Read chunk. */
	if (how == RPC_RUN_DONE && xdr_in_placed_left(&req->in))
		return RPC_RUN_GARBAGE;
	return how;
}

/* Hosts with locks are, or were, admitted; the others are for root of this machine, who is asked for. */
#define ROW(row, text, hosts)                                                                      \
	[row] = &(const struct rpc_proc)                                                           \
	{                                                                                          \
		.name = text, .run = nsm_program_run, .flags = RPC_RUN_DECODES | (hosts)           \
	}

static const struct rpc_proc *const procs[SM_PROCS] = {
	ROW(SM_NULL, "NULL", RPC_FOR_ALL),
	ROW(SM_STAT, "STAT", RPC_FOR_ALL),
	ROW(SM_MON, "MON", RPC_FOR_ALL),
	ROW(SM_UNMON, "UNMON", RPC_FOR_ALL),
	ROW(SM_UNMON_ALL, "UNMON_ALL", RPC_FOR_ALL),
	ROW(SM_SIMU_CRASH, "SIMU_CRASH", RPC_FOR_ALL),
	ROW(SM_NOTIFY, "NOTIFY", RPC_FOR_FORMER),
};

static const struct rpc_version versions[] = {
	{ .vers = NSM_VERSION, .procs = procs, .nprocs = SM_PROCS },
};

void nsm_program(struct nsm *n, struct rpc_program *out)
{
	*out = (struct rpc_program){
		.prog = NSM_PROGRAM,
		.name = "nsm",
		.versions = versions,
		.nversions = rn_array_size(versions),
		.ctx = n,
	};
}

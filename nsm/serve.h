/* SPDX-License-Identifier: BSD-2-Clause */
/* The procedures of the status monitor's program, whatever transport a call came by. */
#ifndef RN_NSM_SERVE_H
#define RN_NSM_SERVE_H

#include "nsm/nsm.h"
#include "rpc/program.h"

enum nsm_proc {
	SM_NULL,
	SM_STAT,
	SM_MON,
	SM_UNMON,
	SM_UNMON_ALL,
	SM_SIMU_CRASH,
	SM_NOTIFY,
	SM_PROCS
};

struct nsm_caller {
	struct rpc_address addr;
	uint16_t port;
	/* Call that waits while a record is being written. NULL: a datagram, which is to be served again then, */
	struct rpc_request *req;
	bool again; /* as is said here */
};

/* Decodes, runs and puts the result. RPC_RUN_DONE, _GARBAGE or _AUTH_TOOWEAK. proc is below SM_PROCS. */
enum rpc_run nsm_serve(struct nsm *n, struct nsm_caller *from, uint32_t proc, struct xdr_in *in,
		       struct xdr_out *out);

#endif

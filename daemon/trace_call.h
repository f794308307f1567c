/* SPDX-License-Identifier: BSD-2-Clause */
/* One answered call, as a trace shows it: plain memory that needs nothing of the request any more. */
#ifndef RN_DAEMON_TRACE_CALL_H
#define RN_DAEMON_TRACE_CALL_H

#include "rpc/address.h"
#include "rpc/request.h"
#include "vfs/types.h"

#define TRACE_OPS 32u /* operations of a COMPOUND that are kept */

/* Meaning of trace_call.status. */
enum trace_outcome {
	TRACE_STATUS,	/* the program's status */
	TRACE_NO_ERROR, /* the result has no status */
	TRACE_ACCEPT,	/* an error of RPC: enum rpc_accept_stat */
	TRACE_AUTH,	/* the credential is refused: enum rpc_auth_stat */
	TRACE_RPC,	/* another version of RPC */
	TRACE_UNSENT,	/* the reply did not fit what the client had offered */
};

struct trace_call {
	uint64_t ended_ns; /* monotonic, for order */
	uint64_t wall_ns;  /* time of day at the end, which may jump */
	uint64_t took_ns;
	struct rpc_address peer;
	uint16_t port;
	const char *netid;
	const char *name; /* of the procedure; NULL: there is none of that number */
	uint32_t xid, prog, vers, proc;
	bool has_uid;
	uint32_t uid; /* of AUTH_SYS, as the client sent it */
	enum trace_outcome outcome;
	uint32_t status;
	uint64_t bytes_in; /* 0: the memory of the call was given back before */
	uint64_t bytes_out;

	/* COMPOUND. */
	bool compound;
	uint32_t minor;
	uint32_t nops;	/* operations that ran */
	uint32_t nkept; /* of them, those in ops[] */
	uint8_t ops[TRACE_OPS];
	uint64_t clientid; /* 0: not known */

	struct vfs_fh fh; /* len 0: none, or not known */
	uint32_t export_id;
	bool has_export;
};

/* Within rpc_server.observe. error: the server has refused the call. */
void trace_call_make(struct trace_call *t, const struct rpc_request *req, uint64_t took_ns,
		     bool error);
/* True if the call was refused or has failed. */
bool trace_call_failed(const struct trace_call *t);

#endif

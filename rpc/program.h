/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Program tables and dispatch. A program is a table of versions, each a table of procedures;
 * handlers decode into the request's arena, run on the request's worker and encode their result
 * into req->out, which rpc_dispatch has already started with an accepted, successful header.
 */
#ifndef RN_RPC_PROGRAM_H
#define RN_RPC_PROGRAM_H

#include <stdatomic.h>
#include <stddef.h>

#include "rpc/drc.h"
#include "rpc/request.h"

enum rpc_run {
	RPC_RUN_DONE,	 /* the result is in req->out */
	RPC_RUN_PENDING, /* rpc_complete(req) will be called on the same worker */
	RPC_RUN_GARBAGE, /* arguments are wrong in a way that only the handler sees */
	RPC_RUN_SYSTEM_ERR,
	RPC_RUN_TOO_LONG, /* the reply does not fit what the client offered; nothing was done */
	RPC_RUN_NO_ROOM, /* the same; some was done, and req->out is for who sends the call again */
	RPC_RUN_AUTH_TOOWEAK,
	RPC_RUN_AUTH_BADCRED, /* not from this host, as a stranger is told */
	/* Nothing was done, as something is not known yet: run is called again in a while, with
	 * the same arguments. Not if req->must_answer. */
	RPC_RUN_AGAIN,
};

enum rpc_proc_flags {
	RPC_NONIDEMPOTENT = 1, /* answered through the duplicate request cache */
	/* decode leaves the rest of the arguments to run, which also sees to Read chunks that are
	   no argument */
	RPC_RUN_DECODES = 2,
	/*
	 * Whom a procedure is for, by the caller's standing. None of these: for hosts that some
	 * export admits; while that is not known it runs, since it asks for its export itself and
	 * says then when to come again.
	 */
	RPC_FOR_FORMER = 4, /* gives something back, or looks at req->standing by itself */
	RPC_FOR_ALL = 8,    /* tells strangers that they are refused, by req->standing */
	RPC_NO_EXPORT = 16, /* asks for no export: runs only for those known to be admitted */
};

struct rpc_counters {
	_Atomic uint64_t calls, errors, total_ns;
};

struct rpc_proc {
	const char *name; /* as in the RFC; NULL: no such procedure */
	/* Decodes *args (args_size zeroed bytes); returns false for garbage. NULL: no arguments. */
	bool (*decode)(struct xdr_in *in, void *args);
	size_t args_size;
	enum rpc_run (*run)(struct rpc_request *req, void *args);
	unsigned flags;
	/* Worst-case result bytes of a procedure that changes something: checked against
	 * req->reply_max before it runs. 0 for others. */
	uint32_t reply_size;
	/* Of a procedure with RPC_NONIDEMPOTENT: does this call need the cache? Looked at after
	 * decode, which has left req->in behind what it decoded; must not move it. NULL: every call
	 * does. */
	bool (*cacheable)(const struct rpc_request *req, const void *args);
};

struct rpc_version {
	uint32_t vers;
	const struct rpc_proc *procs;
	uint32_t nprocs;
	void *ctx; /* req->program_ctx; NULL: the program's */
};

struct rpc_program {
	uint32_t prog;
	const char *name;
	const struct rpc_version *versions; /* ascending */
	unsigned nversions;
	void *ctx; /* req->program_ctx */
};

#define RPC_PROGRAMS_MAX 8

struct rpc_server {
	struct rpc_program programs[RPC_PROGRAMS_MAX];
	unsigned nprograms;
	struct drc *drc; /* may be NULL: no cache */
	struct rn_payload_pool *pool;
	/*
	 * Standing of the host at the other end of a connection. Asked before every call but NULL's
	 * (procedure 0, which is for all): those that it is not for are denied as the kernel's
	 * server denies them, AUTH_ERROR with AUTH_BADCRED, before their arguments are looked at.
	 * Does not wait. May be NULL: everybody is admitted.
	 */
	enum rpc_standing (*standing)(void *ctx, struct rpc_conn *conn);
	void *standing_ctx;
	/* Called when a request is answered, for counters; may be NULL. req->proc is NULL when the
	 * call was refused before its procedure was found. */
	void (*observe)(void *ctx, const struct rpc_request *req, uint64_t elapsed_ns, bool error);
	void *observe_ctx;
	/* Called on its worker when a request is about to go back to its transport; may be NULL. */
	void (*ended)(void *ctx, struct rpc_request *req);
	void *ended_ctx;
	/* Keeps a request that is to be run again in a while: again(req) is then called on its
	 * worker, with req->must_answer set when it has waited long enough. False: it is not kept,
	 * as too many wait. NULL: none is. */
	bool (*park)(void *ctx, struct rpc_request *req, void (*again)(struct rpc_request *req));
	void *park_ctx;
};

/* Decodes and runs one call on the calling worker's thread; the request is answered, dropped, or
 * pending when it returns. Is the `work` function of a fresh request. */
void rpc_dispatch(struct rpc_server *server, struct rpc_request *req);

/* Ends a pending request: as if its run had returned how. */
void rpc_complete(struct rpc_request *req, enum rpc_run how);

/* Moves the reply to a payload buffer with room for size bytes more than the head so far (copied).
 * 0, or -ENOMEM: none to be had now (the caller replies a "delay" error, or shortens what it asks
 * for). */
int rpc_reply_grow(struct rpc_request *req, size_t size);

#endif

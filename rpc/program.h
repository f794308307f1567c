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
#include "rpc/security.h"
#include "rpc/wait.h"

enum rpc_run {
	RPC_RUN_DONE, /* the result is in req->out */
	RPC_RUN_UNDONE, /* the same, and nothing was done: a retransmission runs, as what was in the way may have gone */
	RPC_RUN_GARBAGE, /* arguments are wrong in a way that only the handler sees */
	RPC_RUN_SYSTEM_ERR,
	RPC_RUN_TOO_LONG, /* the reply does not fit what the client offered; nothing was done */
	/* the same, but something was done; req->out is the reply for a retransmission */
	RPC_RUN_NO_ROOM,
	RPC_RUN_AUTH_TOOWEAK,
	RPC_RUN_AUTH_BADCRED, /* the host is refused, as strangers are */
};

enum rpc_proc_flags {
	RPC_NONIDEMPOTENT = 1, /* answered through the duplicate request cache */
	/* decode leaves the rest of the arguments to run, which also rejects Read chunks that no
	 * argument takes */
	RPC_RUN_DECODES = 2,
	/*
	 * Hosts that a procedure serves, by their admission. With none of these flags: hosts that
	 * some export admits. While the admission is not known the procedure runs, since it looks up
	 * its export by itself and then tells the client to come again.
	 */
	/* ends state or gives something back, or checks req->admission by itself */
	RPC_FOR_RECENT = 4,
	RPC_FOR_ALL = 8,    /* tells strangers that they are refused, using req->admission */
	RPC_NO_EXPORT = 16, /* uses no export: runs only for hosts known to be admitted */
	/* finds its export by a path: who sends such a datagram has shown no file handle */
	RPC_BY_PATH = 64,
	RPC_EVENT_THREAD = 32, /* may begin on an event thread's worker (rpc/worker.h) */
	RPC_AWAITS_ADMISSION =
		128, /* waits while the admission is not known, as long as calls may wait */
};

struct nfs3_dialect;

struct rpc_counters {
	_Atomic uint64_t calls, errors, total_ns;
};

struct rpc_proc {
	const char *name; /* name in the RFC */
	/* Decodes *args (args_size zeroed bytes); returns false for garbage. NULL: no arguments. */
	bool (*decode)(struct xdr_in *in, void *args);
	size_t args_size;
	enum rpc_run (*run)(struct rpc_request *req, void *args);
	unsigned flags;
	/* Worst-case result bytes of a procedure that changes something: checked against
	 * req->reply_max before it runs. 0 for others. */
	uint32_t reply_size;
	/* For RPC_NONIDEMPOTENT: true if this call needs the cache. Called after decode, with
	 * req->in behind the decoded part; must not move it. NULL: every call does. */
	bool (*cacheable)(const struct rpc_request *req, const void *args);
	/* Version whose encoding a handler of several versions uses: nfs3/op.h. NULL for others. */
	const struct nfs3_dialect *dialect;
};

struct rpc_version {
	uint32_t vers;
	/* Indexed by procedure number; NULL: no such procedure */
	const struct rpc_proc *const *procs;
	uint32_t nprocs;
	void *ctx; /* used as req->program_ctx; NULL: the program's */
};

struct rpc_program {
	uint32_t prog;
	const char *name;
	const struct rpc_version *versions; /* in ascending order */
	unsigned nversions;
	uint32_t streams_from; /* lowest version that is not served over datagrams; 0: all are */
	void *ctx;	       /* used as req->program_ctx */
};

#define RPC_PROGRAMS_MAX 8

struct rpc_server {
	struct rpc_program programs[RPC_PROGRAMS_MAX];
	unsigned nprograms;
	struct drc *drc; /* may be NULL: no cache */
	struct rn_payload_pool *pool;
	struct rn_pipe_pool *pipes; /* may be NULL: all data are copied */
	/*
	 * Admission of the host at the other end of a connection. Called before every procedure but
	 * NULL (procedure 0, which serves all). Hosts that a procedure does not serve are denied as
	 * the kernel's server denies them, AUTH_ERROR with AUTH_BADCRED, before their arguments are
	 * decoded. Does not wait. If NULL, everybody is admitted.
	 */
	enum rpc_admission (*admission)(void *ctx, struct rpc_conn *conn);
	void *admission_ctx;
	/*
	 * Finds the user of a call under RPCSEC_GSS: called before the procedure of each call that
	 * has proved its principal, but for NULL, before its arguments are decoded. Fills
	 * uid, gid and up to 16 groups of req->call.cred from its principal.
	 * Waits for the name service (rpc/wait.h). RPC_RUN_DONE, or the refusal. If NULL,
	 * RPCSEC_GSS has no users, and each is refused with RPC_RUN_AUTH_BADCRED. Also asked for
	 * calls of other flavours over a connection whose client has proved an identity by a certificate.
	 */
	enum rpc_run (*identify)(void *ctx, struct rpc_request *req);
	void *identify_ctx;
	/* RPCSEC_GSS; NULL: such calls are refused with AUTH_REJECTEDCRED. */
	const struct rpc_security *security;
	void *security_ctx;
	/* Called when a request is answered, for counters; may be NULL. req->proc is NULL when the
	 * call was refused before its procedure was found. */
	void (*observe)(void *ctx, const struct rpc_request *req, uint64_t elapsed_ns, bool error);
	void *observe_ctx;
	/* True if calls may run and be answered. False: this server's time is over, and another may act for it: connections are closed
	 * instead. Thread-safe; must not wait. If NULL, they always may. */
	bool (*may_answer)(void *ctx);
	void *may_answer_ctx;
	/* Called on its worker when a request is about to go back to its transport; may be NULL. */
	void (*ended)(void *ctx, struct rpc_request *req);
	void *ended_ctx;
	struct rpc_waits *waits; /* NULL: calls wait for no others */
	/*
	 * Has req->work(req) called on a worker of the pool, when req->conn->client has its turn. For
	 * work that no call waits for, a piece at a time: req was made by rpc_request_new, is no
	 * transport's, and each piece ends with a call of ended, after which it may be given here again.
	 * req->moves is the size of the piece. Any thread. NULL: there is no pool.
	 */
	void (*background)(void *ctx, struct rpc_request *req, uint32_t export_id);
	void *background_ctx;
};

/* Decodes and runs one call, in a fiber; the request is answered or dropped when it returns. This is the `work` function of a new
 * request, whose server is set. */
void rpc_dispatch(struct rpc_request *req);

/* Moves the reply to a payload buffer with room for size bytes more than the head so far (copied).
 * 0, or -ENOMEM: the caller replies a "delay" error, or shortens its reply. */
int rpc_reply_grow(struct rpc_request *req, size_t size);

#endif

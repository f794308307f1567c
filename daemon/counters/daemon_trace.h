/* SPDX-License-Identifier: BSD-2-Clause */
/* One answered call, as a trace shows it: plain memory that needs nothing of the request any more. */
#ifndef RN_DAEMON_COUNTERS_DAEMON_TRACE_H
#define RN_DAEMON_COUNTERS_DAEMON_TRACE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "lib/fiber.h"
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
	uint64_t waited_ns; /* its longest wait; 0: none of some milliseconds */
	enum rn_wait_for waited_for;
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

/*
 * A bounded queue of calls with any number of writers and one reader, without a lock: a writer that finds it full
 * counts the call as lost and goes on.
 *
 * A cell's turn tells whose it is (n: the position in the queue that the cell is for): n when a writer may take it,
 * n + 1 when the reader may.
 */

#define TRACE_RING 512u /* cells; a power of two */

struct trace_cell {
	_Atomic uint64_t turn;
	struct trace_call call;
};

struct trace_ring {
	_Alignas(64) _Atomic uint64_t tail; /* position of the next call */
	_Atomic uint64_t lost;		    /* since the reader took the number */
	_Alignas(64) uint64_t head;	    /* the reader's */
	struct trace_cell cell[TRACE_RING];
};

void trace_ring_init(struct trace_ring *r);
/* Any thread. */
void trace_ring_put(struct trace_ring *r, const struct trace_call *call);
/* One thread at a time. False: there is none, or its writer is not done. */
bool trace_ring_take(struct trace_ring *r, struct trace_call *out);
/* Calls that found no room since this was asked last. */
uint64_t trace_ring_lost(struct trace_ring *r);

/*
 * Traces: calls as they are answered, for an administrator who looks. Without a trace a call costs one load. With one,
 * the thread that answers the call writes what the filter lets through into the trace's rings and waits for nobody:
 * what finds no room is counted. A trace that nobody asks for its calls ends by itself.
 *
 * Threads that answer calls read a filter while it may be replaced by that of the next trace. The reader applies its
 * own copy again, so that a trace never shows what it did not ask for.
 */

#define TRACES_MAX 4u
#define TRACE_SHARDS 8u
#define TRACE_PATIENCE_S 5u /* seconds without a question until a trace ends */

/* Conditions that must all hold. */
struct trace_filter {
	uint64_t slower_ns; /* shorter calls are left out */
	uint64_t clientid;  /* 0: any */
	struct rpc_address peer;
	uint32_t opnum;	  /* with name: number of the operation of NFSv4; 0: none has that name */
	const char *name; /* of a procedure, constant; NULL: any */
	uint32_t export_id;
	bool by_peer, by_export, by_operation, errors;
};

#define TRACE_FILTER_WORDS ((sizeof(struct trace_filter) + 7) / 8)

struct trace_session {
	_Atomic(struct trace_ring *) rings; /* TRACE_SHARDS of them, once there was a trace; kept */
	_Atomic uint64_t filter[TRACE_FILTER_WORDS]; /* its bytes, for threads that answer calls */
	/* Under the lock of struct trace. */
	uint64_t id; /* 0: not in use */
	uint64_t asked_ns;
	uint64_t began_ns; /* monotonic */
	struct trace_filter own;
};

struct trace {
	_Atomic unsigned active; /* bit n: session n runs */
	pthread_mutex_t lock;	 /* never taken by threads that answer calls */
	uint64_t last_id;
	struct trace_session session[TRACES_MAX];
};

void trace_init(struct trace *t);
/* No thread answers calls any more. */
void trace_fini(struct trace *t);

static inline bool trace_is_on(const struct trace *t)
{
	return atomic_load_explicit(&t->active, memory_order_relaxed) != 0;
}
/* Within rpc_server.observe, if trace_is_on(). */
void trace_record(struct trace *t, const struct rpc_request *req, uint64_t took_ns, bool error);

/* *id names it. 0; -EBUSY: TRACES_MAX run already; -ENOMEM. */
int trace_start(struct trace *t, const struct trace_filter *filter, uint64_t *id);
/* Takes at most *n calls, in the order of their ends, and sets *n to their number; *lost: calls that found no room since
 * the last time. -ENOENT: it has ended. */
int trace_take(struct trace *t, uint64_t id, struct trace_call *calls, size_t *n, uint64_t *lost);
/* -ENOENT as above. */
int trace_stop(struct trace *t, uint64_t id);
/* Once a second: ends those that nobody asks. */
void trace_tick(struct trace *t);

#endif

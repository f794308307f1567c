/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traces: calls as they are answered, for an administrator who looks. Without a trace a call costs one load. With one,
 * the thread that answers the call writes what the filter lets through into the trace's rings and waits for nobody:
 * what finds no room is counted. A trace that nobody asks for its calls ends by itself.
 *
 * Threads that answer calls read a filter while it may be replaced by that of the next trace. The reader applies its
 * own copy again, so that a trace never shows what it did not ask for.
 */
#ifndef RN_DAEMON_DAEMON_TRACE_H
#define RN_DAEMON_DAEMON_TRACE_H

#include <pthread.h>

#include "daemon/trace_ring.h"

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

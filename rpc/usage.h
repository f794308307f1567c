/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts of what a client has done by NFSv3, which has no clients of its own. Any thread adds to them. They
 * lie in struct rpc_client, and are kept for some clients without connections: rpc/client.c.
 */
#ifndef RN_RPC_USAGE_H
#define RN_RPC_USAGE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/host.h"

#define RPC_USAGE_PROCS 22u

struct rpc_client;
struct rpc_clients;

struct rpc_usage {
	_Atomic uint64_t errors, bytes_read, bytes_written;
	_Atomic uint64_t last_ns; /* time of the last call, CLOCK_MONOTONIC; 0: there was none */
	_Atomic uint64_t proc[RPC_USAGE_PROCS]; /* calls by procedure */
};

static inline void rpc_usage_add(_Atomic uint64_t *n, uint64_t add)
{
	atomic_fetch_add_explicit(n, add, memory_order_relaxed);
}

/* proc: below RPC_USAGE_PROCS */
static inline void rpc_usage_call(struct rpc_usage *u, uint32_t proc, bool error, uint64_t now)
{
	rpc_usage_add(&u->proc[proc], 1);
	if (error)
		rpc_usage_add(&u->errors, 1);
	atomic_store_explicit(&u->last_ns, now, memory_order_relaxed);
}

struct rpc_usage_view {
	struct rn_host host;
	bool network;	      /* it is a /64 */
	unsigned connections; /* of all versions */
	struct rpc_usage usage;
};

/*
 * Copies the first client with usage behind that host, in an order that stays; NULL: the first of all. False:
 * there is none. Any thread.
 */
bool rpc_usage_next(struct rpc_clients *all, const struct rn_host *after,
		    struct rpc_usage_view *out);
/* That of one address. False: it has none. */
bool rpc_usage_find(struct rpc_clients *all, const struct sockaddr_storage *peer,
		    struct rpc_usage_view *out);
/* The sum of those clients that were forgotten, and their number: a client that came again is several. */
uint64_t rpc_usage_others(struct rpc_clients *all, struct rpc_usage *out);

#endif

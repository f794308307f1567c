/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients: the common state of all connections from one address, whatever their number, ports and
 * transport. Quotas (of workers, memory and reading) belong to clients, so that nobody gets more by
 * opening more connections.
 *
 * A client is a host as lib/host.h tells it from others. A client exists while it has connections, which hold
 * the references: there are never more clients than connections.
 */
#ifndef RN_RPC_CLIENT_H
#define RN_RPC_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "lib/fair_queue.h"
#include "lib/host.h"
#include "lib/payload.h"

struct rpc_clients;
struct rpc_conns;

/*
 * Counts of what a client has done by NFSv3, which has no clients of its own. Any thread adds to them. They
 * lie in struct rpc_client, and are kept for some clients without connections: rpc/client.c.
 */
#define RPC_USAGE_PROCS 22u

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

/* Queues of calls that do not wait for each other: daemon/workers/fs_queues.h. */
#define RPC_FS_QUEUES 16u
#define RPC_LOOPS_MAX 8u /* most event threads */

/* A client's part of one event thread's work; used by that thread only. */
struct rpc_loop_part {
	struct rn_fq_flow flow; /* its connections that wait to be read or written */
	uint64_t pass, work;	/* pass of the loop, and the work done for the client in it */
	uint64_t feed, fed;	/* round of feeding starved connections, and those fed in it */
};

struct rpc_client {
	struct rn_host key;
	struct rpc_clients *all;
	LIST_ENTRY(rpc_client) link; /* under the table's lock */
	_Atomic unsigned conns;	     /* references; changed under the table's lock */
	_Atomic bool
		connected;  /* a call has come over a connection: it is where its address says */
	unsigned dialed;    /* connections that the server has made to it; TCP's */
	unsigned datagrams; /* calls under way over UDP; UDP's */

	/* Memory that the client holds. Two accounts, because a request may wait for payload: with
	 * one, a client could use all of it for requests that then wait for each other. */
	struct rn_payload_account memory;   /* payload buffers */
	struct rn_payload_account requests; /* only .bytes is used */
	_Atomic unsigned pipes;		    /* lib/pipe.h: those that carry data to it */
	/* Calls that wait for a worker, by file system queue; under the lock of struct call_queue. */
	struct rn_fq_flow calls[RPC_FS_QUEUES];
	struct rn_fq_flow arrivals; /* RDMA messages that wait for a request; under rr_pool.lock */
	unsigned arrivals_held;	    /* RDMA requests in use; under rr_pool.lock */
	/* TLS sessions in the memory that is set aside for such; under the lock of struct tls. */
	unsigned tls_aside;
	struct rpc_loop_part loop[RPC_LOOPS_MAX];
	_Atomic uint64_t
		memory_wait_ns;	     /* last time it had to wait for memory, CLOCK_MONOTONIC ns */
	_Atomic uint64_t slow_until; /* see rpc_client_is_slow */
	struct rpc_usage usage;
};

struct rpc_clients *rpc_clients_new(void);	/* NULL: no memory */
void rpc_clients_free(struct rpc_clients *all); /* after all connections have gone */

/* The client of an IPv4 or IPv6 address, with one more reference. NULL: no memory. Any thread. */
struct rpc_client *rpc_client_get(struct rpc_clients *all, const struct sockaddr_storage *peer);
void rpc_client_put(struct rpc_client *client); /* NULL is allowed */
/* Connections that the client has now. */
static inline unsigned rpc_client_conns(const struct rpc_client *client)
{
	return atomic_load_explicit(&client->conns, memory_order_relaxed);
}
/*
 * Records that the client held memory that others waited for, and was slow with it.
 * rpc_client_was_slow is then true for RPC_SLOW_SECONDS from now (CLOCK_MONOTONIC, ns), also if its
 * connections end meanwhile. Of very many slow clients some are forgotten.
 */
#define RPC_SLOW_SECONDS 60u
void rpc_client_is_slow(struct rpc_client *client, uint64_t now);
static inline bool rpc_client_was_slow(const struct rpc_client *client, uint64_t now)
{
	return now < atomic_load_explicit(&client->slow_until, memory_order_relaxed);
}
unsigned rpc_clients_count(struct rpc_clients *all);
/* The table of the clients' connections: rpc/conns.h. */
struct rpc_conns *rpc_clients_conns(struct rpc_clients *all);

struct rpc_usage_view {
	struct rn_host host;
	bool network;	      /* the address is that of a /64 */
	unsigned connections; /* of all versions */
	struct rpc_usage usage;
};

/*
 * Copies the first client with usage behind that host, in an order that stays; NULL: the first of all. False:
 * there is none. Any thread.
 */
bool rpc_usage_next(struct rpc_clients *all, const struct rn_host *after,
		    struct rpc_usage_view *out);
/* Finds the usage of one address. False: it has none. */
bool rpc_usage_find(struct rpc_clients *all, const struct sockaddr_storage *peer,
		    struct rpc_usage_view *out);
/* The sum of those clients that were forgotten, and their number: a client that came again is several. */
uint64_t rpc_usage_others(struct rpc_clients *all, struct rpc_usage *out);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients: what all connections from one address have in common, whatever their number, ports and
 * transport. Shares (of workers, memory and reading) are shares of clients, so that nobody gets
 * more by opening more connections.
 *
 * A client is an address without its port; an IPv4 address mapped into IPv6 is the IPv4 address.
 * All addresses of one /64 of IPv6 are one client, since a host may take any number of them; not so
 * link-local ones, of which a link's hosts share the prefix. Who may do what is asked of the whole
 * address, elsewhere. A client
 * exists while it has connections, which hold the references: there are never more of them than
 * connections.
 */
#ifndef RN_RPC_CLIENT_H
#define RN_RPC_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "lib/fair_queue.h"
#include "lib/payload.h"
#include "rpc/address.h"

struct rpc_clients;

#define RPC_LANES 16u	 /* ways to the workers, which do not wait for each other */
#define RPC_LOOPS_MAX 8u /* event threads */

/* A client's part of one event thread's work; only that thread uses it. */
struct rpc_loop_share {
	struct rn_fq_flow flow; /* its connections that wait to be read or written */
	uint64_t pass, work;	/* what was done for it in which pass of the loop */
	uint64_t feed, fed;	/* how many of those that starved went on at which look at them */
};

struct rpc_client {
	struct rpc_address key; /* of an IPv6 network, its first address */
	struct rpc_clients *all;
	LIST_ENTRY(rpc_client) link; /* under the table's lock */
	_Atomic unsigned conns;	     /* references; changed under it */

	/* Held by it. Apart, because a request may wait for payload: were they one share, a client
	 * could use it all up for requests that then wait for each other. */
	struct rn_payload_account memory;   /* payload buffers */
	struct rn_payload_account requests; /* only bytes is used */
	/* Waiting for a worker, by lane; under that queue's lock. */
	struct rn_fq_flow calls[RPC_LANES];
	struct rn_fq_flow arrivals; /* RDMA messages waiting for a request; as well */
	unsigned arrivals_held;	    /* RDMA requests in use; as well */
	struct rpc_loop_share loop[RPC_LOOPS_MAX];
	_Atomic uint64_t pressed_ns; /* when it last had to wait for memory */
	_Atomic uint64_t slow_until; /* see rpc_client_is_slow */
};

struct rpc_clients *rpc_clients_new(void);	/* NULL: no memory */
void rpc_clients_free(struct rpc_clients *all); /* all connections are gone */

/* The client that an IPv4 or IPv6 address belongs to, with a reference more. NULL: no memory. Any
 * thread. */
struct rpc_client *rpc_client_get(struct rpc_clients *all, const struct sockaddr_storage *peer);
void rpc_client_put(struct rpc_client *client); /* NULL is allowed */
/* Connections that the client has now. */
static inline unsigned rpc_client_conns(const struct rpc_client *client)
{
	return atomic_load_explicit(&client->conns, memory_order_relaxed);
}
/*
 * The client held memory that others waited for, and was slow with it: for RPC_SLOW_SECONDS from
 * now (CLOCK_MONOTONIC, ns), whether it has connections meanwhile or not, rpc_client_was_slow. Of
 * very many such clients some are forgotten.
 */
#define RPC_SLOW_SECONDS 60u
void rpc_client_is_slow(struct rpc_client *client, uint64_t now);
static inline bool rpc_client_was_slow(const struct rpc_client *client, uint64_t now)
{
	return now < atomic_load_explicit(&client->slow_until, memory_order_relaxed);
}
unsigned rpc_clients_count(struct rpc_clients *all);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls whose own chunks have broken a connection: memory that is not there, or is not long enough.
 * A client sends such a call again as soon as it has reconnected, and would lose every further
 * connection by it. It is told ERR_CHUNK instead, so that the call ends (RFC 8166 section 4.5.3).
 *
 * A call is known by its client's address, its xid and a sum of its chunk lists: a client that
 * offers other memory when it sends the call again is served. Each address has a few places and all
 * together a fixed number, the oldest is replaced, and none is older than RR_BROKEN_SECONDS. So the
 * worst that anybody does to others is that theirs are forgotten. The sum has a key of this run:
 * who shares a client's address cannot make a call of his that stands for one of the client's.
 */
#ifndef RN_TRANSPORT_RDMA_BROKEN_H
#define RN_TRANSPORT_RDMA_BROKEN_H

#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpc/address.h"
#include "transport/rdma/rdma_header.h"

/* How sure it is that the call did it. InfiniBand's devices say so. iWARP's only say that the peer
 * has ended the connection while the call's Reads were under way: once may be chance. */
enum rr_blame { RR_SUSPECTED = 1, RR_PROVEN = 2 };

#define RR_BROKEN_CALLS 256u
#define RR_BROKEN_OF_CLIENT 8u
#define RR_BROKEN_SECONDS 120u /* as the duplicate request cache */

struct rr_broken_call {
	struct rpc_address client;
	uint32_t xid;
	unsigned blame;
	uint64_t since_ns; /* 0: free */
	uint8_t sum[crypto_onetimeauth_BYTES];
};

struct rr_broken {
	pthread_mutex_t lock; /* a leaf */
	atomic_uint n;	      /* places that are in use, and some between: mostly there is none */
	uint8_t key[crypto_onetimeauth_KEYBYTES];
	struct rr_broken_call call[RR_BROKEN_CALLS];
};

void rr_broken_init(struct rr_broken *b);
void rr_broken_fini(struct rr_broken *b);

/* call is a call's header with its Read list sorted; now: nanoseconds of a monotonic clock. */
void rr_broken_add(struct rr_broken *b, const struct rpc_address *client,
		   const struct rr_header *call, enum rr_blame blame, uint64_t now);
/* Proven, or suspected more than once. */
bool rr_broken_has(struct rr_broken *b, const struct rpc_address *client,
		   const struct rr_header *call, uint64_t now);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls whose own chunks have broken a connection: their memory is not there, or is too short. A
 * client sends such a call again as soon as it has reconnected, and would lose every further
 * connection by it. It is answered ERR_CHUNK instead, so that the call ends (RFC 8166 section
 * 4.5.3).
 *
 * A call is identified by its client's address, its xid and a sum of its chunk lists: a client that
 * offers other memory when it sends the call again is served. Hosts have few places, by lib/quota.h: the
 * one with most loses its oldest. None is older than RR_BROKEN_SECONDS. The sum has a secret key: another process at the client's address cannot make a call
 * that is taken for one of the client's.
 */
#ifndef RN_TRANSPORT_RDMA_BROKEN_H
#define RN_TRANSPORT_RDMA_BROKEN_H

#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/quota.h"
#include "rpc/address.h"
#include "transport/rdma/rdma_header.h"

/*
 * Certainty that the call broke the connection. InfiniBand devices report it. iWARP devices only
 * report that the peer ended the connection while the call's Reads were under way: once may be
 * chance.
 */
enum rr_blame { RR_SUSPECTED = 1, RR_PROVEN = 2 };

#define RR_BROKEN_CALLS 256u
#define RR_BROKEN_OF_HOST 8u
#define RR_BROKEN_SECONDS 120u /* as in the duplicate request cache */

struct rr_broken_call {
	struct rpc_address client;
	uint32_t xid;
	unsigned blame;
	uint64_t since_ns; /* 0: the place is free */
	uint8_t sum[crypto_onetimeauth_BYTES];
	struct rn_quota_item place;
};

struct rr_broken {
	pthread_mutex_t lock; /* a leaf: no other lock is taken under it */
	/* upper bound of the places in use; mostly 0, so that most calls need no lock */
	atomic_uint n;
	uint8_t key[crypto_onetimeauth_KEYBYTES];
	struct rr_broken_call call[RR_BROKEN_CALLS];
	struct rn_quota quota; /* of the places */
};

void rr_broken_init(struct rr_broken *b);
void rr_broken_fini(struct rr_broken *b);

/* call is a call's header with its Read list sorted; now: nanoseconds of a monotonic clock. */
void rr_broken_add(struct rr_broken *b, const struct rpc_address *client,
		   const struct rr_header *call, enum rr_blame blame, uint64_t now);
/* True if the call is proven to break connections, or has been suspected more than once. */
bool rr_broken_has(struct rr_broken *b, const struct rpc_address *client,
		   const struct rr_header *call, uint64_t now);

#endif

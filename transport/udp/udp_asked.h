/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions to name services that datagrams may cause. Each forged address would else cost one. So
 * - a network, and all networks together, may cause some a second;
 * - a host that was found to be admitted is not counted, so that a flood of others does not stop it.
 */
#ifndef RN_TRANSPORT_UDP_ASKED_H
#define RN_TRANSPORT_UDP_ASKED_H

#include <pthread.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "rpc/address.h"
#include "rpc/request.h"

#define UDP_ASKED_NETWORK 8u /* questions a second by an IPv4 /24 or an IPv6 /64 */
#define UDP_ASKED_ALL 64u    /* by all of them */
#define UDP_ASKED_CELLS                                                                            \
	1024u /* networks with the same hash share a ration; hosts push each other out */

struct udp_asked_cell {
	uint64_t second;
	uint32_t questions;
};

struct udp_asked {
	pthread_mutex_t lock;
	uint8_t key[crypto_shorthash_KEYBYTES];
	struct udp_asked_cell all, network[UDP_ASKED_CELLS];
	struct rpc_address admitted[UDP_ASKED_CELLS];
};

void udp_asked_init(struct udp_asked *a);
void udp_asked_fini(struct udp_asked *a);
/* True if the standing of the host may be asked for. */
bool udp_asked_may(struct udp_asked *a, const struct sockaddr_storage *peer, uint64_t now_ns);
/* Takes note of the answer: RPC_UNKNOWN was a question, which counts if the host was not admitted before. */
void udp_asked_got(struct udp_asked *a, const struct sockaddr_storage *peer, enum rpc_standing is,
		   uint64_t now_ns);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
* Limits what a host is sent by calls that it need not have sent. Anybody can write somebody else's address on a datagram,
 * and have the reply go there. So
 * - a host that no export admits is never sent more bytes than came with its address;
 * - a host that some export admits is sent UDP_RATION bytes a second more, at most, by procedures that need no
 *   file handle;
 * - by procedures that need one it is sent UDP_RATION_HANDLE bytes a second more. A handle carries a MAC, so it
 *   cannot be guessed. But it is no secret: it shows that somebody was served, and not that this host was.
 */
#ifndef RN_TRANSPORT_UDP_RATION_H
#define RN_TRANSPORT_UDP_RATION_H

#include <pthread.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "rpc/address.h"
#include "rpc/request.h"

#define UDP_RATION (64u << 10)
#define UDP_RATION_HANDLE (32u << 20)
#define UDP_RATION_CELLS 1024u /* hosts with the same hash share a ration */

struct udp_ration_cell {
	uint64_t second;
	uint32_t bytes[2]; /* without a handle, with one */
};

struct udp_ration {
	pthread_mutex_t lock;
	uint8_t key[crypto_shorthash_KEYBYTES];
	struct udp_ration_cell cell[UDP_RATION_CELLS];
};

void udp_ration_init(struct udp_ration *r);
void udp_ration_fini(struct udp_ration *r);
/* True if the host may be sent so many bytes more in this second, which are then taken. handle: true if the call
 * has shown a file handle. */
bool udp_ration_take(struct udp_ration *r, const struct sockaddr_storage *peer, bool handle,
		     uint32_t bytes, uint64_t now_ns);

/*
 * Questions to name services that datagrams may cause. Each forged address would else cost one. So
 * - a network, and all networks together, may cause some a second;
 * - a host that was found to be admitted is not counted, so that a flood of others does not stop it.
 */
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
/* True if the admission of the host may be asked for. */
bool udp_asked_may(struct udp_asked *a, const struct sockaddr_storage *peer, uint64_t now_ns);
/* Takes note of the answer: RPC_UNKNOWN was a question, which counts if the host was not admitted before. */
void udp_asked_got(struct udp_asked *a, const struct sockaddr_storage *peer, enum rpc_admission is,
		   uint64_t now_ns);

#endif

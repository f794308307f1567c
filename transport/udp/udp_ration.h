/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a host may be sent by calls that it need not have sent. Anybody can write somebody else's address on a datagram,
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

#endif

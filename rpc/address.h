/* SPDX-License-Identifier: BSD-2-Clause */
/* An address without its port. An IPv4 address and the IPv6 address it is mapped to are equal. The host it belongs
 * to: lib/host.h. */
#ifndef RN_RPC_ADDRESS_H
#define RN_RPC_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "lib/host.h"

/* Compared and hashed as bytes: no padding. */
struct rpc_address {
	uint8_t bytes[16]; /* IPv6, or IPv4 mapped to IPv6 */
	uint32_t scope;	   /* scope of a link-local address, or 0 */
};

#define RPC_ADDRESS_TEXT RN_ADDRESS_TEXT

void rpc_address_of(const struct sockaddr_storage *peer, struct rpc_address *out);
bool rpc_address_equal(const struct rpc_address *a, const struct rpc_address *b);
uint16_t rpc_address_port(const struct sockaddr_storage *peer);
/* For logs: without the port; "?" if it is neither IPv4 nor IPv6. */
void rpc_address_text(const struct sockaddr_storage *peer, char out[RPC_ADDRESS_TEXT]);

#endif

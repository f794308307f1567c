/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/address.h"

#include <netinet/in.h>
#include <string.h>

_Static_assert(sizeof(struct rpc_address) == 20, "no padding");

void rpc_address_of(const struct sockaddr_storage *peer, struct rpc_address *out)
{
	out->scope = rn_address_map((const struct sockaddr *)peer, out->bytes);
}

bool rpc_address_equal(const struct rpc_address *a, const struct rpc_address *b)
{
	return memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0 && a->scope == b->scope;
}

uint16_t rpc_address_port(const struct sockaddr_storage *peer)
{
	return ntohs(peer->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)peer)->sin6_port
						 : ((const struct sockaddr_in *)peer)->sin_port);
}

void rpc_address_text(const struct sockaddr_storage *peer, char out[RPC_ADDRESS_TEXT])
{
	struct rpc_address a;

	rpc_address_of(peer, &a);
	if (peer->ss_family == AF_INET || peer->ss_family == AF_INET6)
		rn_address_text(a.bytes, out);
	else
		strcpy(out, "?");
}

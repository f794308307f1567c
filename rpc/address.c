/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "lib/host.h"

_Static_assert(sizeof(struct rpc_address) == 20, "no padding");

void rpc_address_of(const struct sockaddr_storage *peer, struct rpc_address *out)
{
	out->scope = rn_address_map((const struct sockaddr *)peer, out->bytes);
}

static bool is_mapped(const struct rpc_address *a)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return memcmp(a->bytes, mapped, sizeof(mapped)) == 0;
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
	const char *text;

	rpc_address_of(peer, &a);
	if (is_mapped(&a))
		text = inet_ntop(AF_INET, a.bytes + 12, out, RPC_ADDRESS_TEXT);
	else
		text = inet_ntop(AF_INET6, a.bytes, out, RPC_ADDRESS_TEXT);
	if (!text || (peer->ss_family != AF_INET && peer->ss_family != AF_INET6))
		strcpy(out, "?");
}

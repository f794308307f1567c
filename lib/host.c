/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/host.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define NETWORK_BYTES 8u      /* of an IPv6 address */
#define IPV4_NETWORK_BYTES 3u /* of an IPv4 address */
#define IPV4_AT 12u	      /* place of an IPv4 address in the mapped one */

_Static_assert(sizeof(struct rn_host) == 20, "no padding");

uint32_t rn_address_map(const struct sockaddr *addr, uint8_t out[16])
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;

	memset(out, 0, 16);
	if (addr->sa_family == AF_INET6) {
		memcpy(out, &in6->sin6_addr, 16);
		return IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr) ? in6->sin6_scope_id : 0;
	}
	if (addr->sa_family == AF_INET) {
		memset(out + 10, 0xff, 2);
		memcpy(out + IPV4_AT, &in->sin_addr, 4);
	}
	return 0;
}

static bool is_mapped_ipv4(const struct rn_host *h)
{
	struct in6_addr in6;

	memcpy(&in6, h->bytes, sizeof(in6));
	return IN6_IS_ADDR_V4MAPPED(&in6);
}

bool rn_host_is_network(const struct rn_host *h)
{
	struct in6_addr in6;

	memcpy(&in6, h->bytes, sizeof(in6));
	return !IN6_IS_ADDR_V4MAPPED(&in6) && !IN6_IS_ADDR_LINKLOCAL(&in6);
}

static void host_zero_from(struct rn_host *h, unsigned bytes)
{
	memset(h->bytes + bytes, 0, sizeof(h->bytes) - bytes);
}

void rn_host_of_mapped(const uint8_t addr[16], uint32_t scope, struct rn_host *out)
{
	memcpy(out->bytes, addr, sizeof(out->bytes));
	out->scope = scope;
	if (rn_host_is_network(out))
		host_zero_from(out, NETWORK_BYTES);
}

void rn_host_of(const struct sockaddr *addr, struct rn_host *out)
{
	uint8_t bytes[16];
	const uint32_t scope = rn_address_map(addr, bytes);

	rn_host_of_mapped(bytes, scope, out);
}

void rn_network_of(const struct sockaddr *addr, struct rn_host *out)
{
	rn_host_of(addr, out);
	host_zero_from(out, is_mapped_ipv4(out) ? IPV4_AT + IPV4_NETWORK_BYTES : NETWORK_BYTES);
}

bool rn_host_equal(const struct rn_host *a, const struct rn_host *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

void rn_host_text(const struct rn_host *h, char out[RN_HOST_TEXT])
{
	char text[INET6_ADDRSTRLEN] = "?";

	if (is_mapped_ipv4(h))
		inet_ntop(AF_INET, h->bytes + IPV4_AT, text, sizeof(text));
	else
		inet_ntop(AF_INET6, h->bytes, text, sizeof(text));
	if (h->scope > 0)
		snprintf(out, RN_HOST_TEXT, "%s%%%" PRIu32, text, h->scope);
	else
		snprintf(out, RN_HOST_TEXT, "%s%s", text, rn_host_is_network(h) ? "/64" : "");
}

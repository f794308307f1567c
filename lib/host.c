/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/host.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NETWORK_BYTES 8u      /* of an IPv6 address */
#define IPV4_NETWORK_BYTES 3u /* of an IPv4 address */
#define IPV4_AT 12u	      /* place of an IPv4 address in the mapped one */

_Static_assert(sizeof(struct rn_host) == 20, "no padding");
_Static_assert(RN_ADDRESS_TEXT == INET6_ADDRSTRLEN, "text of an address");

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

void rn_address_as_ipv6(const struct sockaddr_storage *from, struct sockaddr_in6 *out)
{
	memset(out, 0, sizeof(*out));
	if (from->ss_family == AF_INET6)
		memcpy(out, from, sizeof(*out));
	if (from->ss_family != AF_INET)
		return;
	out->sin6_family = AF_INET6;
	out->sin6_port = ((const struct sockaddr_in *)from)->sin_port;
	rn_address_map((const struct sockaddr *)from, out->sin6_addr.s6_addr);
}

bool rn_address_is_ipv4(const uint8_t addr[16])
{
	static const uint8_t mapped[IPV4_AT] = { [10] = 0xff, [11] = 0xff };

	return memcmp(addr, mapped, sizeof(mapped)) == 0;
}

bool rn_address_is_one_machine(const uint8_t addr[16])
{
	struct in6_addr in6;

	/* 0.0.0.0/8 is "this network", 224.0.0.0/3 has multicast, reserved and broadcast addresses. */
	if (rn_address_is_ipv4(addr))
		return addr[IPV4_AT] != 0 && addr[IPV4_AT] < 224;
	memcpy(&in6, addr, sizeof(in6));
	return !IN6_IS_ADDR_UNSPECIFIED(&in6) && !IN6_IS_ADDR_MULTICAST(&in6) &&
	       !IN6_IS_ADDR_LINKLOCAL(&in6);
}

socklen_t rn_address_unmap(const uint8_t addr[16], uint32_t scope, uint16_t port,
			   struct sockaddr_storage *out)
{
	struct sockaddr_in *in = (struct sockaddr_in *)out;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (rn_address_is_ipv4(addr)) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
		memcpy(&in->sin_addr, addr + IPV4_AT, sizeof(in->sin_addr));
		return sizeof(*in);
	}
	in6->sin6_family = AF_INET6;
	in6->sin6_port = htons(port);
	in6->sin6_scope_id = scope;
	memcpy(&in6->sin6_addr, addr, sizeof(in6->sin6_addr));
	return sizeof(*in6);
}

void rn_address_text(const uint8_t addr[16], char out[RN_ADDRESS_TEXT])
{
	if (rn_address_is_ipv4(addr))
		inet_ntop(AF_INET, addr + IPV4_AT, out, RN_ADDRESS_TEXT);
	else
		inet_ntop(AF_INET6, addr, out, RN_ADDRESS_TEXT);
}

bool rn_host_is_network(const struct rn_host *h)
{
	struct in6_addr in6;

	memcpy(&in6, h->bytes, sizeof(in6));
	return !rn_address_is_ipv4(h->bytes) && !IN6_IS_ADDR_LINKLOCAL(&in6);
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
	host_zero_from(out, rn_address_is_ipv4(out->bytes) ? IPV4_AT + IPV4_NETWORK_BYTES
							   : NETWORK_BYTES);
}

bool rn_host_equal(const struct rn_host *a, const struct rn_host *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

void rn_host_text(const struct rn_host *h, char out[RN_HOST_TEXT])
{
	char text[RN_ADDRESS_TEXT];

	rn_address_text(h->bytes, text);
	if (h->scope > 0)
		snprintf(out, RN_HOST_TEXT, "%s%%%" PRIu32, text, h->scope);
	else
		snprintf(out, RN_HOST_TEXT, "%s%s", text, rn_host_is_network(h) ? "/64" : "");
}

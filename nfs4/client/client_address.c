/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "lib/host.h"
#include "nfs4/client/client_address.h"
#include "nfs4/compound.h"

void nfs4_uaddr(const struct sockaddr_in6 *addr, char out[NFS4_UADDR_MAX])
{
	const bool v4 = IN6_IS_ADDR_V4MAPPED(&addr->sin6_addr);
	const uint8_t *bytes = addr->sin6_addr.s6_addr;
	const unsigned port = ntohs(addr->sin6_port);
	char host[INET6_ADDRSTRLEN] = "";

	if (v4)
		inet_ntop(AF_INET, bytes + 12, host, sizeof(host));
	else
		inet_ntop(AF_INET6, bytes, host, sizeof(host));
	snprintf(out, NFS4_UADDR_MAX, "%s.%u.%u", host, port >> 8, port & 255u);
}

/* Reads a number of 0 to 255 that fills len characters. */
static bool get_octet(const char *text, size_t len, unsigned *out)
{
	*out = 0;
	if (len == 0 || len > 3 || (text[0] == '0' && len > 1))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		*out = 10 * *out + (unsigned)(text[i] - '0');
	}
	return *out <= 255;
}

static bool get_host(const char *netid, const char *host, struct sockaddr_in6 *out)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	if (strcmp(netid, "tcp6") == 0)
		return inet_pton(AF_INET6, host, &out->sin6_addr) == 1 &&
		       !IN6_IS_ADDR_V4MAPPED(&out->sin6_addr);
	if (strcmp(netid, "tcp") != 0 || inet_pton(AF_INET, host, &in.sin_addr) != 1)
		return false;
	rn_address_map((const struct sockaddr *)&in, out->sin6_addr.s6_addr);
	return true;
}

bool nfs4_parse_uaddr(const char *netid, const char *uaddr, struct sockaddr_in6 *out)
{
	char host[INET6_ADDRSTRLEN];
	const char *low = strrchr(uaddr, '.');
	const char *high = low ? memrchr(uaddr, '.', (size_t)(low - uaddr)) : NULL;
	unsigned hi, lo;

	memset(out, 0, sizeof(*out));
	if (!high || (size_t)(high - uaddr) >= sizeof(host) ||
	    !get_octet(high + 1, (size_t)(low - high) - 1, &hi) ||
	    !get_octet(low + 1, strlen(low + 1), &lo) || hi + lo == 0)
		return false;
	memcpy(host, uaddr, (size_t)(high - uaddr));
	host[high - uaddr] = '\0';
	out->sin6_family = AF_INET6;
	out->sin6_port = htons((uint16_t)(hi << 8 | lo));
	return get_host(netid, host, out);
}

void nfs4_map_address(const struct sockaddr_storage *from, struct sockaddr_in6 *out)
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

void nfs4_peer_address(const struct nfs4_compound *c, struct sockaddr_in6 *addr,
		       char netid[NFS4_NETID_MAX])
{
	const struct rpc_conn *conn = c->req->conn;

	nfs4_map_address(&conn->peer, addr);
	snprintf(netid, NFS4_NETID_MAX, "%s%s", conn->ops->netid,
		 IN6_IS_ADDR_V4MAPPED(&addr->sin6_addr) ? "" : "6");
}

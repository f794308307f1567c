/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "nfs4/client/address.h"
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

void nfs4_peer_address(const struct nfs4_compound *c, struct sockaddr_in6 *addr,
		       char netid[NFS4_NETID_MAX])
{
	const struct rpc_conn *conn = c->req->conn;
	const struct sockaddr_in *in = (const struct sockaddr_in *)&conn->peer;

	if (conn->peer.ss_family == AF_INET6) {
		memcpy(addr, &conn->peer, sizeof(*addr));
	} else {
		addr->sin6_family = AF_INET6;
		addr->sin6_port = in->sin_port;
		memset(addr->sin6_addr.s6_addr + 10, 0xff, 2);
		memcpy(addr->sin6_addr.s6_addr + 12, &in->sin_addr, 4);
	}
	snprintf(netid, NFS4_NETID_MAX, "%s%s", conn->ops->netid,
		 IN6_IS_ADDR_V4MAPPED(&addr->sin6_addr) ? "" : "6");
}

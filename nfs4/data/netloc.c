/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/data/netloc.h"

#include <stdio.h>
#include <string.h>

#include "nfs4/client/client_address.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/compound.h"
#include "nfs4/nfs4_private.h"
#include "rpc/address.h"

enum netloc_type4 { NL4_NAME = 1, NL4_URL = 2, NL4_NETADDR = 3 };

/* Reads a string of less than size bytes. False: it is longer, or has a NUL in it. */
static bool netloc_get_text(struct xdr_in *in, char *out, uint32_t size)
{
	uint32_t len;
	const uint8_t *p = xdr_get_opaque(in, UINT32_MAX, &len);

	out[0] = '\0';
	if (!p || len >= size || memchr(p, '\0', len))
		return false;
	memcpy(out, p, len);
	out[len] = '\0';
	return true;
}

static void as_tcp(char netid[NFS4_NETID_MAX])
{
	if (strcmp(netid, "rdma") == 0)
		strcpy(netid, "tcp");
	else if (strcmp(netid, "rdma6") == 0)
		strcpy(netid, "tcp6");
}

static bool get_netaddr(struct xdr_in *in, bool any_transport, struct sockaddr_in6 *out)
{
	char netid[NFS4_NETID_MAX], uaddr[NFS4_UADDR_MAX];
	const bool known = netloc_get_text(in, netid, sizeof(netid));
	const bool fits = netloc_get_text(in, uaddr, sizeof(uaddr));

	if (any_transport)
		as_tcp(netid);
	return known && fits && nfs4_parse_uaddr(netid, uaddr, out);
}

bool nfs4_get_netloc(struct xdr_in *in, bool any_transport, struct sockaddr_in6 *out)
{
	memset(out, 0, sizeof(*out));
	switch (xdr_get_u32(in)) {
	case NL4_NETADDR:
		return get_netaddr(in, any_transport, out) && !in->err;
	case NL4_NAME:
	case NL4_URL:
		xdr_skip_opaque(in, UINT32_MAX);
		return false;
	default:
		in->err = true;
		return false;
	}
}

void nfs4_put_own_netloc(const struct nfs4_compound *c, struct xdr_out *out)
{
	struct sockaddr_in6 own;
	char uaddr[NFS4_UADDR_MAX];
	const char *netid;

	nfs4_map_address(&c->req->conn->local, &own);
	own.sin6_port = htons(c->server->cfg.tcp_port);
	netid = IN6_IS_ADDR_V4MAPPED(&own.sin6_addr) ? "tcp" : "tcp6";
	nfs4_uaddr(&own, uaddr);
	xdr_put_u32(out, NL4_NETADDR);
	xdr_put_opaque(out, netid, (uint32_t)strlen(netid));
	xdr_put_opaque(out, uaddr, (uint32_t)strlen(uaddr));
}

bool nfs4_copies_between_servers(const struct nfs4_server *srv)
{
	return srv->cfg.ncopy_servers > 0;
}

static bool is_same_address(const struct sockaddr_in6 *a, const struct sockaddr_in6 *b)
{
	struct rpc_address x, y;

	rpc_address_of((const struct sockaddr_storage *)a, &x);
	rpc_address_of((const struct sockaddr_storage *)b, &y);
	return rpc_address_equal(&x, &y);
}

bool nfs4_is_copy_server(const struct nfs4_server *srv, const struct sockaddr_in6 *addr,
			 bool with_port)
{
	for (unsigned i = 0; i < srv->cfg.ncopy_servers; i++) {
		const struct sockaddr_in6 *named = &srv->cfg.copy_servers[i];

		if (is_same_address(named, addr) &&
		    (!with_port || named->sin6_port == addr->sin6_port))
			return true;
	}
	return false;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* netloc4: the location of a server (RFC 7862 section 4.5), and the servers that the settings name for
 * copies. */
#ifndef RN_NFS4_DATA_NETLOC_H
#define RN_NFS4_DATA_NETLOC_H

#include <netinet/in.h>
#include <stdbool.h>

#include "rpc/xdr_in.h"
#include "rpc/xdr_out.h"

struct nfs4_compound;
struct nfs4_server;

/* Decodes one. False: it is well-formed, but no address that can be used: a name, a URL, or an
 * address of another transport. With any_transport an RDMA address is good, too, where only the host
 * matters. */
bool nfs4_get_netloc(struct xdr_in *in, bool any_transport, struct sockaddr_in6 *out);

/* Bytes of one that nfs4_put_own_netloc() puts, at most. */
#define NFS4_NETLOC_MAX (4u + 4u + 8u + 4u + 64u)
/* Puts the address that the caller reaches this server at, with the port of NFS over TCP. */
void nfs4_put_own_netloc(const struct nfs4_compound *c, struct xdr_out *out);

/* True if the settings name any server. */
bool nfs4_copies_between_servers(const struct nfs4_server *srv);
/* True if the settings name the address; with_port: and this port of it. */
bool nfs4_is_copy_server(const struct nfs4_server *srv, const struct sockaddr_in6 *addr,
			 bool with_port);

#endif

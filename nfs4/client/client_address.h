/* SPDX-License-Identifier: BSD-2-Clause */
/* Network addresses of calling clients. */
#ifndef RN_NFS4_CLIENT_CLIENT_ADDRESS_H
#define RN_NFS4_CLIENT_CLIENT_ADDRESS_H

#include "nfs4/client/nfs4_client.h"

/* Universal address of an IPv4 or IPv6 socket address (RFC 5665 section 5.2.3). */
void nfs4_uaddr(const struct sockaddr_in6 *addr, char out[NFS4_UADDR_MAX]);
/*
 * Reads a universal address of the netid tcp or tcp6 (RFC 5665 section 5.2.3): an address of that
 * family, and a port that is not 0. False: it is anything else, also an IPv6 address with a scope,
 * which would be a name of the client's own, and an IPv4 address mapped into IPv6.
 */
bool nfs4_parse_uaddr(const char *netid, const char *uaddr, struct sockaddr_in6 *out);
/* Maps an IPv4 address into IPv6. sin6_family is 0 if it is neither. */
void nfs4_map_address(const struct sockaddr_storage *from, struct sockaddr_in6 *out);
/* Gives the address of the caller and the netid of its transport. */
void nfs4_peer_address(const struct nfs4_compound *c, struct sockaddr_in6 *addr,
		       char netid[NFS4_NETID_MAX]);

#endif

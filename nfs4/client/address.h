/* SPDX-License-Identifier: BSD-2-Clause */
/* Network addresses of calling clients. */
#ifndef RN_NFS4_CLIENT_ADDRESS_H
#define RN_NFS4_CLIENT_ADDRESS_H

#include "nfs4/client/client.h"

/* Universal address of an IPv4 or IPv6 socket address (RFC 5665 section 5.2.3). */
void nfs4_uaddr(const struct sockaddr_in6 *addr, char out[NFS4_UADDR_MAX]);
/* Gives the address of the caller and the netid of its transport. */
void nfs4_peer_address(const struct nfs4_compound *c, struct sockaddr_in6 *addr,
		       char netid[NFS4_NETID_MAX]);

#endif

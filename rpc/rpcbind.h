/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registration with the local rpcbind by libtirpc (RFC 1833): explicit netids ("tcp", "tcp6",
 * "udp", "udp6", "rdma", "rdma6") and universal addresses, since /etc/netconfig has no rdma. May block for seconds
 * when rpcbind does not answer: never called from an event thread or a worker.
 */
#ifndef RN_RPC_RPCBIND_H
#define RN_RPC_RPCBIND_H

#include <stdint.h>

/* Port in host order; netid as above. 0, -ECONNREFUSED: no rpcbind, or another -errno. An existing
 * mapping is replaced. */
int rpcbind_set(uint32_t prog, uint32_t vers, const char *netid, uint16_t port);
int rpcbind_unset(uint32_t prog, uint32_t vers, const char *netid);
/* UDP port of a program of this machine that is registered, and answers NULL; 0: there is none. */
uint16_t rpcbind_find_udp(uint32_t prog, uint32_t vers);

#endif

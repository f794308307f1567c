/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registration with the local rpcbind by libtirpc (RFC 1833): explicit netids ("tcp", "tcp6",
 * "udp", "udp6", "rdma", "rdma6") and universal addresses, since /etc/netconfig has no rdma. May block for seconds
 * when rpcbind does not answer: never called from an event thread or a worker.
 */
#ifndef RN_RPC_RPCBIND_H
#define RN_RPC_RPCBIND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Port in host order; netid as above. 0, -ECONNREFUSED: no rpcbind, or another -errno. An existing
 * mapping is replaced. */
int rpcbind_set(uint32_t prog, uint32_t vers, const char *netid, uint16_t port);
int rpcbind_unset(uint32_t prog, uint32_t vers, const char *netid);
/* A registration, as rpcbind has it. */
struct rpcbind_entry {
	uint32_t prog, vers;
	const char *netid;
	uint16_t port;	  /* 0: the address has none */
	bool owner_known; /* by the local socket that it was registered by */
	uid_t owner;
};
/* Calls each(ctx, e) for all registrations; e is valid during the call. 0 or -errno as above: then there was no call. */
int rpcbind_list(void (*each)(void *ctx, const struct rpcbind_entry *e), void *ctx);
/* True if the program of this machine answers NULL at that UDP port, within a second. */
bool rpcbind_answers_udp(uint32_t prog, uint32_t vers, uint16_t port);

#endif

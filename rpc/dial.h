/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections that this server makes: to call a client that takes calls at an address of its own
 * (NFSv4.0's callbacks, RFC 7530 section 16.33), or to read from another server (nfs4/remote/). Calls are made by rpc/backchannel.h, as over
 * connections that clients make.
 */
#ifndef RN_RPC_DIAL_H
#define RN_RPC_DIAL_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct rpc_backchannel;

/* IPv4 addresses are mapped into IPv6. */
struct rpc_route {
	struct sockaddr_in6
		from; /* address to call from; its port is not used. sin6_family 0: any */
	struct sockaddr_in6 to;
	/* Longest reply, bytes; 0: RPC_CALLBACK_REPLY. Memory for a longer one is charged to the
	 * address that is called. */
	uint32_t reply_max;
	/* Calls from a privileged port: the one that is called was chosen by the administrator. */
	bool reserved;
};

static inline bool rpc_route_equal(const struct rpc_route *a, const struct rpc_route *b)
{
	return memcmp(&a->from, &b->from, sizeof(a->from)) == 0 &&
	       memcmp(&a->to, &b->to, sizeof(a->to)) == 0 && a->reply_max == b->reply_max &&
	       a->reserved == b->reserved;
}

struct rpc_dialer {
	/*
	 * Begins a connection, over which calls may be made at once: they go out when it is
	 * established, and end with -ENOTCONN if it is not. Does not wait. 0, and *out has a
	 * reference for the caller; -RN_EFULL: there are too many such connections, in all or to that
	 * host; -ENOTCONN: the server stops; other -errno of the network or for want of descriptors
	 * or memory. The connection ends by its peer, when it is idle, or by
	 * rpc_backchannel_hang_up(). Any thread.
	 */
	int (*dial)(void *ctx, const struct rpc_route *route, struct rpc_backchannel **out);
	void *ctx;
};

#endif

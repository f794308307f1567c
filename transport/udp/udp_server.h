/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RPC over UDP (RFC 5531 section 10): one datagram a call, one a reply. There are no connections: each call
 * has one of its own (struct rpc_conn), which ends with it. So a peer leaves nothing behind, and whoever
 * sends from many ports or addresses fills no table.
 *
 * The sender of a datagram is not proved. What is done about that is in transport/udp/udp_ration.h.
 */
#ifndef RN_TRANSPORT_UDP_SERVER_H
#define RN_TRANSPORT_UDP_SERVER_H

#include <stdint.h>
#include <sys/socket.h>

#include "lib/budget.h"
#include "lib/log.h"
#include "rpc/request.h"
#include "transport/event_loop.h"

struct rpc_clients;

struct udp_server;

struct udp_config {
	struct ev_loop *const *loops; /* sockets are spread over them */
	unsigned nloops;
	struct rpc_executor executor;
	struct rpc_clients *clients; /* quotas of memory and of calls are theirs */
	struct rn_payload_pool *pool;
	struct rn_budget *budget;
	const struct rn_logger *log;
	/* Tells where bulk data of a call begin, and whether the exports admit its host: see struct tcp_config. */
	size_t (*bulk_offset)(const uint8_t *head, size_t len);
	enum rpc_admission (*admission)(void *ctx, struct rpc_conn *conn);
	void *admission_ctx;
};

/* Bytes that a server takes out of its budget at the start, with the heads of its replies. */
size_t udp_server_memory(void);
/* 0 or -errno. */
int udp_server_new(const struct udp_config *cfg, struct udp_server **out);
/* Receives at addr (IPv4, or IPv6 with IPV6_V6ONLY). port 0 in addr picks one; *bound is the result.
 * May be called several times. 0 or -errno. */
int udp_server_listen(struct udp_server *s, const struct sockaddr *addr, socklen_t len,
		      struct sockaddr_storage *bound);
/* Stops receiving; calls under way are still answered. */
void udp_server_quiesce(struct udp_server *s);
/* Closes everything and frees; waits until calls under way have come back. NULL is allowed. */
void udp_server_free(struct udp_server *s);

/* Datagrams that got no answer, by reason. */
enum udp_dropped {
	UDP_NO_CALL,  /* no RPC call */
	UDP_TOO_LONG, /* longer than a call may be */
	UDP_BUSY,     /* too many calls are under way, of this client or of all */
	UDP_NO_MEMORY,
	UDP_RATIONED,  /* the reply would be longer than the sender may be sent */
	UDP_NOT_SENT,  /* the reply could not be sent */
	UDP_DUPLICATE, /* the first one is still running, or the call was discarded */
	UDP_DROPPED
};

struct udp_stats {
	uint64_t calls, replies, bytes_in, bytes_out;
	uint64_t dropped[UDP_DROPPED];
	uint64_t requests, requests_busy; /* requests that exist, and calls under way */
};
void udp_server_stats(struct udp_server *s, struct udp_stats *out);

#endif

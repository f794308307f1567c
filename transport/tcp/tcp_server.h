/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RPC over TCP with record marking (RFC 5531 section 11): listeners, connections, limits. Bulk data
 * of large calls is read straight into payload buffers.
 */
#ifndef RN_TRANSPORT_TCP_SERVER_H
#define RN_TRANSPORT_TCP_SERVER_H

#include <stdint.h>

#include "lib/budget.h"
#include "lib/image.h"
#include "lib/log.h"
#include "rpc/request.h"
#include "transport/event_loop.h"

struct rpc_backchannel;
struct rpc_clients;
struct rpc_route;
struct tls;

struct tcp_server;

struct tcp_config {
	struct ev_loop *const *loops; /* connections are spread over them, and move between them */
	unsigned nloops;
	struct rpc_executor executor;
	struct rpc_clients *clients; /* quotas of memory and reading are theirs */
	struct rn_payload_pool *pool;
	struct rn_budget *budget;
	const struct rn_logger *log;
	uint32_t max_record; /* bytes; a longer record closes the connection */
	unsigned
		max_connections; /* above this, the client with most loses some: see tcp_listen.c */
	unsigned max_requests;	 /* calls in flight on one connection: reading pauses above this */
	unsigned idle_seconds;	 /* 0: never closed for being idle */
	/* Seconds in which a peer must take one reply, or complete one record; else it is closed,
	 * since it holds memory that others wait for. 0: 60 */
	unsigned stall_seconds;
	/*
	 * Offset at which bulk data starts in a call, so that it lands page-aligned in a payload
	 * buffer: given the call's first len bytes; 0 for none. The daemon passes NFS's function;
	 * may be NULL.
	 */
	size_t (*bulk_offset)(const uint8_t *head, size_t len);
	/* The same function as rpc_server.admission. Strangers get few connections and hardly any memory. */
	enum rpc_admission (*admission)(void *ctx, struct rpc_conn *conn);
	void *admission_ctx;
	struct tls *tls; /* NULL: TLS is not offered */
};

/* Bytes that a server takes out of a budget of `whole` bytes at the start, with the heads of its replies. */
size_t tcp_server_memory(unsigned max_connections, unsigned nloops, size_t whole);
int tcp_server_new(const struct tcp_config *cfg, struct tcp_server **out);
/* Listens on addr (IPv4, or IPv6 with IPV6_V6ONLY). port 0 in addr picks one; *bound is the result.
 * May be called several times. 0 or -errno. */
int tcp_server_listen(struct tcp_server *s, const struct sockaddr *addr, socklen_t len,
		      struct sockaddr_storage *bound);
/* Like tcp_server_listen(), with a socket that listens already and does not block. Takes the descriptor over, also on errors. */
int tcp_server_adopt(struct tcp_server *s, int fd, struct sockaddr_storage *bound);
/*
 * Begins a connection to a client, for calls to it: see rpc_dialer.dial in rpc/backchannel.h. It takes part
 * in max_connections, of which all of this kind have a quarter, and a client no more of that than is
 * left. Anything but replies of at most the route's length ends it. Not while
 * tcp_server_quiesce() runs or afterwards.
 */
int tcp_server_dial(struct tcp_server *s, const struct rpc_route *route,
		    struct rpc_backchannel **out);
/*
 * Handing over to the next program (lib/image.h), in this order.
 * finish: begins to read no further call; those that have come in part are still read. busy: connections with such a call, or one under way.
 * save, after tcp_server_finish() and before anything is freed: adds listeners and the connections that are at rest to the image, and
 * reads and accepts nothing more. Others end with this program: those with calls that did not end, those under TLS, and those to clients.
 * load, in the next program: takes the connections. Listeners are tcp_server_adopt()'s, by tcp_saved_listener(). 0, or -EPROTO, -ENOMEM.
 */
void tcp_server_finish(struct tcp_server *s);
unsigned tcp_server_busy(struct tcp_server *s);
void tcp_server_save(struct tcp_server *s, struct image_writer *w);
/* Adds the listening sockets only, which go on when this server is freed. */
void tcp_server_save_listeners(struct tcp_server *s, struct image_writer *w);
int tcp_server_load(struct tcp_server *s, struct image_reader *r);
/* The next listening socket of the image, the caller's from now on, or -1; *at is {0} at first. */
int tcp_saved_listener(struct image_reader *r, struct image_at *at);

/* Stops accepting and reading; requests in flight are still answered. */
void tcp_server_quiesce(struct tcp_server *s);
/* Closes everything and frees; waits until requests in flight have come back. */
void tcp_server_free(struct tcp_server *s);

struct tcp_stats {
	uint64_t connections, accepted, refused, closed_idle, closed_error, calls, replies, sends,
		bytes_in, bytes_out, waits_memory;
	uint64_t closed_room;		  /* connections closed to make room for others */
	uint64_t bytes_spliced;		  /* of bytes_out: file data that were not copied */
	uint64_t callbacks;		  /* calls to clients */
	uint64_t stray_replies;		  /* from clients, to no call under way */
	uint64_t moved;			  /* times that a connection went to another loop */
	uint64_t dialed;		  /* connections that the server has made to clients */
	uint64_t requests, requests_busy; /* requests that exist, and those under way */
};
void tcp_server_stats(struct tcp_server *s, struct tcp_stats *out);
/* The object that was given, or NULL. */
struct tls *tcp_server_tls(const struct tcp_server *s);

#endif

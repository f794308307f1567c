/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RPC-over-RDMA version 1 (RFC 8166, 8267, 8797): listeners on every RDMA device, connections,
 * credits.
 */
#ifndef RN_TRANSPORT_RDMA_SERVER_H
#define RN_TRANSPORT_RDMA_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/budget.h"
#include "lib/image.h"
#include "lib/log.h"
#include "rpc/request.h"
#include "transport/event_loop.h"

struct rpc_clients;

struct rr_server;

struct rr_config {
	struct ev_loop *const *loops; /* CQs are spread over them; loops[0] has the event channel */
	unsigned nloops;
	struct rpc_executor executor;
	struct rpc_clients *clients; /* quotas of memory are theirs */
	struct rn_payload_pool *pool;
	struct rn_budget *budget;
	const struct rn_logger *log;
	uint32_t inline_size; /* 1024..262144, a multiple of 1024 */
	unsigned credits;     /* granted to each connection, >= 1; fewer where memory is scarce */
	unsigned max_connections;
	unsigned idle_seconds;	/* 0: never */
	unsigned stall_seconds; /* a peer that takes no reply for this long is closed; 0: 60 */
	unsigned poll_usec;	/* adaptive CQ polling; 0: never spin */
	uint32_t max_message;	/* longest call put together from Read chunks, bytes */
	/* The same function as rpc_server.admission. Strangers get few connections, and lose them first. */
	enum rpc_admission (*admission)(void *ctx, struct rpc_conn *conn);
	void *admission_ctx;
};

/* Bytes that a server needs of a budget of `whole` bytes, with the heads of its replies. sure: true if a device is to be
 * served, and not only if one comes. Where there is more, it takes more. */
size_t rr_server_memory(size_t whole, bool sure);
int rr_server_new(const struct rr_config *cfg, struct rr_server **out);
/* 0 or -errno. -ENODEV: there is no RDMA device yet; where the kernel lets it bind, it listens all the same, and serves when one
 * comes. The port in addr must not be 0. */
int rr_server_listen(struct rr_server *s, const struct sockaddr *addr, socklen_t len);
/* Families that are served now: there is a listener, and a device. Changes as devices come and go.
 * Any thread. */
#define RR_SERVES_IPV4 1u
#define RR_SERVES_IPV6 2u
unsigned rr_server_serves(struct rr_server *s);
/* True if the machine has a device now. */
bool rr_device_is_there(void);
void rr_server_quiesce(struct rr_server *s);
void rr_server_free(struct rr_server *s);

/*
 * Connections cannot go on in the next program (doc/design/upgrade.md), but their clients should not look for a server before it listens. So
 * their descriptors go along, which keeps them alive, and answers nothing: as soon as the next program closes these, clients connect again.
 */
void rr_server_save(struct rr_server *s, struct image_writer *w);

#define RR_LEFT_MAX 16
struct rr_left {
	int fd[RR_LEFT_MAX];
	unsigned n;
};
/* Takes what the program before has left. 0 or -EPROTO. */
int rr_left_take(struct rr_left *left, struct image_reader *r);
/* Ends those connections. Takes as long as the kernel has work with them. */
void rr_left_end(struct rr_left *left);

/* Causes of an ERR_CHUNK. */
enum rr_refusal {
	RR_REFUSED_HEADER,  /* a transport header that cannot be read */
	RR_REFUSED_CHUNKS,  /* chunks that do not fit together, or are too long */
	RR_REFUSED_BROKEN,  /* a call whose chunks have broken a connection before */
	RR_REFUSED_MESSAGE, /* no RPC call */
	RR_REFUSED_REPLY,   /* the reply does not fit the client's chunks */
	RR_REFUSALS
};

struct rr_stats {
	uint64_t connections, accepted, refused, disconnects, calls, replies, read_chunks,
		read_segments, read_bytes, write_chunks, write_segments, write_bytes, reply_chunks,
		position_zero, invalidations, err_vers, err_chunk, dropped, sq_waits, waits_memory,
		cq_errors, devices, callbacks;
	uint64_t closed_room; /* connections closed to make room for others */
	uint64_t posts;	      /* times that the send queue was given work */
	uint64_t completions; /* of Receives and of work in the send queue */
	/* Segments in calls' lists, whether used or not. */
	uint64_t listed_read, listed_write, listed_reply;
	uint64_t refused_by[RR_REFUSALS]; /* calls that ERR_CHUNK is the answer to */
	uint64_t credits;		  /* granted to the connections that exist now */
	/*
	 * Objects that exist now: requests, and those under way; queue pairs, completion queues,
	 * memory regions of connections and of payload slabs; bytes of the connections' part of the
	 * budget.
	 */
	uint64_t requests, requests_busy, qps, cqs, mrs, slab_mrs, conn_bytes;
};
void rr_server_stats(struct rr_server *s, struct rr_stats *out);

#endif

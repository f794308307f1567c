/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of the UDP transport: its objects, and functions by the file that has them.
 *
 * Threads. A socket is read on one event loop. Replies are sent by the thread that ends the call; if the socket
 * is full a reply is lost, and the client sends its call again.
 *
 * Locks: udp_server.lock, udp_ration.lock and udp_asked.lock are leaves.
 */
#ifndef RN_TRANSPORT_UDP_PRIVATE_H
#define RN_TRANSPORT_UDP_PRIVATE_H

#include <netinet/in.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "rpc/client.h"
#include "rpc/request.h"
#include "transport/udp/udp_ration.h"
#include "transport/udp/udp_server.h"

#define UDP_DATA_MAX (32u << 10) /* file data of one call, as Linux' server has it */
/* Longest call and reply, with room for the headers */
#define UDP_MESSAGE_MAX (UDP_DATA_MAX + 4096u)
#define UDP_HEAD_SIZE                                                                              \
	1024u /* bytes of a call that its request keeps; the rest gets a payload buffer */
#define UDP_CALLS_MAX 256u    /* calls under way */
#define UDP_STRANGERS_MAX 32u /* those of them whose hosts no export is known to admit */
#define UDP_READY                                                                                  \
	16u /* requests that are made at the start, so that the last memory is not needed */
#define UDP_BATCH 32u /* datagrams that are read in one turn of the event loop */

/* A request with the first bytes of its call. */
struct udp_req {
	struct rpc_request *rpc;
	STAILQ_ENTRY(udp_req) link; /* in udp_server.idle */
	uint8_t head[UDP_HEAD_SIZE];
};
STAILQ_HEAD(udp_req_list, udp_req);

struct udp_listener {
	SLIST_ENTRY(udp_listener) link;
	struct udp_server *srv;
	struct ev_loop *loop;
	struct event *ev;
	int fd;
	uint16_t port;			     /* host order */
	uint8_t buffer[UDP_MESSAGE_MAX + 1]; /* the loop's thread only */
};
SLIST_HEAD(udp_listener_list, udp_listener);

/* The connection of one call. The listener lives as long. */
struct udp_conn {
	struct rpc_conn rpc;
	struct udp_listener *from;
	uint32_t call_len; /* bytes of the call */
	bool stranger;	   /* counted among them */
};

struct udp_server {
	struct udp_config cfg;
	struct udp_listener_list listeners;
	unsigned nlisteners;
	struct udp_ration ration;
	struct udp_asked asked;
	uint8_t id_key[crypto_shorthash_KEYBYTES];
	_Atomic uint64_t calls, replies, bytes_in, bytes_out;
	_Atomic uint64_t dropped[UDP_DROPPED];
	_Atomic unsigned made; /* requests that exist */

	pthread_mutex_t lock; /* protects the members below, and rpc_client.datagrams */
	pthread_cond_t gone;
	unsigned busy;	    /* calls under way */
	unsigned strangers; /* those of them whose hosts no export is known to admit */
	struct udp_req_list idle;
	unsigned nidle;
};

static inline void udp_count(_Atomic uint64_t *n, uint64_t add)
{
	atomic_fetch_add_explicit(n, add, memory_order_relaxed);
}

/* udp_call.c: requests, a call from its datagram to its end, and the quotas of the calls under way. */

size_t udp_pool_memory(void); /* bytes that udp_pool_fill takes, with the heads of replies */
int udp_pool_fill(struct udp_server *s); /* 0 or -ENOMEM */
void udp_pool_free(struct udp_server *s);

struct udp_datagram {
	const uint8_t *data;
	uint32_t len;
	struct sockaddr_storage peer, local;
};

/* Hands the call to the executor, or counts it as dropped. On the listener's event loop. */
void udp_call_take(struct udp_listener *l, const struct udp_datagram *d);

/* Counts a datagram that gets no answer. */
void udp_dropped(struct udp_server *s, enum udp_dropped why);

/* udp_socket.c: sockets that tell to which of the machine's addresses a datagram came, and send from one of them. */

/* A bound socket that does not block, or -errno. */
int udp_socket_open(const struct sockaddr *addr, socklen_t len);

/* Bytes of the next datagram, or -errno; -EMSGSIZE: it was longer, and is gone. local is the address that it came to,
 * with that port. */
ssize_t udp_socket_receive(int fd, uint8_t *buf, size_t size, uint16_t port,
			   struct sockaddr_storage *peer, struct sockaddr_storage *local);

/* Sends one datagram from local to peer. 0 or -errno. */
int udp_socket_send(int fd, const struct iovec *iov, unsigned niov,
		    const struct sockaddr_storage *peer, const struct sockaddr_storage *local);

#endif

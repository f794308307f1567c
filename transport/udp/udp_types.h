/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects of the UDP transport. The files include each other one way: udp_asked, udp_ration, udp_pool, udp_socket,
 * udp_reply, udp_call, udp_listen, udp_server.
 *
 * Threads. A socket is read on one event loop. Replies are sent by the thread that ends the call; if the socket
 * is full a reply is lost, and the client sends its call again.
 *
 * Locks: udp_server.lock, udp_ration.lock and udp_asked.lock are leaves.
 */
#ifndef RN_TRANSPORT_UDP_TYPES_H
#define RN_TRANSPORT_UDP_TYPES_H

#include <netinet/in.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "rpc/client.h"
#include "rpc/request.h"
#include "transport/udp/udp_asked.h"
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

#endif

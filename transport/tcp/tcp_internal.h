/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the TCP transport's files share.
 *
 * Threads. A connection belongs to one event loop; reading, timers and closing happen there only.
 * Replies come from workers and are sent by them; what the socket does not take at once is queued
 * and goes on from the loop. A worker that finds something for the loop to do (output is stuck, the
 * connection broke, room for another request) posts the connection's task.
 *
 * References on a connection: one of its loop's list until it is closed, one for each request
 * handed to the sink, one for a posted task, one for a queued wait for memory. The last one closes
 * the descriptor.
 *
 * Locks: tcp_conn.lock, tcp_loop.lock and tcp_server.lock are leaves: none is taken while another
 * is held.
 */
#ifndef RN_TRANSPORT_TCP_INTERNAL_H
#define RN_TRANSPORT_TCP_INTERNAL_H

#include <event2/event.h>
#include <event2/event_struct.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/clock.h"
#include "rpc/client.h"
#include "rpc/request.h"
#include "transport/event_loop.h"
#include "transport/tcp/tcp_record.h"
#include "transport/tcp/tcp_server.h"
#include "transport/turns.h"

#define TCP_HEAD_SIZE                                                                              \
	1024u /* a call's first bytes; all of most calls, and all before a WRITE's data */
#define TCP_SCRATCH_SIZE                                                                           \
	4096u /* one read at a record's start: several small calls, little of a large one */
#define TCP_OUT_MAX (4u << 20) /* reply bytes queued, above which no further call is read */
#define TCP_WRITE_QUANTUM 8u   /* replies of one connection in one turn */
#define TCP_REPLY_MAX (RN_PAYLOAD_MAX + RPC_HEAD_SIZE)
#define TCP_STALL_SECONDS 60u
#define TCP_PRESSED_SECONDS 4u	   /* without any progress, while others wait for memory */
#define TCP_RATE_GRACE_SECONDS 10u /* for a record to begin arriving at its rate */
#define TCP_RATE (4u << 10)	   /* bytes a second, on average, that a record must come by */
/* The same while others wait for memory, in each span of about that time: what came before buys no
 * time. Less than the second between two looks. */
#define TCP_PRESSED_SPAN_MS 900u
#define TCP_PRESSED_RATE (32u << 10)
#define TCP_LOWAT (64u << 10)	  /* bytes that are there before a long record gets its memory */
#define TCP_STRANGER_CONNS 16u	  /* of a client that no export admits: Linux' nconnect at most */
#define TCP_STRANGER_RECORD 4096u /* payload of its calls */
#define TCP_WINDOW                                                                                 \
	16u /* requests in flight before the peer has shown that it reads its replies              \
	     */

/* A request with its first bytes and the state of its reply on the stream. */
struct tcp_req {
	struct rpc_request *rpc;
	STAILQ_ENTRY(tcp_req) link; /* in a free list or an output queue */
	size_t sent;		    /* bytes of the reply, mark included, that are out */
	struct rpc_client *client;  /* whose share it counts in, while in use */
	bool prepaid; /* its memory is in the server's reserve, not a share of its own */
	uint8_t mark[4];
	uint8_t head[TCP_HEAD_SIZE];
};
STAILQ_HEAD(tcp_req_list, tcp_req);

enum tcp_pause {
	TCP_GOING,
	TCP_WAIT_ROOM,	  /* max_requests are in flight */
	TCP_WAIT_REQUEST, /* no request could be made */
	TCP_WAIT_PAYLOAD, /* a payload buffer is asked for */
};

struct tcp_conn {
	struct rpc_conn rpc;
	struct tcp_loop *loop;
	int fd;

	/* The loop's thread only. */
	TAILQ_ENTRY(tcp_conn) link;	/* loop->conns */
	TAILQ_ENTRY(tcp_conn) starving; /* loop->starving, while TCP_WAIT_REQUEST */
	struct event rd, wr;
	struct turn turn;
	enum tcp_pause pause;
	bool open;     /* in loop->conns */
	bool writable; /* the socket has room again for queued replies */
	bool part;     /* pending is the beginning of a record */
	bool awaits;   /* until more of a long record is there, or none will come */
	bool arrived;  /* so it is */
	bool eof;      /* written under lock too: replies look at it */
	struct tcp_record rec;
	struct tcp_req *cur; /* the record that is being read */
	/* Bytes that were read but not used yet: what a pause left, or a small part of a record. */
	uint8_t *pending;
	uint32_t pending_len;
	uint64_t active_ns; /* when bytes came last */
	uint64_t useful_ns; /* when a call was complete last */
	uint64_t record_ns; /* when the record in hand began, or got its memory */
	uint64_t span_ns;   /* when the span began in which its rate is measured */
	uint32_t span_got;  /* what had come of it then */
	bool slow;	    /* in the span before */
	uint64_t wait_ns;   /* when the record in hand began to wait for the server */
	uint64_t jam_ns;    /* since when its client has got none, while its record waits */
	unsigned jam_taken; /* buffers that the client had got by then */
	struct rn_payload_waiter waiter;

	struct ev_task task;
	pthread_mutex_t lock; /* what follows */
	struct tcp_req_list out;
	unsigned inflight; /* requests from submission until their reply is out */
	unsigned window;   /* how many may be: grows with replies taken, shrinks when the socket is
			      full */
	size_t out_bytes;  /* of the replies in out */
	uint64_t out_ns;   /* when the first reply of out became the first */
	uint64_t moved_ns; /* when the socket last took some of it */
	struct rn_payload *granted; /* what the waiter brought */
	bool closed;
	bool broken;	/* a send failed, or a reply did not fit: the loop shall close */
	bool sending;	/* some thread is in sendmsg */
	bool blocked;	/* the socket is full; the loop waits for room */
	bool posted;	/* task is on its way */
	bool want_room; /* post when inflight goes down */
};
TAILQ_HEAD(tcp_conn_list, tcp_conn);

/* One event loop's share. */
struct tcp_loop {
	struct tcp_server *srv;
	struct ev_loop *ev;
	struct event *tick;	    /* once a second: idle and stuck connections */
	struct event *retry;	    /* while connections starve for a request */
	struct tcp_conn_list conns; /* longest without input first */
	struct tcp_conn_list starving;
	bool quiet; /* quiesced */
	unsigned index;
	struct turns *turns; /* the event loop's */
	uint64_t feed;	     /* how often starving connections were looked at */
	uint64_t pressed_ns; /* when somebody last had to wait for memory */
	uint8_t scratch[TCP_SCRATCH_SIZE];

	struct ev_task room;
	atomic_bool making_room; /* room is on its way */

	struct ev_task wake;  /* a request came back while connections starve */
	pthread_mutex_t lock; /* what follows */
	struct tcp_req_list idle;
	unsigned nidle;
	bool hungry; /* post wake when a request comes back */
	bool waking; /* wake is on its way */
};

struct tcp_listener {
	SLIST_ENTRY(tcp_listener) link;
	struct tcp_server *srv;
	struct tcp_loop *loop;
	struct event *ev;
	struct event *retry; /* while it pauses */
	int fd;
	int reserve_fd; /* given up for a moment to refuse a connection when descriptors run out */
	uint64_t warned_ns;
};
SLIST_HEAD(tcp_listener_list, tcp_listener);

struct tcp_counters {
	_Atomic uint64_t accepted, refused, closed_idle, closed_error, calls, replies, bytes_in,
		bytes_out, waits_memory;
};

struct tcp_server {
	struct tcp_config cfg;
	struct tcp_loop *loops;
	struct tcp_listener_list listeners;
	struct tcp_counters n;
	_Atomic uint64_t next_id;
	_Atomic unsigned prepaid; /* requests that may still be made from what was taken out of the
				     budget at start */
	unsigned reserve;	  /* what prepaid was at first */
	_Atomic unsigned made;	  /* requests that exist, idle ones too */
	pthread_mutex_t lock;	  /* live */
	pthread_cond_t gone;
	unsigned live; /* connections that hold a descriptor */
};

#define tcp_count(srv, what, add)                                                                  \
	atomic_fetch_add_explicit(&(srv)->n.what, add, memory_order_relaxed)

/* tcp_listen.c */
void tcp_listener_free(struct tcp_listener *l); /* on its loop */

/* tcp_conn.c */
int tcp_conn_new(struct tcp_server *srv, int fd,
		 const struct sockaddr_storage *peer); /* takes fd, on error
							* too; on any loop */
enum tcp_close_reason { TCP_CLOSE_PEER, TCP_CLOSE_IDLE, TCP_CLOSE_ERROR };
void tcp_conn_close(struct tcp_conn *c, enum tcp_close_reason why,
		    const char *text);		  /* on the loop */
void tcp_conn_post_locked(struct tcp_conn *c);	  /* c->lock held, and a reference */
void tcp_conn_take_turn(struct tcp_conn *c);	  /* to read, and to write if writable */
bool tcp_conn_has_room(const struct tcp_conn *c); /* for another call; c->lock held */
void tcp_conn_tick(struct tcp_loop *loop);
enum rpc_standing tcp_conn_standing(struct tcp_conn *c); /* asks; does not wait */

/* tcp_room.c */
/* Asks every loop to close some connections, so that there is room for new ones. Any thread. */
void tcp_room_ask(struct tcp_server *srv);
void tcp_room_make(struct ev_task *task);
/* Has a new connection's client too many for a stranger? On its loop. */
bool tcp_room_is_over(struct tcp_conn *c);
/* Records that hold some memory may wait for each other's: gives up some of them. */
void tcp_room_unjam(struct tcp_loop *loop, uint64_t now);
/* The record in hand begins to be measured. On the loop, as what follows. */
void tcp_room_measure(struct tcp_conn *c, uint64_t now);
/* Does it come too slowly, with others waiting for memory or without? About once a second. */
bool tcp_room_is_slow(struct tcp_conn *c, uint64_t now, bool pressed);

/* tcp_read.c: on the loop. */
void tcp_read_ready(evutil_socket_t fd, short what, void *arg);
void tcp_read_resume(struct tcp_conn *c);
/* The record in hand has waited since wait_ns for the server. That time does not count against the
 * peer, whose rate is measured anew. */
void tcp_read_forgive_wait(struct tcp_conn *c);
/* Reads until the loop's work has come up to `until`, or there is no more. */
void tcp_read_some(struct tcp_conn *c, uint64_t until);
void tcp_read_stop(struct tcp_conn *c); /* gives back what reading holds */

/* tcp_write.c */
extern const struct rpc_conn_ops tcp_conn_ops;
void tcp_write_ready(evutil_socket_t fd, short what, void *arg);
void tcp_write_some(struct tcp_conn *c);    /* on the loop, which holds a reference */
void tcp_write_discard(struct tcp_conn *c); /* closed is set */
void tcp_conn_destroy(struct rpc_conn *rc);

/* tcp_pool.c: requests. get on the loop only; put from any thread. */
int tcp_pool_reserve(struct tcp_server *srv); /* before the loops */
void tcp_pool_unreserve(struct tcp_server *srv);
int tcp_pool_fill(struct tcp_loop *loop);
/* NULL: there is no memory, or the client has its share. */
struct tcp_req *tcp_pool_get(struct tcp_loop *loop, struct rpc_client *client);
void tcp_pool_put(struct tcp_loop *loop, struct tcp_req *t);
void tcp_pool_free(struct tcp_loop *loop);
unsigned tcp_pool_idle(struct tcp_loop *loop); /* any thread */
void tcp_pool_starve(struct tcp_conn *c);
void tcp_pool_unstarve(struct tcp_conn *c);
void tcp_pool_wake(struct ev_task *task);
void tcp_pool_feed(struct tcp_loop *loop); /* lets starving connections try again */

#endif

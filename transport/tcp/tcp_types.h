/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects of the TCP transport. tcp_private.h declares what is done with them.
 *
 * Threads. A connection belongs to one event loop at a time; reading, timers and closing happen
 * there only. Replies come from workers and are sent by them; what the socket does not take at once
 * is queued and goes on from the loop. A worker that finds something for the loop to do (output is
 * stuck, the connection broke, room for another request) posts the connection's task.
 *
 * A connection may move to another loop (tcp_move.c). Its old loop's thread then changes
 * tcp_conn.loop, under tcp_conn.lock, and only while inflight is 0, no task of the connection is
 * posted and it does not wait for memory. So tcp_conn.loop stands still for its loop's thread, for
 * whoever counts in inflight, and for whoever holds the lock. Others use tcp_conn.srv.
 *
 * References on a connection: one of its loop's list until it is closed, also on the way to another
 * loop; one for each request handed to the executor, one for a posted task, one for a queued wait for
 * memory. The last one closes the descriptor.
 *
 * Locks: tcp_conn.lock, tcp_loop.lock and tcp_server.lock are leaves: none is taken while another
 * is held.
 */
#ifndef RN_TRANSPORT_TCP_TYPES_H
#define RN_TRANSPORT_TCP_TYPES_H

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
#include "transport/tls/tls.h"
#include "transport/turns.h"

#define TCP_HEAD_SIZE                                                                              \
	1024u /* a call's first bytes; all of most calls, and all before a WRITE's data */
/* One read at a record's start: many small calls, some of 4 KiB with their records, little of a
 * large one. */
#define TCP_SCRATCH_SIZE (16u << 10)
/* Bytes of scratch for a host that no export admits; no more of its input is kept over a pause. */
#define TCP_STRANGER_SCRATCH 4096u
#define TCP_OUT_MAX (4u << 20) /* reply bytes queued, above which no further call is read */
#define TCP_WRITE_QUANTUM                                                                          \
	8u /* most sends on one connection in one turn, without those of a reply's beginning */
#define TCP_PARCEL_IOV 128u /* pieces of replies in one send */
/* Reply bytes that the event thread holds back, until the end of its turn, to send them together */
#define TCP_HELD_MAX (64u << 10)
#define TCP_REPLY_MAX (RN_PAYLOAD_MAX + RPC_HEAD_SIZE)
#define TCP_STALL_SECONDS 60u
#define TCP_PRESSURE_SECONDS 4u	   /* without any progress, while others wait for memory */
#define TCP_RATE_GRACE_SECONDS 10u /* time for a record to reach its rate */
#define TCP_RATE (4u << 10)	   /* bytes a second that a record must come by on average */
/* The rate while others wait for memory, in each span of about that time: earlier bytes do not
 * count. Less than the second between two looks. */
#define TCP_PRESSED_SPAN_MS 900u
#define TCP_PRESSED_RATE (32u << 10)
/* Bytes that must have come before a long record gets its memory */
#define TCP_LOWAT (64u << 10)
/* Limit for a client that no export admits: Linux' nconnect at most */
#define TCP_STRANGER_CONNS 16u
#define TCP_STRANGER_RECORD 4096u /* longest call of such a client */
#define TCP_STAY_SECONDS 5u	  /* between two moves of a connection to another loop */
/* Connections that the server makes: all of them, as a fraction of max_connections */
#define TCP_DIALED_PART 4u
#define TCP_DIALED_IDLE_SECONDS                                                                    \
	300u /* without a message, above which such a connection is closed */
#define TCP_WINDOW                                                                                 \
	16u /* requests in flight before the peer has shown that it reads its replies              \
	     */

/* A request with its first bytes and the state of its reply on the stream. */
struct tcp_req {
	struct rpc_request *rpc;
	STAILQ_ENTRY(tcp_req) link; /* in a free list or an output queue */
	size_t size;		    /* bytes of the reply, mark included */
	size_t sent;		    /* bytes of it sent so far */
	struct rpc_client *client;  /* client that it is charged to while in use */
	bool prepaid;		    /* its memory comes from the server's reserve */
	uint8_t mark[4];
	uint8_t head[TCP_HEAD_SIZE];
};
STAILQ_HEAD(tcp_req_list, tcp_req);

struct tcp_parcel;
struct tcp_conn;

/* Functions that send and receive a connection's bytes. All return at once. */
struct tcp_io {
	/* As recv(2), but -errno; reads size bytes unless no more are there. */
	ssize_t (*recv)(struct tcp_conn *c, uint8_t *to, size_t size);
	/* Bytes of the parcel that went out, 0 if the socket is full, or -errno. One thread at a time. */
	ssize_t (*send)(struct tcp_conn *c, const struct tcp_parcel *p);
	/* True if there is input that the socket does not tell of. NULL: there never is. */
	bool (*pending)(struct tcp_conn *c);
	/* Tells the peer of the end, before the socket is shut down. NULL: nothing to tell. */
	void (*end)(struct tcp_conn *c);
	size_t held; /* most bytes of input that are neither in the socket nor delivered */
};

enum tcp_pause {
	TCP_GOING,
	TCP_WAIT_ROOM,	  /* max_requests are in flight */
	TCP_WAIT_REQUEST, /* no request could be made */
	TCP_WAIT_PAYLOAD, /* a payload buffer has been asked for */
	TCP_WAIT_TLS,	  /* replies go out before a TLS handshake */
	TCP_SHAKING,	  /* the TLS handshake */
	TCP_LEAVING,	  /* replies go out before it moves to another loop */
	TCP_WAIT_END,	  /* the next program reads on (tcp_hand_over.c) */
};

struct tcp_conn {
	struct rpc_conn rpc;
	struct tcp_server *srv;
	struct tcp_loop *loop; /* see above */
	int fd;
	uint32_t max_record; /* bytes of the longest record that is taken */
	/* Written by the loop's thread under lock, while no thread sends. */
	const struct tcp_io *io;
	struct tls_shake shake;
	bool shakes;	   /* shake has begun, and is counted */
	uint64_t shake_ns; /* time when the client asked for TLS */

	/* The loop's thread only. */
	struct tcp_req *asked;	    /* the question for TLS, while earlier calls are not answered */
	TAILQ_ENTRY(tcp_conn) link; /* loop->conns */
	TAILQ_ENTRY(tcp_conn) starving; /* loop->starving, while TCP_WAIT_REQUEST */
	struct event rd, wr;
	struct turn turn;
	enum tcp_pause pause;
	bool open;     /* in loop->conns */
	bool writable; /* the socket has room for queued replies */
	bool part;     /* pending is the beginning of a record */
	bool awaits;   /* reading waits until more of a long record has come */
	bool arrived;  /* more has come, or none will */
	bool eof;      /* written under lock too, since replies read it */
	struct tcp_record rec;
	struct tcp_req *cur; /* request of the record being read */
	/* Bytes that were read but not used yet: kept over a pause, or a small part of a record. */
	uint8_t *pending;
	uint32_t pending_len;
	uint64_t active_ns; /* time of the last bytes */
	uint64_t useful_ns; /* time of the last complete call */
	uint64_t record_ns; /* time when the record began, or got its memory */
	uint64_t span_ns;   /* start of the span in which its rate is measured */
	uint32_t span_got;  /* bytes of it at that time */
	bool slow;	    /* too slow in the span before */
	uint64_t wait_ns;   /* start of the present wait of its record for the server */
	uint64_t jam_ns;    /* time since when the client has got none, while its record waits */
	unsigned jam_taken; /* buffers that the client had got at that time */
	struct rn_payload_waiter waiter;
	uint64_t work;		/* work for it since its loop's last tick, see transport/turns.h */
	uint64_t left_ns;	/* time since when it has not been read, while TCP_LEAVING */
	uint64_t stays_until;	/* until then it is not asked to move (again) */
	struct ev_task arrival; /* on its next loop */

	struct ev_task task;
	pthread_mutex_t lock; /* protects the members below */
	struct tcp_req_list out;
	/* requests from submission until their reply is out, and calls to the client until these are */
	unsigned inflight;
	/* Most requests in flight: grows with replies taken, shrinks when the socket is full */
	unsigned window;
	size_t out_bytes;	    /* bytes of the replies in out */
	uint64_t out_ns;	    /* time when the first reply of out became the first */
	uint64_t moved_ns;	    /* time when the socket last took some of it */
	struct rn_payload *granted; /* buffer that the waiter got */
	bool closed;
	bool unwanted;		/* dialed, and not needed any more: the loop shall close */
	bool broken;		/* a send failed, or a reply did not fit: the loop shall close */
	bool silent;		/* a TLS handshake is under way: nothing is sent */
	enum tls_result shaken; /* result of the last step of the handshake */
	bool stepped;		/* shaken is new */
	bool sending;		/* some thread is in sendmsg */
	bool blocked;	    /* the socket is full, or not connected yet; the loop waits for room */
	bool posted;	    /* task has been posted */
	bool post_on_reply; /* post when inflight goes down */
};
TAILQ_HEAD(tcp_conn_list, tcp_conn);

/* One event loop's part. */
struct tcp_loop {
	struct tcp_server *srv;
	struct ev_loop *ev;
	struct ev_second tick;	    /* idle and stuck connections */
	struct event *retry;	    /* while connections starve for a request */
	struct tcp_conn_list conns; /* longest without input first */
	struct tcp_conn_list starving;
	bool finishing; /* no call is begun to be read */
	bool quiesced;	/* no new connections and calls */
	unsigned index;
	struct tcp_conn *leaving; /* the connection that is TCP_LEAVING, or NULL */
	struct tcp_loop *leaves_to;
	struct event *patience;	 /* timer: it has not come to rest */
	uint64_t gave_ns;	 /* time when it last wanted to give a connection away */
	uint64_t work_seen;	 /* ev->work at the last tick */
	uint64_t feed;		 /* rounds of feeding starving connections */
	uint64_t memory_wait_ns; /* last time that a request had to wait for memory */
	uint8_t scratch[TCP_SCRATCH_SIZE];

	struct ev_task evict;
	atomic_bool evicting; /* evict has been posted */

	struct ev_task wake;  /* a request came back while connections starve */
	pthread_mutex_t lock; /* protects the members below */
	struct tcp_req_list idle;
	unsigned nidle;
	bool hungry; /* post wake when a request comes back */
	bool waking; /* wake has been posted */
};

struct tcp_listener {
	SLIST_ENTRY(tcp_listener) link;
	struct tcp_server *srv;
	struct tcp_loop *loop;
	struct event *ev;
	struct event *retry; /* timer for the end of a pause */
	int fd;
	int reserve_fd; /* closed for a moment to refuse a connection when descriptors run out */
	uint64_t warned_ns;
};
SLIST_HEAD(tcp_listener_list, tcp_listener);

struct tcp_counters {
	_Atomic uint64_t accepted, refused, closed_idle, closed_error, calls, replies, sends,
		bytes_in, bytes_out, bytes_spliced, waits_memory, callbacks, stray_replies, moved,
		dialed, closed_room;
};

struct tcp_server {
	struct tcp_config cfg;
	struct tcp_loop *loops;
	struct tcp_listener_list listeners;
	struct tcp_counters n;
	/* Requests that may still be made from the budget taken at start */
	_Atomic unsigned prepaid;
	unsigned reserve;      /* value of prepaid at start */
	_Atomic unsigned made; /* requests that exist, idle ones too */
	pthread_mutex_t lock;  /* live, dialed */
	pthread_cond_t gone;
	unsigned live;	 /* connections that hold a descriptor */
	unsigned dialed; /* connections among them that the server has made */
};

#define tcp_count(srv, what, add)                                                                  \
	atomic_fetch_add_explicit(&(srv)->n.what, add, memory_order_relaxed)

/* Bytes of a request, and the bytes that one in use counts for. */
#define TCP_REQUEST_BYTES (sizeof(struct tcp_req) + sizeof(struct rpc_request))
#define TCP_HELD_BYTES (TCP_REQUEST_BYTES + RPC_HEAD_SIZE)

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects of the RDMA transport. rdma_private.h declares what is done with them.
 *
 * Threads. loops[0] owns the event channel, the listeners, the devices, and every rdma_cm_id's
 * creation and end. A connection has a loop of its own, on which everything else of it happens,
 * posting included: a worker hands its reply over (rr_conn.replies). It must not post itself,
 * because drivers that post by a system call (rxe, siw) refuse a thread whose credentials have
 * changed since the device was opened, and workers take on the identity of callers.
 *
 * Life of a connection:
 *   RR_ACCEPTING  made and accepted on loops[0]; calls that arrive are held
 *   RR_OPEN       established
 *   RR_CLOSING    the QP is in error; flushed completions are awaited, RR_FLUSH_MS at most
 *   RR_DEAD       QP, CQ and memory regions are gone, in this order
 * After RR_DEAD loops[0] gives back the device, and destroys the id when the client knows of the end
 * (rdma_accept.c). The memory is freed when the last request has come back from its worker. References (rr_conn.rpc.refs): one until the id is
 * gone, one for each request, one for each posted task.
 *
 * Ownership of a call: a receive context (rr_recv) belongs to the QP while posted; on arrival it is
 * bound to an rr_req, which owns it until the reply is posted (or there is none), when it is posted
 * again. A send context (rr_send) owns the rr_req until its completion only if RDMA Writes take
 * data from it.
 *
 * The send queue: slots are taken for a whole chain and given back at the completion of its last
 * work request, the only signaled one. What does not fit waits in rr_conn.waiting, in order. A
 * reply without RDMA Writes may be an unsignaled Send, which makes no completion, as a completion would
 * wake the loop once more for each call. Unsignaled Sends are known to be done when a later signaled
 * Send is. They have slots of their own, so that nothing waits for them.
 *
 * Locks: rr_server.lock, rr_conn.lock, rr_device.lock and rr_broken.lock are leaves; the payload
 * pool's is taken under rr_pool.lock.
 */
#ifndef RN_TRANSPORT_RDMA_TYPES_H
#define RN_TRANSPORT_RDMA_TYPES_H

#include <event2/event.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "lib/clock.h"
#include "rpc/client.h"
#include "transport/rdma/rdma_broken.h"
#include "transport/rdma/rdma_chunks.h"
#include "transport/rdma/rdma_header.h"
#include "transport/rdma/rdma_server.h"
#include "transport/event_loop.h"
#include "transport/turns.h"

#define RR_BATCH_MAX 8u	      /* Receives posted together, where the credits are many */
#define RR_SENDS_MAX 32u      /* Sends in flight on one connection; more wait */
#define RR_UNSIGNALED_MAX 16u /* Sends in a row that make no completion */
#define RR_SQ_DEPTH 256u /* at least RR_WRITES_MAX + 1, so that every chain fits an empty queue */
#define RR_KEYS_MAX (XDR_BULKS_MAX + 2u) /* regions of one transfer: bulk items, both heads */
#define RR_POST_BATCH 16u		 /* work requests built at once */
#define RR_FLUSH_MS 1000u
#define RR_ACCEPT_SECONDS 30u /* from accept to the established event */
#define RR_STALL_SECONDS 60u
#define RR_PRESSED_SECONDS 4u /* Sends without progress, while others wait for memory */
#define RR_STRANGER_CONNS 16u /* limit for a client that no export admits */
#define RR_BACK_CALLS 4u      /* calls to the client under way, and Receives for their replies */
#define RR_LEAVING_MAX 16u    /* connections being closed to make room for new ones */
#define RR_RETRY_SECONDS 5u   /* between two checks of devices and listeners */
#define RR_TELL_SECONDS 60u   /* a client is told so long that its connection has ended */
#define RR_TELL_MAX 64u	      /* clients being told */

struct rr_chain;
struct rr_conn;
struct rr_req;

/* A receive buffer, and the message in it. */
struct rr_recv {
	struct rr_conn *conn;
	uint8_t *buf;
	uint32_t len;
	TAILQ_ENTRY(rr_recv) link; /* in rr_conn.held, or on the way to a request */
	struct rn_fq_item turn;	   /* in rr_pool.starving: waiting for a request */
	struct rr_req *granted;	   /* request that the pool has just given it */
	struct ev_task task;
};
TAILQ_HEAD(rr_recv_list, rr_recv);

struct rr_send {
	uint8_t *buf;
	struct rr_req *req;	 /* request whose memory the chain reads, or NULL */
	unsigned wrs;		 /* slots of rr_conn.sq_free; 0: an unsignaled Send */
	struct rr_send *earlier; /* the Send posted before this one, if it was unsignaled */
	SLIST_ENTRY(rr_send) link;
};
SLIST_HEAD(rr_send_list, rr_send);

/* Next work to post for a request. */
enum rr_step {
	RR_STEP_READ,
	RR_STEP_REPLY,
	RR_STEP_DROP, /* no reply */
	RR_STEP_ERR_CHUNK,
	RR_STEP_ERR_VERS,
};

struct rr_req {
	struct rpc_request *rpc; /* its transport_private is this */
	struct rr_conn *conn;
	struct rr_recv *recv; /* the call's buffer; NULL once it is posted again */
	enum rr_step step;
	TAILQ_ENTRY(rr_req) link; /* free, waiting for memory or the send queue, reading */
	struct rn_payload *data;  /* destination of the Read chunks, until submission */
	struct rn_payload_waiter waiter;
	struct ev_task task;
	unsigned wrs; /* send queue slots held by its RDMA Reads */
	unsigned nmrs;
	struct ibv_mr *mr[RR_KEYS_MAX]; /* registered for this transfer alone: rdma_device.c */
	struct rr_call_plan plan;
	struct rr_header call;
};
TAILQ_HEAD(rr_req_list, rr_req);

/* Requests of all connections: grows with demand, within the budget. */
struct rr_pool {
	pthread_mutex_t lock;
	struct rr_req_list idle;
	struct rn_fq starving; /* messages without a request; each holds its connection */
	unsigned count, max;
	unsigned nidle; /* requests in idle, a part of count */
};

/* One completion channel for each device and loop. */
struct rr_channel {
	struct ibv_comp_channel *comp;
	struct event *ev;
	unsigned at_once; /* events to read without asking the loop whether there are more */
	unsigned full;	  /* times in a row that there were as many */
};

/* A device in use. It is closed with its last connection, so that it can be unplugged. */
struct rr_device {
	LIST_ENTRY(rr_device) link;
	struct rr_server *srv;
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	bool iwarp;
	bool own_domains;	/* each connection has a protection domain: rdma_device.c */
	atomic_bool invalidate; /* Send with Invalidate works */
	unsigned users;		/* connections */
	struct rr_channel *channels;
	_Atomic uint64_t no_memory_ns;	   /* time of the last warning about memory */
	pthread_mutex_t lock;		   /* held while a slab is registered */
	_Atomic(struct ibv_mr *) *slab_mr; /* RN_SLABS_MAX: see lib/payload.h */
};

enum rr_state { RR_ACCEPTING, RR_OPEN, RR_CLOSING, RR_DEAD };

/* Bits of rr_conn.events. */
enum {
	RR_EV_ESTABLISHED = 1,
	RR_EV_CLOSE = 2,
	RR_EV_POLL = 4,
	RR_EV_LOST = 8,	    /* with RR_EV_CLOSE: the peer's doing */
	RR_EV_RELEASE = 16, /* closed: give back the requests that wait */
	RR_EV_EXPIRE = 32,  /* look for calls to the client whose time is up */
};

/* Calls to the client: rdma_back.c. */
STAILQ_HEAD(rr_back_list, rr_back_msg);
struct rr_back {
	struct rr_back_list handed;  /* by other threads; under rr_conn.lock */
	struct rr_back_list waiting; /* for a credit or the send queue; the loop's, as all below */
	unsigned most;		     /* calls under way, as there are Receives for their replies */
	unsigned credits;	     /* granted by the client; at most that */
	unsigned ncalls;	     /* sent and not answered */
	uint32_t xid[RR_BACK_CALLS]; /* of those */
};

struct rr_conn {
	struct rpc_conn rpc;
	struct rpc_conn_rdma shown;
	struct rr_server *srv;
	struct rr_device *dev;
	struct ev_loop *loop;
	unsigned loop_index;
	struct rdma_cm_id *id;
	struct ibv_pd *pd; /* its own, or the device's */
	struct ibv_cq *cq;
	LIST_ENTRY(rr_conn) link; /* rr_server.conns */
	size_t budget;
	unsigned credits;   /* granted in every reply */
	unsigned batch;	    /* Receives posted together; there are 2 * batch beyond credits */
	uint32_t recv_size; /* bytes of a receive buffer */
	uint32_t threshold; /* longest Send to this client */
	bool invalidate;    /* the client's R bit */
	uint64_t made_ns;
	_Atomic uint64_t active_ns;
	_Atomic uint64_t sending_ns; /* last progress of a Send or Read; 0: none is posted */
	_Atomic int state;	     /* enum rr_state; written on the loop */
	_Atomic unsigned events;
	struct ev_task task; /* runs events */
	struct ev_task
		send_task; /* posts what other threads, or calls on the loop's own, have handed over */
	struct ev_task end_task; /* on loops[0] */
	bool connected;		 /* loops[0]: for all that the connection manager knows */

	/* The loop's thread. */
	struct rr_recv_list held;  /* arrived before the established event */
	struct rr_req_list hungry; /* waiting for payload memory */
	struct turn turn;	   /* waits to handle completions */
	struct event *flush_timer;
	unsigned cq_unacked;

	uint8_t *recv_block, *send_block;
	size_t recv_block_size, send_block_size; /* bytes */
	struct ibv_mr *recv_mr, *send_mr;
	struct rr_recv *recvs;
	struct rr_send *sends;
	unsigned nrecvs, nsends;
	unsigned sq_depth;	 /* without the slots of unsignaled Sends */
	unsigned unsignaled_max; /* slots of unsignaled Sends */
	uint8_t *zeros;		 /* XDR pad, in send_block */

	bool open;     /* the QP takes work requests */
	bool released; /* after closing: nothing waits for memory, requests or the send queue */
	bool lost;     /* the peer or the network ended the connection */
	bool blamed;   /* the first failed work request has been looked at */
	unsigned sq_free;
	unsigned sending; /* Sends and Reads among posted */
	unsigned posted;  /* signaled work requests under way: Receives, Reads, Sends */
	struct rr_send_list free_sends;
	struct rr_send *unsignaled; /* the last Send, if it was unsignaled */
	unsigned nunsignaled;	    /* unsignaled Sends since the last signaled one */
	struct rr_req_list waiting; /* for send queue room */
	struct rr_req_list reading;
	struct rr_recv *repost[RR_BATCH_MAX]; /* Receives that will be posted together */
	unsigned nrepost;
	struct rr_back back;
	struct rr_chain *gather; /* replies being posted together, or NULL */

	pthread_mutex_t lock;
	struct rr_req_list
		replies;   /* of calls that have run, to be posted; under lock, as the next */
	bool sends_handed; /* send_task is on its way */
};
LIST_HEAD(rr_conn_list, rr_conn);

/* The id of a connection that has ended, whose client does not know it yet. */
struct rr_told {
	TAILQ_ENTRY(rr_told) link;
	struct rdma_cm_id *id;
	uint64_t until_ns;
};

struct rr_listener {
	LIST_ENTRY(rr_listener) link;
	struct sockaddr_storage addr;
	struct rdma_cm_id *id; /* NULL: not listening, the timer tries again */
};

struct rr_counters {
	_Atomic uint64_t accepted, refused, disconnects, calls, replies, read_chunks, read_segments,
		read_bytes, write_chunks, write_segments, write_bytes, reply_chunks, position_zero,
		invalidations, err_vers, err_chunk, dropped, sq_waits, waits_memory, cq_errors,
		callbacks, posts, completions, listed_read, listed_write, listed_reply, closed_room;
	_Atomic uint64_t refused_by[RR_REFUSALS];
	/* Objects that exist now. */
	_Atomic uint64_t qps, cqs, mrs, slab_mrs, conn_bytes, credits;
};

struct rr_server {
	struct rr_config cfg;
	struct rr_pool pool;
	struct rr_broken broken; /* calls whose chunks have broken a connection */
	/* For connections, taken out of cfg.budget: rdma_conn_memory.c. Its size belongs to loops[0]. */
	struct rn_budget conn_memory;
	bool room_settled; /* its size does not change any more; loops[0] */
	struct rr_counters n;
	atomic_bool quiesced; /* no new connections and calls */
	_Atomic unsigned ndevices;

	/* loops[0] */
	struct rdma_event_channel *channel;
	struct event *channel_ev;
	struct ev_second tick;
	LIST_HEAD(, rr_listener) listeners;
	_Atomic unsigned serves;    /* RR_SERVES_*; written on loops[0] */
	TAILQ_HEAD(, rr_told) told; /* the oldest first */
	unsigned ntold;
	LIST_HEAD(, rr_device) devices;
	uint64_t retry_ns;

	pthread_mutex_t lock; /* protects the members below */
	pthread_cond_t gone;
	struct rr_conn_list conns;
	unsigned live; /* connections whose memory is not freed yet */
};

#define rr_count(srv, what, add)                                                                   \
	atomic_fetch_add_explicit(&(srv)->n.what, add, memory_order_relaxed)
#define rr_uncount(srv, what, sub)                                                                 \
	atomic_fetch_sub_explicit(&(srv)->n.what, sub, memory_order_relaxed)

/*
 * Kind of a completion: the low bits of wr_id, which are free in aligned pointers. A part (rr_req)
 * and an unsignaled Send (rr_send) complete only when they fail.
 */
enum rr_tag {
	RR_TAG_RECV = 0,
	RR_TAG_SEND = 1,
	RR_TAG_READ = 2,
	RR_TAG_PART = 3,
	RR_TAG_UNSIGNALED = 4,
	RR_TAG_MASK = 7
};

static inline uint64_t rr_wr_id(const void *p, enum rr_tag tag)
{
	return (uintptr_t)p | tag;
}

#endif

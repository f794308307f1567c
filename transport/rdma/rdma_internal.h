/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the RDMA transport share.
 *
 * Threads. loops[0] owns the event channel, the listeners, the devices, and every rdma_cm_id's
 * creation and end. A connection has a loop of its own, on which everything else of it happens,
 * posting included: a worker hands its reply over (rr_conn.replies). It must not post itself,
 * because drivers that post by a system call (rxe, siw) refuse a thread whose credentials have
 * changed since the device was opened, and workers take on the identity of callers.
 *
 * Life of a connection:
 *   RR_ACCEPTING  made on loops[0], accepted; calls that arrive are held
 *   RR_OPEN       the event came
 *   RR_CLOSING    on its loop: the QP is in error, flushed completions are awaited (or RR_FLUSH_MS)
 *   RR_DEAD       on its loop: QP, CQ and memory regions are gone, in this order; then on loops[0]
 * the device's reference and the id; then the memory, when the last request has come back from its
 * worker. References (rr_conn.rpc.refs): one until the id is gone, one for each request, one for
 * each posted task.
 *
 * Ownership of a call: a receive context (rr_recv) belongs to the QP while posted; on arrival it is
 * bound to an rr_req, which owns it until the reply is posted (or there is none), when it is posted
 * again. A send context (rr_send) owns the rr_req until its completion only if RDMA Writes take
 * data from it.
 *
 * The send queue: slots are taken for a whole chain and given back at the completion of its last
 * work request, the only signalled one. What does not fit waits in rr_conn.waiting, in order.
 *
 * Locks: rr_server.lock, rr_conn.lock, rr_device.lock and rr_broken.lock are leaves; the payload
 * pool's is taken under rr_pool.lock.
 */
#ifndef RN_TRANSPORT_RDMA_INTERNAL_H
#define RN_TRANSPORT_RDMA_INTERNAL_H

#include <event2/event.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "rpc/client.h"
#include "transport/rdma/rdma_broken.h"
#include "transport/rdma/rdma_chunks.h"
#include "transport/rdma/rdma_private_msg.h"
#include "transport/rdma/rdma_server.h"
#include "transport/turns.h"

#define RR_BATCH_MAX 8u	 /* Receives posted together, where the credits are many */
#define RR_SENDS_MAX 32u /* Sends in flight on one connection; more wait */
#define RR_SQ_DEPTH 256u /* at least RR_WRITES_MAX + 1, so that every chain fits an empty queue */
#define RR_KEYS_MAX (XDR_BULKS_MAX + 2u) /* of one transfer: the bulk items, both heads */
#define RR_POST_BATCH 16u		 /* work requests built at once */
#define RR_FLUSH_MS 1000u
#define RR_ACCEPT_SECONDS 30u /* from accept to the established event */
#define RR_STALL_SECONDS 60u
#define RR_PRESSED_SECONDS 4u /* Sends without progress, while others wait for memory */
#define RR_STRANGER_CONNS 16u /* of a client that no export admits */
#define RR_LEAVING_MAX 16u    /* connections that are being closed to make room for new ones */
#define RR_RETRY_SECONDS 5u   /* between looks at devices and listeners */
#define RR_NS 1000000000ull

struct rr_conn;
struct rr_req;

/* A receive buffer and what became of it. */
struct rr_recv {
	struct rr_conn *conn;
	uint8_t *buf;
	uint32_t len;
	TAILQ_ENTRY(rr_recv) link; /* held, or on the way to a request */
	struct rn_fq_item turn;	   /* waiting for a request */
	struct rr_req *granted;	   /* the request that it waited for */
	struct ev_task task;
};
TAILQ_HEAD(rr_recv_list, rr_recv);

struct rr_send {
	uint8_t *buf;
	struct rr_req *req; /* whose memory the chain reads, or NULL */
	unsigned wrs;	    /* slots of the send queue */
	SLIST_ENTRY(rr_send) link;
};
SLIST_HEAD(rr_send_list, rr_send);

/* What is to be posted for a request. */
enum rr_step {
	RR_STEP_READ,
	RR_STEP_REPLY,
	RR_STEP_DROP, /* nothing */
	RR_STEP_ERR_CHUNK,
	RR_STEP_ERR_VERS,
};

struct rr_req {
	struct rpc_request *rpc; /* its transport_private is this */
	struct rr_conn *conn;
	struct rr_recv *recv; /* NULL once it is posted again */
	enum rr_step step;
	TAILQ_ENTRY(rr_req) link; /* free, waiting for memory or the send queue, reading */
	struct rn_payload *data;  /* what the Read chunks land in, until submission */
	struct rn_payload_waiter waiter;
	struct ev_task task;
	unsigned wrs; /* slots of the send queue that its RDMA Reads hold */
	unsigned nmrs;
	struct ibv_mr *mr[RR_KEYS_MAX]; /* of this transfer alone, see rdma_keys.c */
	struct rr_call_plan plan;
	struct rr_header call;
};
TAILQ_HEAD(rr_req_list, rr_req);

/* Requests of all connections: grows with demand, within the budget. */
struct rr_pool {
	pthread_mutex_t lock;
	struct rr_req_list idle;
	struct rn_fq starving; /* arrived, but there was no request; each holds its connection */
	unsigned count, max;
	unsigned nidle; /* of count: in idle */
};

/* One completion channel for each device and loop. */
struct rr_channel {
	struct ibv_comp_channel *comp;
	struct event *ev;
};

/* Exists while it has connections, so that nothing of ours outlives a device that is unplugged. */
struct rr_device {
	LIST_ENTRY(rr_device) link;
	struct rr_server *srv;
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	bool iwarp;
	bool own_domains; /* of each connection: the sink of a Read needs rights for the peer */
	atomic_bool invalidate; /* Send with Invalidate works */
	unsigned users;		/* connections */
	struct rr_channel *channels;
	_Atomic uint64_t no_memory_ns;	   /* when it was said last */
	pthread_mutex_t lock;		   /* registering */
	_Atomic(struct ibv_mr *) *slab_mr; /* RN_SLABS_MAX: see lib/payload.h */
};

enum rr_state { RR_ACCEPTING, RR_OPEN, RR_CLOSING, RR_DEAD };

/* Bits of rr_conn.events. */
enum {
	RR_EV_ESTABLISHED = 1,
	RR_EV_CLOSE = 2,
	RR_EV_POLL = 4,
	RR_EV_REPLIES = 8,
	RR_EV_LOST = 16, /* with RR_EV_CLOSE: the peer's doing */
};

struct rr_conn {
	struct rpc_conn rpc;
	struct rr_server *srv;
	struct rr_device *dev;
	struct ev_loop *loop;
	unsigned loop_index;
	struct rdma_cm_id *id;
	struct ibv_pd *pd; /* its own, or the device's */
	struct ibv_cq *cq;
	LIST_ENTRY(rr_conn) link; /* rr_server.conns */
	size_t budget;
	unsigned credits;   /* what every reply grants */
	unsigned batch;	    /* Receives posted together; twice as many are beyond the credits */
	uint32_t recv_size; /* of a receive buffer */
	uint32_t threshold; /* longest Send to this client */
	bool invalidate;    /* the client's R bit */
	uint64_t made_ns;
	_Atomic uint64_t active_ns;
	_Atomic uint64_t sending_ns; /* when a Send or Read last made progress; 0: none is out */
	_Atomic int state;	     /* enum rr_state; written on the loop */
	_Atomic unsigned events;
	struct ev_task task;	 /* runs events */
	struct ev_task end_task; /* on loops[0] */

	/* The loop's thread. */
	struct rr_recv_list held;  /* arrived before the established event */
	struct rr_req_list hungry; /* waiting for payload memory */
	struct turn turn;	   /* for what todo says */
	unsigned todo;		   /* RR_EV_REPLIES, RR_EV_POLL */
	struct event *flush_timer;
	unsigned cq_unacked;

	uint8_t *recv_block, *send_block;
	struct ibv_mr *recv_mr, *send_mr;
	struct rr_recv *recvs;
	struct rr_send *sends;
	unsigned nrecvs, nsends;
	unsigned sq_depth;
	uint8_t *zeros; /* XDR pad, in send_block */

	bool open;   /* the QP takes work requests */
	bool lost;   /* it was not this end that closed it */
	bool blamed; /* the entry that failed first is known */
	unsigned sq_room;
	unsigned sending; /* of posted: Sends and Reads */
	unsigned posted;  /* signalled work requests that have not completed: Receives, Reads, Sends
			   */
	struct rr_send_list free_sends;
	struct rr_req_list waiting; /* for send queue room */
	struct rr_req_list reading;
	struct rr_recv *repost[RR_BATCH_MAX]; /* Receives that will be posted together */
	unsigned nrepost;

	pthread_mutex_t lock;
	struct rr_req_list replies; /* from workers, to be posted; under lock */
};
LIST_HEAD(rr_conn_list, rr_conn);

struct rr_listener {
	LIST_ENTRY(rr_listener) link;
	struct sockaddr_storage addr;
	struct rdma_cm_id *id; /* NULL: to be tried again */
};

struct rr_counters {
	_Atomic uint64_t accepted, refused, disconnects, calls, replies, read_chunks, read_segments,
		read_bytes, write_chunks, write_segments, write_bytes, reply_chunks, position_zero,
		invalidations, err_vers, err_chunk, dropped, sq_waits, waits_memory, cq_errors;
	/* What exists now. */
	_Atomic uint64_t qps, cqs, mrs, slab_mrs, conn_bytes;
};

struct rr_server {
	struct rr_config cfg;
	struct rr_pool pool;
	struct rr_broken broken;      /* calls that are not to be tried again */
	struct rn_budget conn_memory; /* of connections: taken out of cfg.budget, see rdma_room.c */
	struct rr_counters n;
	atomic_bool quiet;
	_Atomic unsigned ndevices;

	/* loops[0] */
	struct rdma_event_channel *channel;
	struct event *channel_ev, *tick;
	LIST_HEAD(, rr_listener) listeners;
	LIST_HEAD(, rr_device) devices;
	uint64_t retry_ns;
	unsigned next_loop;
	uint64_t next_id;

	pthread_mutex_t lock; /* what follows */
	pthread_cond_t gone;
	struct rr_conn_list conns;
	unsigned live; /* connections whose memory exists */
};

#define rr_count(srv, what, add)                                                                   \
	atomic_fetch_add_explicit(&(srv)->n.what, add, memory_order_relaxed)
#define rr_uncount(srv, what, sub)                                                                 \
	atomic_fetch_sub_explicit(&(srv)->n.what, sub, memory_order_relaxed)

uint64_t rr_now(void);

/* rdma_device.c: get and put on loops[0] */
struct rr_device *rr_device_get(struct rr_server *srv, struct ibv_context *verbs);
void rr_device_put(struct rr_device *dev);
/*
 * Notices devices that are gone. The connection manager's event may not come: drivers that cannot
 * take a device away from its users (rxe, siw) wait until all have closed it, and the event may be
 * behind that wait. To be called now and then.
 */
void rr_devices_check(struct rr_server *srv);
/* The local key of the slab that holds p; 0 or -errno. */
int rr_device_key(struct rr_device *dev, const struct rn_payload *p, uint32_t *lkey);

/* Says that memory cannot be registered, now and then; -ENOMEM. */
int rr_device_no_memory(struct rr_device *dev);

/* rdma_keys.c: on the connection's loop, but for the domain, which is made on loops[0] */
int rr_domain_make(struct rr_conn *c);
void rr_domain_end(struct rr_conn *c); /* when the queue pair and all regions are gone */
/* The local key for the whole of r->data, which RDMA Reads fill; 0 or -errno. */
int rr_key_for_sink(struct rr_req *r, uint32_t *lkey);
/* The local key for bytes in holder, which RDMA Writes send. */
int rr_key_for_source(struct rr_req *r, const struct rn_payload *holder, uint8_t *at, size_t len,
		      uint32_t *lkey);
/* Ends what the two have registered for r alone. After an error the peer may still reach it until
 * the queue pair is gone. */
int rr_keys_end(struct rr_req *r);

/* rdma_listen.c: on loops[0] */
int rr_channel_open(struct rr_server *srv); /* 0 also if it is open */
int rr_listener_open(struct rr_server *srv, struct rr_listener *l);
void rr_listener_close(struct rr_listener *l);
void rr_look_after(struct rr_server *srv); /* devices and listeners; from the timer */

/* rdma_cm.c */
void rr_cm_ready(evutil_socket_t fd, short what, void *srv);

/* rdma_accept.c: on loops[0]. Takes the id only on success. */
int rr_accept(struct rr_server *srv, struct rdma_cm_id *id, const struct rdma_conn_param *param);

/* rdma_room.c: on loops[0] */
void rr_room_reserve(struct rr_server *srv); /* when there is a device; again does no harm */
void rr_room_release(struct rr_server *srv);
/* The most bytes that a new connection should take. */
size_t rr_room_for_one(struct rr_server *srv);
bool rr_room_make(struct rr_server *srv); /* closes a connection, unless none may go */
/* Has a new connection's client too many for a stranger? */
bool rr_room_is_over(const struct rr_conn *c);
bool rr_room_stalled(struct rr_conn *c, uint64_t now);

/* rdma_conn.c */
extern const struct rpc_conn_ops rr_conn_ops;
void rr_conn_notify(struct rr_conn *c, unsigned events); /* any thread that has a reference */
void rr_conn_close(struct rr_conn *c, const char *why);	 /* on the loop */
void rr_conn_sending(struct rr_conn *c);       /* one more signalled Send or Read is posted */
void rr_conn_check_flushed(struct rr_conn *c); /* on the loop; may end it */
void rr_conn_run(struct ev_task *t);
void rr_conn_take_turn(struct rr_conn *c, unsigned todo); /* on the loop, with a reference */
void rr_conn_visit(struct turn *t, uint64_t until);
void rr_conn_flush_timeout(evutil_socket_t fd, short what, void *conn);
void rr_conn_end_verbs(struct rr_conn *c);
void rr_conn_free(struct rr_conn *c); /* its memory */
void rr_conn_destroy(struct rpc_conn *rc);
const char *rr_peer_name(const struct rr_conn *c, char *buf, size_t len);

/* rdma_cq.c: on the connection's loop */
void rr_cq_event(evutil_socket_t fd, short what, void *comp);
void rr_cq_poll(struct rr_conn *c, uint64_t until);
void rr_cq_ack(struct rr_conn *c);

/* rdma_recv.c */
int rr_recv_post_all(struct rr_conn *c);
int rr_recv_post(struct rr_recv *r); /* r, or later together with others */
void rr_recv_start(struct rr_recv *r, struct rr_req *req);
void rr_recv_arrived(struct rr_recv *r);
void rr_submit(struct rr_req *r);

/* rdma_read.c: on the loop */
void rr_read_start(struct rr_req *r);
/* 0, -EAGAIN, or an error that ends the connection; but for -EAGAIN r is in c->reading. */
int rr_read_post(struct rr_req *r);
void rr_read_done(struct rr_req *r);
void rr_read_cancel(struct rr_conn *c);

/* rdma_reply.c */
void rr_reply(struct rpc_request *rpc);
void rr_drop(struct rpc_request *rpc);
void rr_too_long(struct rpc_request *rpc);
void rr_fail(struct rr_req *r, enum rr_step step);
/* 0, -EAGAIN, or an error that ends the connection. *kept: r stays until the Send completes, or the
 * QP is gone. */
int rr_reply_post(struct rr_req *r, bool *kept);
int rr_error_post(struct rr_req *r, enum rr_errcode err);

/* rdma_send.c */
void rr_post(struct rr_req *r);		 /* posts r's step, or queues it */
void rr_post_waiting(struct rr_conn *c); /* on the loop */
void rr_send_done(struct rr_conn *c, struct rr_send *s);

/* A chain of work requests, posted RR_POST_BATCH at a time. Slots are the caller's
 * affair. */
struct rr_chain {
	struct rr_conn *conn;
	unsigned n;
	int err; /* sticky */
	struct ibv_send_wr wr[RR_POST_BATCH];
	struct ibv_sge sge[RR_POST_BATCH];
};
void rr_chain_start(struct rr_chain *ch, struct rr_conn *c);
/* The work request to be completed by the caller, valid until the next call. */
struct ibv_send_wr *rr_chain_add(struct rr_chain *ch, enum ibv_wr_opcode op, struct ibv_sge sge,
				 uint64_t wr_id);
int rr_chain_end(struct rr_chain *ch); /* 0 or -errno */

/* rdma_request.c */
int rr_pool_init(struct rr_server *srv);
void rr_pool_fini(struct rr_server *srv);
void rr_pool_bind(struct rr_recv *recv); /* a request for a message: now, or when there is one */
void rr_pool_forget(struct rr_conn *c);	 /* its waiting messages */
void rr_req_done(struct rr_req *r);	 /* everything of it goes back */

/* What a completion belongs to: the low bits of wr_id, which are free in aligned pointers. */
enum rr_tag { RR_TAG_RECV = 0, RR_TAG_SEND = 1, RR_TAG_READ = 2, RR_TAG_PART = 3 };

static inline uint64_t rr_wr_id(const void *p, enum rr_tag tag)
{
	return (uintptr_t)p | tag;
}

#endif

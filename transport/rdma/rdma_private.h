/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of the RDMA transport's inside, by the file that has them; its objects are in rdma_types.h. */
#ifndef RN_TRANSPORT_RDMA_PRIVATE_H
#define RN_TRANSPORT_RDMA_PRIVATE_H

#include "transport/rdma/rdma_types.h"

/* rdma_device.c: devices with connections, protection domains and local keys. All but the keys are used on loops[0]. */

/* A reference on the device with that context, or NULL: no memory. */
struct rr_device *rr_device_get(struct rr_server *srv, struct ibv_context *verbs);
void rr_device_put(struct rr_device *dev);

/*
 * Closes the connections of devices that are gone; to be called now and then. The connection
 * manager's event may not come: drivers that cannot take a device away from its users (rxe, siw)
 * wait until all have closed it, and the event may be behind that wait.
 */
void rr_devices_check(struct rr_server *srv);

/* Protection domains and local keys; rdma_device.c says which memory a key lets the peer reach. */

/* Sets c->pd. On loops[0]. 0 or -ENOMEM. */
int rr_domain_make(struct rr_conn *c);
/* After the queue pair and all its regions are gone. */
void rr_domain_end(struct rr_conn *c);

/* The local key for the whole of r->data, which RDMA Reads fill. 0 or -errno. On the loop. */
int rr_key_for_sink(struct rr_req *r, uint32_t *lkey);
/* The local key for bytes in holder, which RDMA Writes send. 0 or -errno. On the loop. */
int rr_key_for_source(struct rr_req *r, const struct rn_payload *holder, uint8_t *at, size_t len,
		      uint32_t *lkey);
/* Ends the registrations made for r. 0 or -errno: the peer may still reach the memory until the
 * queue pair is gone. */
int rr_keys_end(struct rr_req *r);

/* rdma_conn.c: connections. On the connection's loop, but where it says otherwise. */

/* Numeric address of the peer, written to buf. */
const char *rr_peer_name(const struct rr_conn *c, char *buf, size_t len);

/* A connection that is being accepted, or NULL: no memory. On loops[0]. */
struct rr_conn *rr_conn_new(struct rr_server *srv, struct rdma_cm_id *id, struct rr_device *dev);

/* Sets bits of rr_conn.events and wakes the connection's loop. Any thread that has a reference. */
void rr_conn_notify(struct rr_conn *c, unsigned events);

/* Has the loop post what is in rr_conn.replies and rr_back.handed; c->lock is held, and a reference. Any thread. */
void rr_conn_send_locked(struct rr_conn *c);

/* Counts one more signaled Send or Read. On the loop. */
void rr_conn_sending(struct rr_conn *c);

/* Posts nothing more, breaks the queue pair, and asks for RR_EV_RELEASE. On the loop; does nothing
 * if the connection is closed already. */
void rr_conn_close(struct rr_conn *c, const char *why);

/* Callback of a completion channel (struct rr_channel), whose connections it queues for their
 * turns. */
void rr_cq_event(evutil_socket_t fd, short what, void *channel);

/* Callback of rr_conn.flush_timer: ends a closed connection whose completions do not come. */
void rr_conn_flush_timeout(evutil_socket_t fd, short what, void *conn);
/* Destroys QP, CQ and memory regions; nothing may be posted any more. */
void rr_conn_end_verbs(struct rr_conn *c);
/* Frees the connection's memory. */
void rr_conn_free(struct rr_conn *c);

/* rdma_send.c: the send queue of a connection. On its loop, but for the members of rpc_conn_ops. */

/*
 * Chains of work requests, posted RR_POST_BATCH at a time. The caller has taken the slots. While a
 * connection gathers, its chains become parts of one, so that several replies are one post: with
 * hardware one doorbell, with software devices one system call.
 */
struct rr_chain {
	struct rr_conn *conn;
	unsigned n;
	int err; /* sticky */
	struct ibv_send_wr wr[RR_POST_BATCH];
	struct ibv_sge sge[RR_POST_BATCH];
};

/* The chain to add to: the one that c gathers, or else own. */
struct rr_chain *rr_chain_start(struct rr_conn *c, struct rr_chain *own);
/* 0, or -errno of a post that failed. A chain that is gathered is posted later. */
int rr_chain_end(struct rr_chain *ch);

/* Between the two, chains of c are gathered in ch; the end posts them. 0 or -errno. */
void rr_gather_start(struct rr_conn *c, struct rr_chain *ch);
int rr_gather_end(struct rr_conn *c);

/* A send context and slots for a chain of wrs work requests, or NULL. A Send alone is unsignaled if it
 * may be. */
struct rr_send *rr_send_take(struct rr_conn *c, unsigned wrs);
/* Adds the Send of len bytes in s, which ends the chain. */
struct ibv_send_wr *rr_chain_add_send(struct rr_chain *ch, struct rr_send *s, uint32_t len);
/* Records a Send that has been posted. */
void rr_sent(struct rr_conn *c, struct rr_send *s);

/* Members of rpc_conn_ops, called by workers: each hands the request to the connection's loop. */
void rr_reply(struct rpc_request *rpc);
void rr_drop(struct rpc_request *rpc);
void rr_too_long(struct rpc_request *rpc);
void rr_garbage(struct rpc_request *rpc); /* the answer is ERR_CHUNK */

/* Posts r's step, or queues it. */
void rr_post(struct rr_req *r);
/* Posts RR_STEP_ERR_CHUNK, RR_STEP_ERR_VERS or RR_STEP_DROP in place of r's reply. */
void rr_fail(struct rr_req *r, enum rr_step step);
/* Posts queued requests as far as there is room. */
void rr_post_waiting(struct rr_conn *c);
/* A Send has completed. */
void rr_send_done(struct rr_conn *c, struct rr_send *s);

/* rdma_back.c: calls to the client (RFC 8167). */

/* rpc_conn_ops.call. */
int rr_back_call(struct rpc_conn *rc, const uint8_t *msg, uint32_t len);

/* The functions below are called on the connection's loop. */

/* Posts calls as far as the client's credits and the send queue allow. */
void rr_back_post(struct rr_conn *c);
/* A reply of the client: len bytes of an RPC message, at least 8. */
void rr_back_reply(struct rr_req *r, uint8_t *msg, uint32_t len);
/* The client's RDMA_ERROR. */
void rr_back_refused(struct rr_req *r);
/* Drops calls that were given up before they were sent. */
void rr_back_forget(struct rr_conn *c);
/* The connection is closed: ends the calls under way, and frees those that were never sent. Called
 * once more, on any thread, when nothing else uses the connection: for calls handed over since. */
void rr_back_end(struct rr_conn *c);

/* rdma_request.c: receive buffers, and the pool of requests, which all connections share. */

/* On the connection's loop, or before the connection is accepted. */
int rr_recv_post_all(struct rr_conn *c); /* 0 or -errno */
/* Posts r, now or together with the ones that follow. 0 or -errno: the connection must end. */
int rr_recv_post(struct rr_recv *r);

size_t rr_pool_memory(void); /* bytes that rr_pool_init takes, with the heads of replies */
/* 0 or -ENOMEM. */
int rr_pool_init(struct rr_server *srv);
void rr_pool_fini(struct rr_server *srv);

/* Gets a request for a message and starts it: now, or when there is one. On the loop. */
void rr_pool_bind(struct rr_recv *recv);
/* Takes the messages of a closed connection out of the queue. On the loop. */
void rr_pool_forget(struct rr_conn *c);

/* Gives back r and everything it holds; the connection may be gone afterwards. On the loop. */
void rr_req_done(struct rr_req *r);

/* rdma_call.c: messages on their way in. On the connection's loop. */

/* A Receive has completed. */
void rr_call_arrived(struct rr_recv *r);
/* Decodes the message in recv, which has got its request. */
void rr_call_start(struct rr_recv *recv, struct rr_req *r);

/* The last RDMA Read of r has completed. */
void rr_pull_done(struct rr_req *r);
/* Gives back the requests of a closed connection that wait for memory. */
void rr_pull_cancel(struct rr_conn *c);

/* rdma_conn_memory.c: memory and places for connections. On loops[0], or before it knows of the server. */

/* Bytes that connections need of a budget of `whole` bytes. sure: see rr_server_memory. */
size_t rr_conn_memory_part(size_t whole, bool sure);
/* Takes the least part of the budget that connections can do with: at the start. 0 or -ENOMEM. */
int rr_conn_memory_reserve_least(struct rr_server *srv);
/* Makes the part as large as it should be, when there is a device; again does no harm. */
void rr_conn_memory_reserve(struct rr_server *srv);
void rr_conn_memory_release(struct rr_server *srv);
/* The most bytes that a new connection should take. */
size_t rr_conn_memory_for_one(struct rr_server *srv);
/* Closes the connection that is the first to go; false: none may. */
bool rr_conn_evict_one(struct rr_server *srv);
/* True if the client is a stranger and has too many connections, this one included. */
bool rr_conn_is_over_quota(const struct rr_conn *c);
/* True if the peer has taken nothing for too long. */
bool rr_conn_stalled(struct rr_conn *c, uint64_t now);

/* rdma_accept.c: listeners and connection requests. On loops[0]. */

/* 0 or -errno; after -ENODEV and -EADDRNOTAVAIL a later try may succeed. */
int rr_listener_open(struct rr_server *srv, struct rr_listener *l);
void rr_listener_close(struct rr_listener *l);
/* Works out which families are served, after a change of devices or listeners. */
void rr_listeners_count(struct rr_server *srv);
/* Destroys the id of a connection whose queue pair is gone, when its client knows of the end, or takes too long. */
void rr_id_end(struct rr_server *srv, struct rdma_cm_id *id, bool connected);
/* Destroys those ids whose time is up by then; UINT64_MAX: all. */
void rr_told_expire(struct rr_server *srv, uint64_t now);
/* Opens lost listeners and checks the devices, every RR_RETRY_SECONDS; called by the timer. */
void rr_look_after(struct rr_server *srv);

#endif

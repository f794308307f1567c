/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of the TCP transport's inside, by the file that has them; its objects are in tcp_types.h. */
#ifndef RN_TRANSPORT_TCP_PRIVATE_H
#define RN_TRANSPORT_TCP_PRIVATE_H

#include <sys/uio.h>

#include "transport/tcp/tcp_types.h"

/* tcp_conn.c: connections, from their start to their end. On the loop, but where it says otherwise. */

/* True if another call may be read; c->lock held. */
bool tcp_conn_has_room(const struct tcp_conn *c);
/* Has the connection's task run on its loop; c->lock held, and a reference. */
void tcp_conn_post_locked(struct tcp_conn *c);
/* Reads, and writes if writable, when it is the client's turn. On the loop. */
void tcp_conn_take_turn(struct tcp_conn *c);
/* Adds to the work of the connection, and so of its loop. On the loop. */
void tcp_conn_worked(struct tcp_conn *c, uint64_t work);
/* Asks whether the exports admit the client; does not wait. */
enum rpc_admission tcp_conn_admission(struct tcp_conn *c);

enum tcp_close_reason { TCP_CLOSE_PEER, TCP_CLOSE_IDLE, TCP_CLOSE_ERROR };
/* Closes an open connection; text goes to the log at debug level. */
void tcp_conn_close(struct tcp_conn *c, enum tcp_close_reason why, const char *text);

/* The payload buffer that the connection has waited for, or NULL; the caller owns it. */
struct rn_payload *tcp_take_granted(struct tcp_conn *c);
/* Gives back everything that reading holds. */
void tcp_drop_input(struct tcp_conn *c);

/* Takes fd, on error too. On any loop. 0 or -ENOMEM. */
int tcp_conn_new(struct tcp_server *srv, int fd, const struct sockaddr_storage *peer);

/* Makes a connection that is on no loop and not counted yet. NULL: no memory, and fd is still the caller's. */
struct tcp_conn *tcp_conn_make(struct tcp_server *srv, int fd, const struct sockaddr_storage *peer);
/* Counts it, and hands it to a loop. */
void tcp_conn_admit(struct tcp_conn *c);
/* Frees a connection that no loop has seen. */
void tcp_conn_discard(struct tcp_conn *c);

/* tcp_read.c: reading of calls. On the loop. */

/* Callback of the readable socket. */
void tcp_read_ready(evutil_socket_t fd, short what, void *arg);
/* Goes on after a pause, if there is what it waited for. */
void tcp_read_resume(struct tcp_conn *c);
/* Takes the wait since wait_ns, which was the server's, out of the time of the record being read;
 * the peer's rate is measured anew. */
void tcp_read_forgive_wait(struct tcp_conn *c);
/* A record that holds buffers and waits for one more takes a smaller one if there is one now. Else it
 * waits at the end of the queue, so nobody else may be waiting. */
void tcp_read_take_less(struct tcp_conn *c);
/* Reads until the loop's work has come up to `until`, or there is no more. */
void tcp_read_some(struct tcp_conn *c, uint64_t until);
/* Has the connection read again if it has input that its socket does not tell of. */
void tcp_read_pending(struct tcp_conn *c);

/* tcp_write.c: replies on the stream. */

/* The content of one send: pieces of as many replies as it takes, or the data in a pipe. */
struct tcp_parcel {
	struct iovec iov[TCP_PARCEL_IOV];
	unsigned niov;
	struct rn_pipe *pipe; /* or NULL */
	size_t bytes;
	bool more; /* the rest of the last reply follows at once */
};

/* tcp_io.send of a connection without TLS. */
ssize_t tcp_send_plain(struct tcp_conn *c, const struct tcp_parcel *p);

/* Members of rpc_conn_ops, called by workers. */
void tcp_reply(struct rpc_request *req);
void tcp_drop(struct rpc_request *req);
void tcp_give_up(struct rpc_request *req);
int tcp_call(struct rpc_conn *rc, const uint8_t *msg, uint32_t len);

/* Callback of the writable socket. */
void tcp_write_ready(evutil_socket_t fd, short what, void *arg);
/* Sends queued replies. On the loop, which holds a reference. */
void tcp_write_some(struct tcp_conn *c);
/* Sends replies that are held back (tcp_write.c). On the loop. */
void tcp_write_held(struct tcp_conn *c);
/* Drops queued replies; c->closed is set. */
void tcp_write_discard(struct tcp_conn *c);

/* tcp_tls.c: a connection's way from plain to TLS (RFC 9289). On the loop. */

/* The table that every connection begins with. */
extern const struct tcp_io tcp_io_plain;

/* True if the whole call asks for TLS, which this connection may still have. */
bool tcp_tls_is_probe(const struct tcp_conn *c, const struct tcp_req *t);
/* Stops reading, and answers it when all earlier calls are answered. The handshake begins when that is out. */
void tcp_tls_answer(struct tcp_conn *c, struct tcp_req *t);
/* Goes on if what it waited for is there: from the connection's task. */
void tcp_tls_go_on(struct tcp_conn *c);
/* There is input for the handshake. */
void tcp_tls_step(struct tcp_conn *c);
/* True if the handshake takes too long. */
bool tcp_tls_is_late(const struct tcp_conn *c, uint64_t now);
/* Frees the session; nobody uses the connection any more. */
void tcp_tls_free(struct tcp_conn *c);

/* tcp_pool.c: requests of one loop. get on the loop only; get_from_afar and put from any thread. */

/* Takes memory for the least number of requests out of the budget, before the loops are made. 0 or
 * -ENOMEM. */
int tcp_pool_reserve(struct tcp_server *srv);
void tcp_pool_unreserve(struct tcp_server *srv);
/* Bytes that the pools of so many loops take out of a budget of `whole` bytes, with the heads of replies. */
size_t tcp_pool_memory(unsigned nloops, size_t whole);
int tcp_pool_fill(struct tcp_loop *loop); /* 0 or -ENOMEM */
/* NULL: there is no memory, or the client has its quota. */
struct tcp_req *tcp_pool_get(struct tcp_loop *loop, struct rpc_client *client);
/* Like tcp_pool_get(), for a call to the client. */
struct tcp_req *tcp_pool_get_from_afar(struct tcp_loop *loop, struct rpc_client *client);
void tcp_pool_put(struct tcp_loop *loop, struct tcp_req *t);
void tcp_pool_free(struct tcp_loop *loop);
unsigned tcp_pool_idle(struct tcp_loop *loop); /* any thread */

/* Puts a connection on the list of those that wait for a request, and takes it off. On the loop. */
void tcp_pool_starve(struct tcp_conn *c);
void tcp_pool_unstarve(struct tcp_conn *c);

/* Lets those go on that may have a request. */
void tcp_feed(struct tcp_loop *loop);
void tcp_feed_wake(struct ev_task *task); /* tcp_loop.wake */

/* tcp_move.c: a connection's way from one loop to another. On the connection's loop. */

/* Makes the events of a connection that has come to its loop, and puts it on the loop's list. It
 * does not read yet. */
void tcp_move_settle(struct tcp_conn *c);
/* True if nothing but its replies, and calls under way, keeps the connection from leaving. */
bool tcp_move_may(const struct tcp_conn *c);
/* Has the connection, which may leave, move to another loop of the server when it is at rest, at
 * once if it is. No other one of this loop may be TCP_LEAVING. */
void tcp_move_begin(struct tcp_conn *c, struct tcp_loop *to);
/* Lets a connection that is TCP_LEAVING go if it is at rest. It is not to be used then. */
void tcp_move_go_on(struct tcp_conn *c);
/* The timer tcp_loop.patience: the connection stays. */
void tcp_move_timeout(evutil_socket_t fd, short what, void *loop);

/* Gives a connection to another loop if this one has too much; once a second, on the loop. */
void tcp_balance_tick(struct tcp_loop *loop);

/* tcp_times.c: connections whose time is up, and the rate of a record on its way in. On the loop. */

/* Begins to measure the record being read. */
void tcp_rate_measure(struct tcp_conn *c, uint64_t now);
/* Puts the record's time limits off by the time in which the server has not read it. */
void tcp_rate_suspend(struct tcp_conn *c, uint64_t ns);

/* Closes them; once a second, on the loop. */
void tcp_times_tick(struct tcp_loop *loop);

/* tcp_listen.c: listeners, and room for new connections. */

void tcp_listener_free(struct tcp_listener *l); /* on its loop */

void tcp_conn_evict(struct ev_task *task); /* tcp_loop.evict */
/* True if the client is a stranger and has too many connections, this one included. On its loop. */
bool tcp_conn_is_over_quota(struct tcp_conn *c);

#endif

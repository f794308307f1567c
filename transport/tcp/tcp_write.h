/* SPDX-License-Identifier: BSD-2-Clause */
/* Replies: see tcp_write.c. */
#ifndef RN_TRANSPORT_TCP_WRITE_H
#define RN_TRANSPORT_TCP_WRITE_H

#include "transport/tcp/tcp_types.h"

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

#endif

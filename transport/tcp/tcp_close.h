/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a connection. On the loop, but for tcp_conn_hang_up and tcp_conn_destroy. */
#ifndef RN_TRANSPORT_TCP_CLOSE_H
#define RN_TRANSPORT_TCP_CLOSE_H

#include "transport/tcp/tcp_types.h"

enum tcp_close_reason { TCP_CLOSE_PEER, TCP_CLOSE_IDLE, TCP_CLOSE_ERROR };
/* Closes an open connection; text goes to the log at debug level. */
void tcp_conn_close(struct tcp_conn *c, enum tcp_close_reason why, const char *text);
/* Has the loop close a connection that the server has made: rpc_conn_ops.hang_up. Any thread. */
void tcp_conn_hang_up(struct rpc_conn *rc);
/* Frees it: rpc_conn_ops.destroy. */
void tcp_conn_destroy(struct rpc_conn *rc);

/* The payload buffer that the connection has waited for, or NULL; the caller owns it. */
struct rn_payload *tcp_take_granted(struct tcp_conn *c);
/* Gives back everything that reading holds. */
void tcp_drop_input(struct tcp_conn *c);

#endif

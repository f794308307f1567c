/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection's way from one loop to another: see tcp_move.c. On the connection's loop. */
#ifndef RN_TRANSPORT_TCP_MOVE_H
#define RN_TRANSPORT_TCP_MOVE_H

#include "transport/tcp/tcp_types.h"

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

#endif

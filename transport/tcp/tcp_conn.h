/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection as all layers above use it. */
#ifndef RN_TRANSPORT_TCP_CONN_H
#define RN_TRANSPORT_TCP_CONN_H

#include "transport/tcp/tcp_types.h"

/* True if another call may be read; c->lock held. */
bool tcp_conn_has_room(const struct tcp_conn *c);
/* Has the connection's task run on its loop; c->lock held, and a reference. */
void tcp_conn_post_locked(struct tcp_conn *c);
/* Reads, and writes if writable, when it is the client's turn. On the loop. */
void tcp_conn_take_turn(struct tcp_conn *c);
/* Adds to the work of the connection, and so of its loop. On the loop. */
void tcp_conn_worked(struct tcp_conn *c, uint64_t work);
/* Asks for the client's standing with the exports; does not wait. */
enum rpc_standing tcp_conn_standing(struct tcp_conn *c);

#endif

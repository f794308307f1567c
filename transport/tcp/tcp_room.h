/* SPDX-License-Identifier: BSD-2-Clause */
/* Room for new connections. */
#ifndef RN_TRANSPORT_TCP_ROOM_H
#define RN_TRANSPORT_TCP_ROOM_H

#include "transport/tcp/tcp_types.h"

/* Asks every loop to close some connections. Any thread. */
void tcp_room_ask(struct tcp_server *srv);
void tcp_room_make(struct ev_task *task); /* tcp_loop.room */
/* True if the client is a stranger and has too many connections, this one included. On its loop. */
bool tcp_room_is_over(struct tcp_conn *c);

#endif

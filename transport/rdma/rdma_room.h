/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory and places for connections: see rdma_room.c. On loops[0]. */
#ifndef RN_TRANSPORT_RDMA_ROOM_H
#define RN_TRANSPORT_RDMA_ROOM_H

#include "transport/rdma/rdma_types.h"

/* Takes the connections' part of the budget, when there is a device; again does no harm. */
void rr_room_reserve(struct rr_server *srv);
void rr_room_release(struct rr_server *srv);
/* The most bytes that a new connection should take. */
size_t rr_room_for_one(struct rr_server *srv);
/* Closes the connection that is the first to go; false: none may. */
bool rr_room_make(struct rr_server *srv);
/* True if the client is a stranger and has too many connections, this one included. */
bool rr_room_is_over(const struct rr_conn *c);
/* True if the peer has taken nothing for too long. */
bool rr_room_stalled(struct rr_conn *c, uint64_t now);

#endif

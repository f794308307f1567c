/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory and places for connections: see rdma_room.c. On loops[0], or before it knows of the server. */
#ifndef RN_TRANSPORT_RDMA_ROOM_H
#define RN_TRANSPORT_RDMA_ROOM_H

#include "transport/rdma/rdma_types.h"

/* Bytes that connections need of a budget of `whole` bytes. sure: see rr_server_memory. */
size_t rr_room_memory(size_t whole, bool sure);
/* Takes the least part of the budget that connections can do with: at the start. 0 or -ENOMEM. */
int rr_room_reserve_least(struct rr_server *srv);
/* Makes the part as large as it should be, when there is a device; again does no harm. */
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

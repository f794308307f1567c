/* SPDX-License-Identifier: BSD-2-Clause */
/* A connection as the layers above see it: events, turns, progress, closing. */
#ifndef RN_TRANSPORT_RDMA_CONN_H
#define RN_TRANSPORT_RDMA_CONN_H

#include "transport/rdma/rdma_types.h"

/* Numeric address of the peer, written to buf. */
const char *rr_peer_name(const struct rr_conn *c, char *buf, size_t len);

/* Sets bits of rr_conn.events and wakes the connection's loop. Any thread that has a reference. */
void rr_conn_notify(struct rr_conn *c, unsigned events);

/* Has the loop post what is in rr_conn.replies and rr_back.handed; c->lock is held, and a reference. Any thread. */
void rr_conn_send_locked(struct rr_conn *c);

/* Has completions handled when it is the client's turn. On the loop, with a reference. */
void rr_conn_take_turn(struct rr_conn *c);

/* Counts one more signalled Send or Read. On the loop. */
void rr_conn_sending(struct rr_conn *c);

/* Posts nothing more, breaks the queue pair, and asks for RR_EV_RELEASE. On the loop; does nothing
 * if the connection is closed already. */
void rr_conn_close(struct rr_conn *c, const char *why);

#endif

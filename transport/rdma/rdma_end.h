/* SPDX-License-Identifier: BSD-2-Clause */
/* The end of a connection: see rdma_end.c. */
#ifndef RN_TRANSPORT_RDMA_END_H
#define RN_TRANSPORT_RDMA_END_H

#include "transport/rdma/rdma_types.h"

/* On the loop, after rr_conn_close: gives back the requests that wait. */
void rr_conn_release(struct rr_conn *c);
/* On the loop: ends a closed connection if no completion is missing. */
void rr_conn_check_flushed(struct rr_conn *c);
/* Callback of rr_conn.flush_timer: ends a closed connection whose completions do not come. */
void rr_conn_flush_timeout(evutil_socket_t fd, short what, void *conn);
/* Destroys QP, CQ and memory regions; nothing may be posted any more. */
void rr_conn_end_verbs(struct rr_conn *c);
/* Frees the connection's memory. */
void rr_conn_free(struct rr_conn *c);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Callbacks of a connection: from its loop, and from the RPC layer. */
#ifndef RN_TRANSPORT_RDMA_EVENTS_H
#define RN_TRANSPORT_RDMA_EVENTS_H

#include "transport/rdma/rdma_types.h"

extern const struct rpc_conn_ops rr_conn_ops;
void rr_conn_run(struct ev_task *t);		    /* rr_conn.task */
void rr_conn_send(struct ev_task *t);		    /* rr_conn.send_task */
void rr_conn_visit(struct turn *t, uint64_t until); /* rr_conn.turn */

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Replies and RDMA_ERROR messages. */
#ifndef RN_TRANSPORT_RDMA_REPLY_H
#define RN_TRANSPORT_RDMA_REPLY_H

#include "transport/rdma/rdma_types.h"

/* Members of rpc_conn_ops, called by workers: each hands the request to the connection's loop. */
void rr_reply(struct rpc_request *rpc);
void rr_drop(struct rpc_request *rpc);
void rr_too_long(struct rpc_request *rpc);
void rr_garbage(struct rpc_request *rpc); /* the answer is ERR_CHUNK */

/* On the loop: 0, -RN_EFULL (no room in the send queue), or an error that ends the connection.
 * *kept: r stays until the Send completes, or the QP is gone. */
int rr_reply_post(struct rr_req *r, bool *kept);
int rr_error_post(struct rr_req *r, enum rr_errcode err);

#endif

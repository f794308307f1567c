/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls to the client (RFC 8167): see rdma_back.c. */
#ifndef RN_TRANSPORT_RDMA_BACK_H
#define RN_TRANSPORT_RDMA_BACK_H

#include "transport/rdma/rdma_types.h"

/* rpc_conn_ops.call. */
int rr_back_call(struct rpc_conn *rc, const uint8_t *msg, uint32_t len);

/* The functions below are called on the connection's loop. */

/* Posts calls as far as the client's credits and the send queue allow. */
void rr_back_post(struct rr_conn *c);
/* A reply of the client: len bytes of an RPC message, at least 8. */
void rr_back_reply(struct rr_req *r, uint8_t *msg, uint32_t len);
/* The client's RDMA_ERROR. */
void rr_back_refused(struct rr_req *r);
/* Drops calls that were given up before they were sent. */
void rr_back_forget(struct rr_conn *c);
/* The connection is closed: ends the calls under way, and frees those that were never sent. Called
 * once more, on any thread, when nothing else uses the connection: for calls handed over since. */
void rr_back_end(struct rr_conn *c);

#endif

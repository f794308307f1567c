/* SPDX-License-Identifier: BSD-2-Clause */
/* The pool of requests, which all connections share. */
#ifndef RN_TRANSPORT_RDMA_REQUEST_H
#define RN_TRANSPORT_RDMA_REQUEST_H

#include "transport/rdma/rdma_types.h"

size_t rr_pool_memory(void); /* bytes that rr_pool_init takes, with the heads of replies */
/* start is called for each message that has got a request. 0 or -ENOMEM. */
int rr_pool_init(struct rr_server *srv, rr_start_fn *start);
void rr_pool_fini(struct rr_server *srv);

/* Gets a request for a message and starts it: now, or when there is one. On the loop. */
void rr_pool_bind(struct rr_recv *recv);
/* Takes the messages of a closed connection out of the queue. On the loop. */
void rr_pool_forget(struct rr_conn *c);

/* Gives back r and everything it holds; the connection may be gone afterwards. On the loop. */
void rr_req_done(struct rr_req *r);

#endif

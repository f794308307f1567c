/* SPDX-License-Identifier: BSD-2-Clause */
/* The send queue of a connection. On its loop. */
#ifndef RN_TRANSPORT_RDMA_SEND_H
#define RN_TRANSPORT_RDMA_SEND_H

#include "transport/rdma/rdma_types.h"

/* Posts r's step, or queues it. */
void rr_post(struct rr_req *r);
/* Posts RR_STEP_ERR_CHUNK, RR_STEP_ERR_VERS or RR_STEP_DROP in place of r's reply. */
void rr_fail(struct rr_req *r, enum rr_step step);
/* Posts queued requests as far as there is room. */
void rr_post_waiting(struct rr_conn *c);
/* A Send has completed. */
void rr_send_done(struct rr_conn *c, struct rr_send *s);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages on their way in. On the connection's loop. */
#ifndef RN_TRANSPORT_RDMA_CALL_H
#define RN_TRANSPORT_RDMA_CALL_H

#include "transport/rdma/rdma_types.h"

/* A Receive has completed. */
void rr_call_arrived(struct rr_recv *r);
/* Decodes the message in recv; an rr_start_fn. */
void rr_call_start(struct rr_recv *recv, struct rr_req *r);

#endif

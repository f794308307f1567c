/* SPDX-License-Identifier: BSD-2-Clause */
/* Fetching of Read chunks: memory, RDMA Reads, submission. On the connection's loop. */
#ifndef RN_TRANSPORT_RDMA_PULL_H
#define RN_TRANSPORT_RDMA_PULL_H

#include "transport/rdma/rdma_types.h"

void rr_pull_start(struct rr_req *r);
/* The last RDMA Read of r has completed. */
void rr_pull_done(struct rr_req *r);
/* Gives back the requests of a closed connection that wait for memory. */
void rr_pull_cancel(struct rr_conn *c);

#endif

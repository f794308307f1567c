/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting of RDMA Reads. */
#ifndef RN_TRANSPORT_RDMA_READ_H
#define RN_TRANSPORT_RDMA_READ_H

#include "transport/rdma/rdma_types.h"

/* On the loop. 0, -RN_EFULL (no room in the send queue), or an error that ends the connection; but
 * for -RN_EFULL r is in c->reading afterwards. */
int rr_read_post(struct rr_req *r);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting of Receives. On the connection's loop, or before the connection is accepted. */
#ifndef RN_TRANSPORT_RDMA_RECV_H
#define RN_TRANSPORT_RDMA_RECV_H

#include "transport/rdma/rdma_types.h"

int rr_recv_post_all(struct rr_conn *c); /* 0 or -errno */
/* Posts r, now or together with the ones that follow. 0 or -errno: the connection must end. */
int rr_recv_post(struct rr_recv *r);

#endif

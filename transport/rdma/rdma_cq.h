/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues. On the connection's loop. */
#ifndef RN_TRANSPORT_RDMA_CQ_H
#define RN_TRANSPORT_RDMA_CQ_H

#include "transport/rdma/rdma_types.h"

/* Callback of a completion channel (struct rr_channel), whose connections it queues for their
 * turns. */
void rr_cq_event(evutil_socket_t fd, short what, void *channel);
/* Handles completions until ev_loop.work has come up to `until`, or there are no more. */
void rr_cq_poll(struct rr_conn *c, uint64_t until);

#endif

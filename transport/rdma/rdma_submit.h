/* SPDX-License-Identifier: BSD-2-Clause */
/* The last step of a call on its way in. On the connection's loop. */
#ifndef RN_TRANSPORT_RDMA_SUBMIT_H
#define RN_TRANSPORT_RDMA_SUBMIT_H

#include "transport/rdma/rdma_types.h"

/* Hands r to the sink; a message that is no call is answered or dropped. */
void rr_submit(struct rr_req *r);
/* Answers ERR_CHUNK; why goes to the log at debug level. */
void rr_bad_chunk(struct rr_req *r, enum rr_refusal what, const char *why);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Chains of work requests, posted RR_POST_BATCH at a time. The caller has taken the slots. */
#ifndef RN_TRANSPORT_RDMA_CHAIN_H
#define RN_TRANSPORT_RDMA_CHAIN_H

#include "transport/rdma/rdma_types.h"

struct rr_chain {
	struct rr_conn *conn;
	unsigned n;
	int err; /* sticky */
	struct ibv_send_wr wr[RR_POST_BATCH];
	struct ibv_sge sge[RR_POST_BATCH];
};

void rr_chain_start(struct rr_chain *ch, struct rr_conn *c);
/* A work request for the caller to complete, valid until the next call. */
struct ibv_send_wr *rr_chain_add(struct rr_chain *ch, enum ibv_wr_opcode op, struct ibv_sge sge,
				 uint64_t wr_id);
int rr_chain_end(struct rr_chain *ch); /* 0 or -errno */

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chains of work requests, posted RR_POST_BATCH at a time. The caller has taken the slots. While a
 * connection gathers, its chains become parts of one, so that several replies are one post: with
 * hardware one doorbell, with software devices one system call. On the connection's loop.
 */
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

/* The chain to add to: the one that c gathers, or else own. */
struct rr_chain *rr_chain_start(struct rr_conn *c, struct rr_chain *own);
/* A work request for the caller to complete, valid until the next call. */
struct ibv_send_wr *rr_chain_add(struct rr_chain *ch, enum ibv_wr_opcode op, struct ibv_sge sge,
				 uint64_t wr_id);
/* 0, or -errno of a post that failed. A chain that is gathered is posted later. */
int rr_chain_end(struct rr_chain *ch);

/* Between the two, chains of c are gathered in ch; the end posts them. 0 or -errno. */
void rr_gather_start(struct rr_conn *c, struct rr_chain *ch);
int rr_gather_end(struct rr_conn *c);

/* A send context and slots for a chain of wrs work requests, or NULL. A Send alone is quiet if it
 * may be. */
struct rr_send *rr_send_take(struct rr_conn *c, unsigned wrs);
/* Adds the Send of len bytes in s, which ends the chain. */
struct ibv_send_wr *rr_chain_add_send(struct rr_chain *ch, struct rr_send *s, uint32_t len);
/* Records a Send that has been posted. */
void rr_sent(struct rr_conn *c, struct rr_send *s);

#endif

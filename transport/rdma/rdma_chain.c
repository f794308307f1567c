/* SPDX-License-Identifier: BSD-2-Clause */
/* Chains of work requests for the send queue. */
#include "transport/rdma/rdma_chain.h"

void rr_chain_start(struct rr_chain *ch, struct rr_conn *c)
{
	ch->conn = c;
	ch->n = 0;
	ch->err = 0;
}

static void post_chain(struct rr_chain *ch)
{
	struct ibv_send_wr *bad = NULL;
	struct rr_device *dev = ch->conn->dev;

	if (!ch->n || ch->err)
		return;
	for (unsigned i = 0; i < ch->n; i++) {
		ch->wr[i].sg_list = &ch->sge[i];
		ch->wr[i].next = i + 1 < ch->n ? &ch->wr[i + 1] : NULL;
	}
	int rc = ibv_post_send(ch->conn->id->qp, ch->wr, &bad);
	if (rc && bad && bad->opcode == IBV_WR_SEND_WITH_INV) {
		/* The device supports it, but its user library does not. */
		dev->invalidate = false;
		bad->opcode = IBV_WR_SEND;
		rc = ibv_post_send(ch->conn->id->qp, bad, &bad);
	}
	/* Drivers return errno values of either sign. */
	ch->err = rc > 0 ? -rc : rc;
	ch->n = 0;
}

struct ibv_send_wr *rr_chain_add(struct rr_chain *ch, enum ibv_wr_opcode op, struct ibv_sge sge,
				 uint64_t wr_id)
{
	if (ch->n == RR_POST_BATCH)
		post_chain(ch);
	if (ch->n == RR_POST_BATCH)
		ch->n = 0; /* failed before: nothing more will be posted */
	ch->sge[ch->n] = sge;
	ch->wr[ch->n] = (struct ibv_send_wr){ .wr_id = wr_id, .num_sge = 1, .opcode = op };
	return &ch->wr[ch->n++];
}

int rr_chain_end(struct rr_chain *ch)
{
	post_chain(ch);
	return ch->err;
}

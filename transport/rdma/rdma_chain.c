/* SPDX-License-Identifier: BSD-2-Clause */
/* Chains of work requests for the send queue. */
#include "transport/rdma/rdma_chain.h"

static void start(struct rr_chain *ch, struct rr_conn *c)
{
	ch->conn = c;
	ch->n = 0;
	ch->err = 0;
}

struct rr_chain *rr_chain_start(struct rr_conn *c, struct rr_chain *own)
{
	if (c->gather)
		return c->gather;
	start(own, c);
	return own;
}

/* The device supports invalidation, but its user library does not. */
static void stop_invalidating(struct rr_device *dev, struct ibv_send_wr *wr)
{
	dev->invalidate = false;
	for (; wr; wr = wr->next)
		if (wr->opcode == IBV_WR_SEND_WITH_INV)
			wr->opcode = IBV_WR_SEND;
}

static void post_chain(struct rr_chain *ch)
{
	struct ibv_send_wr *bad = NULL;

	if (!ch->n || ch->err)
		return;
	for (unsigned i = 0; i < ch->n; i++) {
		ch->wr[i].sg_list = &ch->sge[i];
		ch->wr[i].next = i + 1 < ch->n ? &ch->wr[i + 1] : NULL;
	}
	rr_count(ch->conn->srv, posts, 1);
	int rc = ibv_post_send(ch->conn->id->qp, ch->wr, &bad);
	if (rc && bad && bad->opcode == IBV_WR_SEND_WITH_INV) {
		stop_invalidating(ch->conn->dev, bad);
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
	if (ch != ch->conn->gather)
		post_chain(ch);
	return ch->err;
}

void rr_gather_start(struct rr_conn *c, struct rr_chain *ch)
{
	start(ch, c);
	c->gather = ch;
}

int rr_gather_end(struct rr_conn *c)
{
	struct rr_chain *ch = c->gather;

	c->gather = NULL;
	post_chain(ch);
	return ch->err;
}
